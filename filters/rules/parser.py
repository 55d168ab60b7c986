"""From the text of a rule to its tree: a blank is AND and binds tighter than OR, a minus is for one operator."""

from filters.registry import Registry
from filters.rules.condition import Condition, Written
from filters.rules.error import RuleError
from filters.rules.lexer import Token, tokens
from filters.rules.operators import KEYWORD, NEAR, PHRASE, SIGNS, Row, find, resembles
from filters.rules.printer import grouped, show
from filters.rules.syntax import And, Node, Operator, Or, all_of, any_of, opposite
from filters.rules.text import phrase

CHARACTERS = 1_024
"""The most characters of a rule, blanks and all, as written and in its canonical form."""

DEPTH = 32
"""The most parentheses inside each other."""

_OPERATOR = "an operator, such as a word"
_DENIED = "an operator right behind the minus"
_MISSING = {")": "there is nothing before this )", "end": "the rule ends here"}
_STANDALONE = "an operator beside it that can, such as a word, from: or #tag"


def parse(text: str, registry: Registry) -> Node:
    """The tree of a rule whose operators are those of the language and the filters of ``registry``.

    Takes time linear in the length. Raises RuleError, and nothing else.
    """
    return _read(text, registry)


def _read(text: str, registry: Registry, *, opposing: bool = False) -> Node:
    if len(text) > CHARACTERS:
        raise _too_long(len(text))
    node = _Parser(text, registry, opposing=opposing).rule()
    _check_whole(node, inside=False)
    loose = _loose(node)
    if loose is not None:
        raise RuleError(f"{show(loose)} cannot stand alone", column=loose.column, expected=_STANDALONE)
    if len(canonical := show(node)) > CHARACTERS:
        raise _too_long(len(canonical))
    return node


class _Parser:
    """Recursive descent over the tokens; ``_next`` is the one that is looked at.

    ``_closes`` is the column behind the one before. ``opposing`` reads a negated group as its opposite, which is how
    it is found out what may be written in its place.
    """

    def __init__(self, text: str, registry: Registry, *, opposing: bool) -> None:
        self._text = text
        self._tokens = tokens(text)
        self._registry = registry
        self._opposing = opposing
        self._next = next(self._tokens)
        self._closes = 1
        self._depth = 0

    def rule(self) -> Node:
        node = self._any()
        if self._next.kind == ")":
            raise RuleError("nothing was opened that this closes", column=self._next.column, expected=_OPERATOR)
        return node

    def _any(self) -> Node:
        parts = [self._all()]
        while _is_or(self._next):
            self._take()
            parts.append(self._all())
        return any_of(parts)

    def _all(self) -> Node:
        parts = [self._part()]
        while self._next.kind not in {")", "end"} and not _is_or(self._next):
            parts.append(self._part())
        return all_of(parts)

    def _part(self) -> Node:
        token = self._next
        if token.kind == "-":
            return self._denied()
        if token.kind == "(":
            return self._group()
        if token.kind in {")", "end"} or _is_or(token):
            raise RuleError(_MISSING.get(token.kind, "OR joins nothing"), column=token.column, expected=_OPERATOR)
        return self._operator()

    def _group(self) -> Node:
        opened = self._take()
        self._depth += 1
        if self._depth > DEPTH:
            raise RuleError(
                "this is nested too deeply", column=opened.column, expected=f"at most {DEPTH} ( inside each other"
            )
        node = self._any()
        if self._next.kind != ")":
            raise RuleError(
                f"the ( of column {opened.column} is not closed",
                column=self._next.column,
                expected="a closing parenthesis",
            )
        self._take()
        self._depth -= 1
        return node

    def _denied(self) -> Node:
        minus = self._take()
        behind = self._next
        if behind.column != minus.closes or behind.kind in {"-", ")", "end"} or _is_or(behind):
            raise RuleError("a minus stands alone", column=minus.column, expected=_DENIED)
        if behind.kind == "(":
            meant = opposite(self._group())
            if self._opposing:
                return meant
            expected = self._instead(grouped(meant), minus.column - 1)
            raise RuleError("a group cannot be negated", column=minus.column, expected=expected)
        return self._operator(negated=True, begins=minus.column)

    def _instead(self, written: str, begins: int) -> str:
        """The negated group as it is ``written``, if that may stand in its place and means the same there.

        Other such groups in the rule are refused in their turn.
        """
        pasted = self._text[:begins] + written + self._text[self._closes - 1 :]
        try:
            meant, read = (_read(text, self._registry, opposing=True) for text in (self._text, pasted))
        except RuleError:
            return _DENIED
        return written if read == meant else _DENIED

    def _operator(self, *, negated: bool = False, begins: int | None = None) -> Operator:
        token = self._take()
        row = self._row(token)
        if negated and not row.negatable:
            raise RuleError(
                f"{row.name}: cannot be negated", column=token.column, expected=f"{row.name}: without a minus"
            )
        condition = self._condition(token, row)
        at = token.column if begins is None else begins
        return Operator(condition.text, negated, condition, at, row.standalone, row.whole)

    def _row(self, token: Token) -> Row:
        if token.kind == "quoted":
            return PHRASE if token.reach is None else NEAR
        if token.kind != "named":
            return SIGNS.get(token.text[0], KEYWORD)
        row = find(token.name, self._registry)
        if row is None:
            meant = resembles(token.name, self._registry)
            expected = f"{meant}:" if meant else 'a known operator, or quotes around a text that holds a ":"'
            raise RuleError(f"there is no operator {token.name[:40]}:", column=token.column, expected=expected)
        if not token.text:
            raise RuleError(f"{token.name}: has no value", column=token.value_column, expected=row.value)
        return row

    def _condition(self, token: Token, row: Row) -> Condition:
        written = Written(token.text, token.value_column, token.quoted)
        return phrase(written, token.reach) if token.reach is not None else row.make(written)

    def _take(self) -> Token:
        taken = self._next
        self._closes = taken.closes
        self._next = next(self._tokens, taken)
        return taken


def _is_or(token: Token) -> bool:
    return token.kind == "bare" and token.text == "OR"


def _too_long(length: int) -> RuleError:
    return RuleError(
        f"the rule has {length} characters", column=CHARACTERS + 1, expected=f"at most {CHARACTERS} characters"
    )


def _check_whole(node: Node, *, inside: bool) -> None:
    """What is about the whole rule cannot be about one side of an OR."""
    if isinstance(node, Operator):
        if node.whole and inside:
            raise RuleError(
                f"{node.text} is about the whole rule",
                column=node.column,
                expected="it outside of OR: (… OR …) " + node.text,
            )
        return
    for part in node.parts:
        _check_whole(part, inside=inside or isinstance(node, Or))


def _loose(node: Node) -> Operator | None:
    """An operator that would have to stand alone and cannot, None if all is well."""
    if isinstance(node, Operator):
        return None if node.standalone and not node.negated else node
    loose = [_loose(part) for part in node.parts]
    if isinstance(node, And):
        return None if None in loose else loose[0]
    return next((one for one in loose if one is not None), None)
