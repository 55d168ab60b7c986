"""From the text of a rule to its tree: a blank is AND and binds tighter than OR, a minus is for one operator."""

from filters.registry import Registry
from filters.rules.condition import Condition, OperatorValue
from filters.rules.error import RuleError
from filters.rules.lexer import Token, tokenize
from filters.rules.operators import (
    KEYWORD,
    PHRASE,
    PROXIMITY,
    SPEC_BY_SIGN,
    OperatorSpec,
    find_operator,
    suggest_operator,
)
from filters.rules.printer import format_node, format_operand
from filters.rules.tree import And, Node, Operator, Or, join_and, join_or, negate
from filters.rules.words import parse_phrase

MAX_RULE_CHARS = 1_024
"""The most characters of a rule, blanks and all, as written and in its canonical form."""

MAX_DEPTH = 32
"""The most parentheses inside each other."""

_EXPECTED_OPERATOR = "an operator, such as a word"
_EXPECTED_AFTER_MINUS = "an operator right behind the minus"
_PROBLEM_AT = {")": "there is nothing before this )", "end": "the rule ends here"}
_EXPECTED_STANDALONE = "an operator beside it that can, such as a word, from: or #tag"


def parse_rule(text: str, registry: Registry) -> Node:
    """The tree of a rule whose operators are those of the language and the filters of ``registry``.

    Takes time linear in the length. Raises RuleError, and nothing else.
    """
    return _parse_checked(text, registry)


def _parse_checked(text: str, registry: Registry, *, negate_groups: bool = False) -> Node:
    if len(text) > MAX_RULE_CHARS:
        raise _too_long(len(text))
    node = _Parser(text, registry, negate_groups=negate_groups).parse_whole()
    _check_rule_wide(node, inside=False)
    loose = _find_dependent_operator(node)
    if loose is not None:
        raise RuleError(f"{format_node(loose)} cannot stand alone", column=loose.column, expected=_EXPECTED_STANDALONE)
    if len(canonical := format_node(node)) > MAX_RULE_CHARS:
        raise _too_long(len(canonical))
    return node


class _Parser:
    """Recursive descent over the tokens; ``_lookahead`` is the one that is looked at.

    ``_previous_end`` is the column behind the one before. ``opposing`` reads a negated group as its opposite, which is how
    it is found out what may be written in its place.
    """

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
            raise RuleError(
                "nothing was opened that this closes", column=self._lookahead.column, expected=_EXPECTED_OPERATOR
            )
        return node

    def _parse_or(self) -> Node:
        parts = [self._parse_and()]
        while _is_or(self._lookahead):
            self._advance()
            parts.append(self._parse_and())
        return join_or(parts)

    def _parse_and(self) -> Node:
        parts = [self._parse_part()]
        while self._lookahead.kind not in {")", "end"} and not _is_or(self._lookahead):
            parts.append(self._parse_part())
        return join_and(parts)

    def _parse_part(self) -> Node:
        token = self._lookahead
        if token.kind == "-":
            return self._parse_negated()
        if token.kind == "(":
            return self._parse_group()
        if token.kind in {")", "end"} or _is_or(token):
            raise RuleError(
                _PROBLEM_AT.get(token.kind, "OR joins nothing"), column=token.column, expected=_EXPECTED_OPERATOR
            )
        return self._parse_operator()

    def _parse_group(self) -> Node:
        opened = self._advance()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RuleError(
                "this is nested too deeply", column=opened.column, expected=f"at most {MAX_DEPTH} ( inside each other"
            )
        node = self._parse_or()
        if self._lookahead.kind != ")":
            raise RuleError(
                f"the ( of column {opened.column} is not closed",
                column=self._lookahead.column,
                expected="a closing parenthesis",
            )
        self._advance()
        self._depth -= 1
        return node

    def _parse_negated(self) -> Node:
        minus = self._advance()
        behind = self._lookahead
        if behind.column != minus.end_column or behind.kind in {"-", ")", "end"} or _is_or(behind):
            raise RuleError("a minus stands alone", column=minus.column, expected=_EXPECTED_AFTER_MINUS)
        if behind.kind == "(":
            meant = negate(self._parse_group())
            if self._negate_groups:
                return meant
            expected = self._suggest_equivalent(format_operand(meant), minus.column - 1)
            raise RuleError("a group cannot be negated", column=minus.column, expected=expected)
        return self._parse_operator(negated=True, begins=minus.column)

    def _suggest_equivalent(self, written: str, begins: int) -> str:
        """The negated group as it is ``written``, if that may stand in its place and means the same there.

        Other such groups in the rule are refused in their turn.
        """
        pasted = self._text[:begins] + written + self._text[self._previous_end - 1 :]
        try:
            meant, read = (_parse_checked(text, self._registry, negate_groups=True) for text in (self._text, pasted))
        except RuleError:
            return _EXPECTED_AFTER_MINUS
        return written if read == meant else _EXPECTED_AFTER_MINUS

    def _parse_operator(self, *, negated: bool = False, begins: int | None = None) -> Operator:
        token = self._advance()
        row = self._find_spec(token)
        if negated and not row.negatable:
            raise RuleError(
                f"{row.name}: cannot be negated", column=token.column, expected=f"{row.name}: without a minus"
            )
        condition = self._make_condition(token, row)
        at = token.column if begins is None else begins
        return Operator(condition.text, negated, condition, at, row.standalone, row.rule_wide)

    def _find_spec(self, token: Token) -> OperatorSpec:
        if token.kind == "quoted":
            return PHRASE if token.distance is None else PROXIMITY
        if token.kind != "named":
            return SPEC_BY_SIGN.get(token.text[0], KEYWORD)
        row = find_operator(token.name, self._registry)
        if row is None:
            meant = suggest_operator(token.name, self._registry)
            expected = f"{meant}:" if meant else 'a known operator, or quotes around a text that holds a ":"'
            raise RuleError(f"there is no operator {token.name[:40]}:", column=token.column, expected=expected)
        if not token.text:
            raise RuleError(f"{token.name}: has no value", column=token.value_column, expected=row.value)
        return row

    def _make_condition(self, token: Token, row: OperatorSpec) -> Condition:
        written = OperatorValue(token.text, token.value_column, token.quoted)
        return parse_phrase(written, token.distance) if token.distance is not None else row.parse(written)

    def _advance(self) -> Token:
        taken = self._lookahead
        self._previous_end = taken.end_column
        self._lookahead = next(self._tokens, taken)
        return taken


def _is_or(token: Token) -> bool:
    return token.kind == "bare" and token.text == "OR"


def _too_long(length: int) -> RuleError:
    return RuleError(
        f"the rule has {length} characters", column=MAX_RULE_CHARS + 1, expected=f"at most {MAX_RULE_CHARS} characters"
    )


def _check_rule_wide(node: Node, *, inside: bool) -> None:
    """What is about the whole rule cannot be about one side of an OR."""
    if isinstance(node, Operator):
        if node.rule_wide and inside:
            raise RuleError(
                f"{node.text} is about the whole rule",
                column=node.column,
                expected="it outside of OR: (… OR …) " + node.text,
            )
        return
    for part in node.parts:
        _check_rule_wide(part, inside=inside or isinstance(node, Or))


def _find_dependent_operator(node: Node) -> Operator | None:
    """An operator that would have to stand alone and cannot, None if all is well."""
    if isinstance(node, Operator):
        return None if node.standalone and not node.negated else node
    loose = [_find_dependent_operator(part) for part in node.parts]
    if isinstance(node, And):
        return None if None in loose else loose[0]
    return next((one for one in loose if one is not None), None)
