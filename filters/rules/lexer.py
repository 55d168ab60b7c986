"""The lexer of rules: splits the text into tokens with their columns, in one pass and in linear time."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal, NamedTuple

from filters.rules.error import RuleError

TokenKind = Literal["(", ")", "-", "bare", "quoted", "named", "end"]


class Token(NamedTuple):
    """A token of a rule, such as a word or a parenthesis. All columns count code points from 1.

    Attributes:
        end_column: Column just after the last character of the token.
        text: The word or value, without quotes.
        name: Name of the operator before the colon, in lower case. Empty if the token has no colon.
        distance: The text N of ``"words"~N``, or None.
    """

    kind: TokenKind
    column: int
    end_column: int
    text: str = ""
    name: str = ""
    value_column: int = 0
    quoted: bool = False
    distance: str | None = None

    def refusal(self, problem: str, expected: str) -> RuleError:
        """Return a RuleError with the column of this token."""
        return RuleError(problem, column=self.column, expected=expected)


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
    """Return the tokens of a rule in order; the last has the kind ``end``. Raises RuleError for an invalid text."""
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
    phrase, end = _read_quoted(text, at)
    reach = _DISTANCE.match(text, end)
    if reach:
        end = reach.end()
    _check_blank_after(text, end)
    number = reach.group(1) if reach else None
    return Token("quoted", at + 1, end + 1, phrase, value_column=at + 1, quoted=True, distance=number)


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
    """Return the text between the quotes that begin at index ``at``, and the index after the closing quote."""
    found = _QUOTED.match(text, at)
    if found is None:
        raise RuleError("this quote is not closed", column=at + 1, expected='a second "')
    inside = found.group(1)
    for place, character in enumerate(inside):
        if unicodedata.category(character) == "Cc":
            raise RuleError("the quotes contain a control character", column=at + 2 + place, expected="text")
    return _ESCAPED.sub(r"\1", inside), found.end()


def _check_quote(text: str, end: int) -> None:
    if text.startswith('"', end):
        raise RuleError("a quote begins inside a word", column=end + 1, expected="a blank before the quote")


def _check_blank_after(text: str, end: int) -> None:
    if end < len(text) and not text[end].isspace() and text[end] not in "()":
        raise RuleError("a word follows the quote without a space", column=end + 1, expected="a blank")


def _check_characters(text: str) -> None:
    """Raise RuleError for control characters (except white space) and for surrogates, which JSON allows in strings."""
    if text.isascii() and text.isprintable():
        return
    for place, character in enumerate(text, start=1):
        category = unicodedata.category(character)
        if category == "Cs" or (category == "Cc" and character not in _BLANK_CONTROLS):
            raise RuleError(f"U+{ord(character):04X} is not allowed in a rule", column=place, expected="text")
