"""From the text of a rule to its tree, in linear time. A space is AND and binds tighter than OR; a minus negates.

The lexer splits the text into tokens with their columns. Two nodes of a tree are equal if their canonical texts are.
Invisible characters count in columns only: a value has none, and between operators they are blanks.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

from filters.invisible import drop_invisible
from filters.registry import Registry
from filters.rules.condition import Condition, OperatorValue, RuleError
from filters.rules.meta import PLAIN_NAME
from filters.rules.operators import (
    KEYWORD,
    PHRASE,
    PROXIMITY,
    SPEC_BY_SIGN,
    OperatorSpec,
    find_operator,
    suggest_operator,
)
from filters.rules.words import parse_phrase
from filters.table_data import INVISIBLE
from filters.tokens import fold

TokenKind = Literal["(", ")", "-", "bare", "quoted", "named", "end"]


class Token(NamedTuple):
    """A token of a rule, such as a word or a parenthesis. All columns count code points from 1.

    Attributes:
        end_column: Column just after the last character of the token.
        text: The word or value, without quotes and invisible characters.
        name: Name of the operator before the colon, in lower case, such as ``meta.room``. Empty if it has no colon.
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


_BLANKS = re.compile(rf"[\s{INVISIBLE}]*")
_INVISIBLE = re.compile(f"[{INVISIBLE}]*")
_NAME = re.compile(rf'([A-Za-z][A-Za-z0-9_]*)(?:\.({PLAIN_NAME})|\."((?:[^"\\\x00-\x1f\x7f-\x9f]|\\.)*)")?:')
"""An operator before its colon. Behind a dot, the name of a field may stand in quotes."""
_BARE = re.compile(r'[^\s()"]+')
_VALUE = re.compile(r'\[[^\]"]*\]|[^\s()"]*')
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_DISTANCE = re.compile(r"~([^\s()]*)")
_ESCAPED = re.compile(r'\\(["\\])')
_PUNCTUATION: dict[str, TokenKind] = {"(": "(", ")": ")", "-": "-"}


def tokenize(text: str) -> Iterator[Token]:
    """Return the tokens of a rule in order; the last has the kind ``end``. Raises RuleError for an invalid text.

    Control characters except white space are invalid, and so are surrogates, which JSON allows in strings.
    """
    for place, character in enumerate("" if text.isascii() and text.isprintable() else text, start=1):
        category = unicodedata.category(character)
        if category == "Cs" or (category == "Cc" and character not in "\t\n\r"):
            raise RuleError(f"U+{ord(character):04X} is not allowed in a rule", column=place, expected="text")
    at = _skip(_BLANKS, text, 0)
    while at < len(text):
        token = _read_token(text, at)
        yield token
        at = _skip(_BLANKS, text, token.end_column - 1)
    yield Token("end", len(text) + 1, len(text) + 1)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _read_token(text: str, at: int) -> Token:
    if kind := _PUNCTUATION.get(text[at]):
        return Token(kind, at + 1, _skip(_INVISIBLE, text, at + 1) + 1)
    found = _NAME.match(text, at)
    start, name = (found.end(), _operator_name(*found.groups())) if found else (at, "")
    if text.startswith('"', start):
        value, end = _read_quoted(text, start)
        reach = None if name else _DISTANCE.match(text, end)
        end = reach.end() if reach else end
        if end < len(text) and _skip(_BLANKS, text, end) == end and text[end] not in "()":
            raise RuleError("a word follows the quote without a space", column=end + 1, expected="a blank")
        distance = reach.group(1) if reach else None
        value = drop_invisible(value)
        return Token("named" if name else "quoted", at + 1, end + 1, value, name, start + 1, True, distance)
    bare = (_VALUE if name else _BARE).match(text, start)
    end = bare.end() if bare else start
    if text.startswith('"', end):
        raise RuleError("a quote begins inside a word", column=end + 1, expected="a blank before the quote")
    return Token("named" if name else "bare", at + 1, end + 1, drop_invisible(text[start:end]), name, start + 1)


def _operator_name(name: str, plain: str | None, quoted: str | None) -> str:
    """Return an operator's name in lower case, with a dot and the folded name of a field, if it has one."""
    if plain is None and quoted is None:
        return name.lower()
    field = plain or _ESCAPED.sub(r"\1", quoted or "")
    return f"{name.lower()}.{fold(field)}"


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


@dataclass(frozen=True, slots=True)
class Operator:
    """A leaf of the tree of a rule: one operator with its value.

    Attributes:
        text: Canonical text without the minus.
        column: Where the operator begins in the rule as written, in code points from 1.
        standalone: Whether a rule, or one side of an OR, may consist of this operator alone.
        rule_wide: Whether the operator applies to the whole rule and so must not stand inside OR.
    """

    text: str
    negated: bool
    condition: Condition = field(compare=False)
    column: int = field(compare=False)
    standalone: bool = field(compare=False)
    rule_wide: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class And:
    """Parts of a rule that must all match, two or more. None of the parts is an And itself."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Parts of a rule of which at least one must match, two or more. None of the parts is an Or itself."""

    parts: tuple["Node", ...]


Node: TypeAlias = Operator | And | Or


def node_column(node: Node) -> int:
    """Return the column at which a part of a rule begins. It is the column of the part's first operator."""
    while not isinstance(node, Operator):
        node = node.parts[0]
    return node.column


def negate(node: Node) -> Node:
    """Return the negation of a part of a rule: AND and OR are swapped, and every operator gets or loses a minus."""
    if isinstance(node, Operator):
        return replace(node, negated=not node.negated)
    parts = tuple(map(negate, node.parts))
    return And(parts) if isinstance(node, Or) else Or(parts)


def join(kind: type[And] | type[Or], parts: list[Node]) -> Node:
    """Join the parts by AND or by OR. A single part stays as it is, and nested parts of the same kind are merged."""
    if len(parts) == 1:
        return parts[0]
    flat = tuple(inner for part in parts for inner in (part.parts if isinstance(part, kind) else (part,)))
    return kind(flat)


def format_node(node: Node) -> str:
    """Return the canonical text of a part of a rule, with parentheses only where they are needed."""
    if isinstance(node, Operator):
        return f"-{node.text}" if node.negated else node.text
    if isinstance(node, Or):
        return " OR ".join(map(format_node, node.parts))
    return " ".join(map(format_operand, node.parts))


def format_operand(node: Node) -> str:
    """Return the canonical text of one part of an AND. If the part is an OR, the text has parentheses."""
    return f"({format_node(node)})" if isinstance(node, Or) else format_node(node)


MAX_RULE_CHARS = 1_024
"""Maximum length of a rule in code points, spaces included, both as written and in canonical form."""

MAX_DEPTH = 32  # of nested parentheses

_EXPECTED_OPERATOR = "an operator, such as a word"
_EXPECTED_AFTER_MINUS = "an operator right behind the minus"


def parse_rule(text: str, registry: Registry, *, negate_groups: bool = False) -> Node:
    """Parse a rule with the operators of the language and the filters of ``registry``, and return its tree.

    Takes time linear in the length. Raises RuleError, and no other exception. ``negate_groups`` allows a minus before a
    group. Only the parser itself sets it, to test a correction before it suggests the correction in an error message.
    """
    if len(text) > MAX_RULE_CHARS:
        raise _too_long(len(text))
    node = _Parser(text, registry, negate_groups=negate_groups).parse_whole()
    _check_rule_wide(node, inside=False)
    loose = _find_dependent_operator(node)
    if loose is not None:
        expected = "an operator beside it that can, such as a word, from: or #tag"
        raise RuleError(f"{format_node(loose)} cannot stand alone", column=loose.column, expected=expected)
    if len(canonical := format_node(node)) > MAX_RULE_CHARS:
        raise _too_long(len(canonical))
    return node


class _Parser:
    """A recursive-descent parser that reads one rule."""

    def __init__(self, text: str, registry: Registry, *, negate_groups: bool) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._registry = registry
        self._negate_groups = negate_groups
        self._lookahead = next(self._tokens)
        self._previous_end = 1
        self._depth = 0

    def parse_whole(self) -> Node:
        node = self._parse_or()
        if self._lookahead.kind == ")":
            raise self._lookahead.refusal("this ) has no matching (", _EXPECTED_OPERATOR)
        return node

    def _parse_or(self) -> Node:
        parts = [self._parse_and()]
        while _is_or(self._lookahead):
            self._advance()
            parts.append(self._parse_and())
        return join(Or, parts)

    def _parse_and(self) -> Node:
        parts = [self._parse_part()]
        while self._lookahead.kind not in {")", "end"} and not _is_or(self._lookahead):
            parts.append(self._parse_part())
        return join(And, parts)

    def _parse_part(self) -> Node:
        token = self._lookahead
        if token.kind == "-":
            return self._parse_negated()
        if token.kind == "(":
            return self._parse_group()
        if token.kind in {")", "end"} or _is_or(token):
            problems = {")": "an operator is missing before this )", "end": "the rule ends here"}
            raise token.refusal(problems.get(token.kind, "an operand of OR is missing"), _EXPECTED_OPERATOR)
        return self._parse_operator()

    def _parse_group(self) -> Node:
        opened = self._advance()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise opened.refusal("this is nested too deeply", f"at most {MAX_DEPTH} ( inside each other")
        node = self._parse_or()
        if self._lookahead.kind != ")":
            raise self._lookahead.refusal(f"the ( of column {opened.column} is not closed", "a closing parenthesis")
        self._advance()
        self._depth -= 1
        return node

    def _parse_negated(self) -> Node:
        minus = self._advance()
        behind = self._lookahead
        if behind.column != minus.end_column or behind.kind in {"-", ")", "end"} or _is_or(behind):
            raise minus.refusal("nothing follows this minus", _EXPECTED_AFTER_MINUS)
        if behind.kind == "(":
            meant = negate(self._parse_group())
            if self._negate_groups:
                return meant
            expected = self._suggest_equivalent(format_operand(meant), minus.column - 1)
            raise minus.refusal("a group cannot be negated", expected)
        return self._parse_operator(negated=True, begins=minus.column)

    def _suggest_equivalent(self, written: str, begins: int) -> str:
        """Return ``written``, a replacement for a negated group, if the rule with it means the same.

        Otherwise return a hint.

        The comparison accepts further negated groups in the rule. The parser refuses them when the user sends the new
        rule.
        """
        pasted = self._text[:begins] + written + self._text[self._previous_end - 1 :]
        try:
            meant, read = (parse_rule(text, self._registry, negate_groups=True) for text in (self._text, pasted))
        except RuleError:
            return _EXPECTED_AFTER_MINUS
        return written if read == meant else _EXPECTED_AFTER_MINUS

    def _parse_operator(self, *, negated: bool = False, begins: int | None = None) -> Operator:
        token = self._advance()
        row = self._find_spec(token)
        if negated and not row.negatable:
            raise token.refusal(f"{row.name}: cannot be negated", f"{row.name}: without a minus")
        written = OperatorValue(token.text, token.value_column, token.quoted)
        condition = row.parse(written) if token.distance is None else parse_phrase(written, token.distance)
        at = token.column if begins is None else begins
        return Operator(condition.text, negated, condition, at, row.standalone, row.rule_wide)

    def _find_spec(self, token: Token) -> OperatorSpec:
        if token.kind == "quoted":
            return PHRASE if token.distance is None else PROXIMITY
        if token.kind != "named":
            return SPEC_BY_SIGN.get(token.text[0], KEYWORD)
        row = find_operator(token.name, self._registry, is_range=not token.quoted and ".." in token.text)
        if row is None:
            meant = suggest_operator(token.name, self._registry)
            known = 'a known operator, or quotes around a text that holds a ":"'
            expected = f"did you mean `{meant}:`?" if meant else known
            raise token.refusal(f"unknown operator `{token.name[:40]}:`", expected)
        if not token.text:
            raise RuleError(f"{token.name}: has no value", column=token.value_column, expected=row.value)
        return row

    def _advance(self) -> Token:
        taken = self._lookahead
        self._previous_end = taken.end_column
        self._lookahead = next(self._tokens, taken)
        return taken


def _is_or(token: Token) -> bool:
    return token.kind == "bare" and token.text == "OR"


def _too_long(length: int) -> RuleError:
    expected = f"at most {MAX_RULE_CHARS} characters"
    return RuleError(f"the rule has {length} characters", column=MAX_RULE_CHARS + 1, expected=expected)


def _check_rule_wide(node: Node, *, inside: bool) -> None:
    """Raise RuleError if an operator that applies to the whole rule, such as ``sample:``, stands inside OR."""
    if isinstance(node, Operator):
        if node.rule_wide and inside:
            expected = f"it outside of OR: (… OR …) {node.text}"
            raise RuleError(f"{node.text} applies to the whole rule", column=node.column, expected=expected)
        return
    for part in node.parts:
        _check_rule_wide(part, inside=inside or isinstance(node, Or))


def stands_alone(node: Node) -> bool:
    """Whether the node may be a whole rule, or one side of an OR: each branch has an operator that can stand alone."""
    return _find_dependent_operator(node) is None


def _find_dependent_operator(node: Node) -> Operator | None:
    """Return an operator that wrongly stands alone in the rule or in one side of an OR, or None if there is none.

    Negated operators and operators such as ``has:`` need another operator beside them.
    """
    if isinstance(node, Operator):
        return None if node.standalone and not node.negated else node
    loose = [_find_dependent_operator(part) for part in node.parts]
    if isinstance(node, And):
        return None if None in loose else loose[0]
    return next((one for one in loose if one is not None), None)
