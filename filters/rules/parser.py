"""The parser of rules: from text to tree. A space is AND and binds tighter than OR; a minus negates one operator."""

from filters.registry import Registry
from filters.rules.condition import OperatorValue
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
from filters.rules.tree import And, Node, Operator, Or, format_node, format_operand, join_and, join_or, negate
from filters.rules.words import parse_phrase

MAX_RULE_CHARS = 1_024
"""Maximum length of a rule in code points, spaces included, both as written and in canonical form."""

MAX_DEPTH = 32  # of nested parentheses

_EXPECTED_OPERATOR = "an operator, such as a word"
_EXPECTED_AFTER_MINUS = "an operator right behind the minus"
_PROBLEM_AT = {")": "an operator is missing before this )", "end": "the rule ends here"}
_EXPECTED_STANDALONE = "an operator beside it that can, such as a word, from: or #tag"


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
        raise RuleError(f"{format_node(loose)} cannot stand alone", column=loose.column, expected=_EXPECTED_STANDALONE)
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
            raise token.refusal(_PROBLEM_AT.get(token.kind, "an operand of OR is missing"), _EXPECTED_OPERATOR)
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
        row = find_operator(token.name, self._registry)
        if row is None:
            meant = suggest_operator(token.name, self._registry)
            expected = f"{meant}:" if meant else 'a known operator, or quotes around a text that holds a ":"'
            raise token.refusal(f"unknown operator {token.name[:40]}:", expected)
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
