"""A rule, read and ready to match."""

from collections.abc import Callable, Collection
from functools import reduce

from filters.event import Event
from filters.key import Clause, Key, rarest, rarity
from filters.registry import Registry
from filters.rules.explain import Explanation, explain
from filters.rules.parser import parse
from filters.rules.printer import show
from filters.rules.syntax import And, Node, Operator, Or

CLAUSES = 16
"""The most clauses that a rule is said in; of more, finding is slower than asking."""

HINTS = 4
"""The most clauses that narrow down where a rule is asked that cannot be said exactly."""

Check = Callable[[Event], bool]


class Rule:
    """One expression of the rule language. Immutable; equal if equal in its canonical form, ``text``.

    ``matches(event)`` raises what a third party's filter raises.
    """

    __slots__ = ("_clauses", "_keys", "matches", "node", "text")

    matches: Check

    def __init__(self, node: Node) -> None:
        self.node = node
        self.text = show(node)
        self.matches = _check(node)
        self._keys = _keys(node)
        self._clauses = _clauses(node)

    @classmethod
    def parse(cls, text: str, registry: Registry) -> "Rule":
        """The rule that is written so; raises :class:`filters.rules.error.RuleError`, and nothing else."""
        return cls(parse(text, registry))

    def keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one.

        None if there are none, which only a third party's operator without keys can bring about.
        """
        return self._keys

    def clauses(self) -> Collection[Clause] | None:
        """The rule said exactly by keys: an event matches if it has all keys of one. None if it cannot be said so."""
        return self._clauses

    def hints(self) -> Collection[Clause]:
        """Clauses of which each event that matches has all keys of one; none where there are no keys."""
        return _hints(self.node) or ()

    def explain(self, event: Event) -> Explanation:
        """Why it matches ``event``, or does not, part by part."""
        return explain(self.node, event)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<Rule {self.text}>"


def _check(node: Node) -> Check:
    """One plain function: rules are asked often, so the tree is walked once."""
    if isinstance(node, Operator):
        return _denied(node.condition.matches) if node.negated else node.condition.matches
    checks = tuple(map(_check, node.parts))
    return _every(checks) if isinstance(node, And) else _some(checks)


def _denied(check: Check) -> Check:
    def denied(event: Event) -> bool:
        return not check(event)

    return denied


def _every(checks: tuple[Check, ...]) -> Check:
    def every(event: Event) -> bool:
        for check in checks:  # noqa: SIM110 - a generator takes twice as long
            if not check(event):
                return False
        return True

    return every


def _some(checks: tuple[Check, ...]) -> Check:
    def some(event: Event) -> bool:
        for check in checks:  # noqa: SIM110 - a generator takes twice as long
            if check(event):
                return True
        return False

    return some


def _keys(node: Node) -> frozenset[Key] | None:
    """Of an AND the part whose commonest key is the rarest; of an OR all."""
    if isinstance(node, Operator):
        return None if node.negated else node.condition.keys()
    found = [keys for keys in map(_keys, node.parts) if keys is not None]
    if isinstance(node, And):
        return max(found, key=_commonest, default=None)
    return frozenset[Key]().union(*found) if len(found) == len(node.parts) else None


def _commonest(keys: frozenset[Key]) -> tuple[bool, int, str]:
    return min(map(rarity, keys), default=(True, 0, ""))


def _clauses(node: Node) -> Collection[Clause] | None:
    if isinstance(node, Operator):
        return None if node.negated else node.condition.clauses()
    found: set[Clause] = {frozenset()} if isinstance(node, And) else set()
    for part in node.parts:
        clauses = _clauses(part)
        if clauses is None:
            return None
        found = {one | other for one in found for other in clauses} if isinstance(node, And) else found.union(clauses)
        if len(found) > CLAUSES:
            return None
    return found


def _hints(node: Node) -> frozenset[Clause] | None:
    """Of an AND the rarest part, and as many more as leave few clauses; of an OR all."""
    if isinstance(node, Operator):
        keys = _keys(node)
        return None if keys is None else frozenset(frozenset((key,)) for key in keys)
    found = [hints for hints in map(_hints, node.parts) if hints is not None]
    if isinstance(node, Or):
        return frozenset[Clause]().union(*found) if len(found) == len(node.parts) else None
    if not found:
        return None
    found.sort(key=_widest, reverse=True)
    return reduce(_both, found)


def _both(some: frozenset[Clause], more: frozenset[Clause]) -> frozenset[Clause]:
    if len(some) * len(more) > HINTS:
        return some
    return frozenset(one | other for one in some for other in more)


def _widest(hints: frozenset[Clause]) -> tuple[bool, int, str]:
    return min((rarity(rarest(clause)) for clause in hints), default=(True, 0, ""))
