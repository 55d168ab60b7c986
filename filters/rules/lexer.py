"""The lexer of rules: splits the text into tokens with their columns, in one pass and in linear time."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from filters.rules.error import RuleError

TokenKind = Literal["(", ")", "-", "bare", "quoted", "named", "end"]


class Token(NamedTuple):
    """One token of a rule. All columns count code points from 1.

    Attributes:
        kind: Kind of the token.
        column: Where the token begins.
        end_column: Where the token ends, exclusive.
        text: The word or value, without quotes.
        name: Name of the operator before the colon, in lower case. Empty for other kinds.
        value_column: Where the value begins.
        quoted: Whether the value had quotes.
        distance: The text N of ``~N`` behind quotes, or None.
    """

    kind: TokenKind
    column: int
    end_column: int
    text: str = ""
    name: str = ""
    value_column: int = 0
    quoted: bool = False
    distance: str | None = None


_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"([A-Za-z][A-Za-z0-9_]*):")
_BARE = re.compile(r'[^\s()"]+')
_VALUE = re.compile(r'\[[^\]"]*\]|[^\s()"]*')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_DISTANCE = re.compile(r"~([^\s()]*)")
_ESCAPED = re.compile(r'\\(["\\])')
_PUNCTUATION: dict[str, TokenKind] = {"(": "(", ")": ")", "-": "-"}
_BLANK_CONTROLS = "\t\n\r"


def tokenize(text: str) -> Iterator[Token]:
    """Return all tokens in order, ending with a token ``end``. Raises RuleError."""
    _check_characters(text)
    at = _skip_blanks(text, 0)
    while at < len(text):
        token = _read_token(text, at)
        yield token
        at = _skip_blanks(text, token.end_column - 1)
    yield Token("end", len(text) + 1, len(text) + 1)


def _skip_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _read_token(text: str, at: int) -> Token:
    if kind := _PUNCTUATION.get(text[at]):
        return Token(kind, at + 1, at + 2)
    if text[at] == '"':
        return _read_phrase(text, at)
    if name := _NAME.match(text, at):
        return _read_named(text, at, name)
    bare = _BARE.match(text, at)
    end = bare.end() if bare else at + 1
    _check_quote(text, end)
    return Token("bare", at + 1, end + 1, text[at:end], value_column=at + 1)


def _read_phrase(text: str, at: int) -> Token:
    said, end = _read_quoted(text, at)
    reach = _DISTANCE.match(text, end)
    if reach:
        end = reach.end()
    _check_blank_after(text, end)
    number = reach.group(1) if reach else None
    return Token("quoted", at + 1, end + 1, said, value_column=at + 1, quoted=True, distance=number)


def _read_named(text: str, at: int, name: re.Match[str]) -> Token:
    start = name.end()
    quoted = text.startswith('"', start)
    if quoted:
        value, end = _read_quoted(text, start)
        _check_blank_after(text, end)
    else:
        found = _VALUE.match(text, start)
        end = found.end() if found else start
        value = text[start:end]
        _check_quote(text, end)
    return Token("named", at + 1, end + 1, value, name.group(1).lower(), start + 1, quoted)


def _read_quoted(text: str, at: int) -> tuple[str, int]:
    """Return the text between the quotes that begin at ``at``, and the position after the closing quote."""
    found = _QUOTED.match(text, at)
    if found is None:
        raise RuleError("this quote is not closed", column=at + 1, expected='a second "')
    said = found.group(1)
    for place, character in enumerate(said):
        if unicodedata.category(character) == "Cc":
            raise RuleError("the quotes contain a control character", column=at + 2 + place, expected="text")
    return _ESCAPED.sub(r"\1", said), found.end()


def _check_quote(text: str, end: int) -> None:
    if text.startswith('"', end):
        raise RuleError("a quote begins inside a word", column=end + 1, expected="a blank before the quote")


def _check_blank_after(text: str, end: int) -> None:
    if end < len(text) and not text[end].isspace() and text[end] not in "()":
        raise RuleError("a word follows the quote without a blank", column=end + 1, expected="a blank")


def _check_characters(text: str) -> None:
    """Raise RuleError for control characters (except white space) and for surrogates, which JSON allows in strings."""
    if text.isascii() and text.isprintable():
        return
    for place, character in enumerate(text, start=1):
        category = unicodedata.category(character)
        if category == "Cs" or (category == "Cc" and character not in _BLANK_CONTROLS):
            raise RuleError(f"U+{ord(character):04X} is not allowed in a rule", column=place, expected="text")
