"""A rule, read and ready to match."""

from collections.abc import Callable, Collection
from functools import reduce

from filters.event import Event
from filters.index_keys import Clause, Key, estimate_rarity, rarest_key
from filters.registry import Registry
from filters.rules.explain import Explanation, explain_node
from filters.rules.parser import parse_rule
from filters.rules.printer import format_node
from filters.rules.tree import And, Node, Operator, Or

MAX_CLAUSES = 16
"""The most clauses that a rule is said in; of more, finding is slower than asking."""

MAX_CANDIDATE_CLAUSES = 4
"""The most clauses that narrow down where a rule is asked that cannot be said exactly."""

Matcher = Callable[[Event], bool]


class Rule:
    """One expression of the rule language. Immutable; equal if equal in its canonical form, ``text``.

    ``matches(event)`` raises what a third party's filter raises.
    """

    __slots__ = ("_candidate_keys", "_exact_clauses", "matches", "node", "text")

    matches: Matcher

    def __init__(self, node: Node) -> None:
        self.node = node
        self.text = format_node(node)
        self.matches = _compile(node)
        self._candidate_keys = _candidate_keys_of(node)
        self._exact_clauses = _exact_clauses_of(node)

    @classmethod
    def parse(cls, text: str, registry: Registry) -> "Rule":
        """The rule that is written so; raises :class:`filters.rules.error.RuleError`, and nothing else."""
        return cls(parse_rule(text, registry))

    def candidate_keys(self) -> frozenset[Key] | None:
        """Keys of which each event that matches has at least one.

        None if there are none, which only a third party's operator without keys can bring about.
        """
        return self._candidate_keys

    def exact_clauses(self) -> Collection[Clause] | None:
        """The rule said exactly by keys: an event matches if it has all keys of one. None if it cannot be said so."""
        return self._exact_clauses

    def candidate_clauses(self) -> Collection[Clause]:
        """Clauses of which each event that matches has all keys of one; none where there are no keys."""
        return _candidate_clauses_of(self.node) or ()

    def explain(self, event: Event) -> Explanation:
        """Why it matches ``event``, or does not, part by part."""
        return explain_node(self.node, event)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<Rule {self.text}>"


def _compile(node: Node) -> Matcher:
    """One plain function: rules are asked often, so the tree is walked once."""
    if isinstance(node, Operator):
        return _compile_not(node.condition.matches) if node.negated else node.condition.matches
    checks = tuple(map(_compile, node.parts))
    return _compile_and(checks) if isinstance(node, And) else _compile_or(checks)


def _compile_not(check: Matcher) -> Matcher:
    def denied(event: Event) -> bool:
        return not check(event)

    return denied


def _compile_and(checks: tuple[Matcher, ...]) -> Matcher:
    def every(event: Event) -> bool:
        for check in checks:  # noqa: SIM110 - a generator takes twice as long
            if not check(event):
                return False
        return True

    return every


def _compile_or(checks: tuple[Matcher, ...]) -> Matcher:
    def some(event: Event) -> bool:
        for check in checks:  # noqa: SIM110 - a generator takes twice as long
            if check(event):
                return True
        return False

    return some


def _candidate_keys_of(node: Node) -> frozenset[Key] | None:
    """Of an AND the part whose commonest key is the rarest; of an OR all."""
    if isinstance(node, Operator):
        return None if node.negated else node.condition.candidate_keys()
    found = [keys for keys in map(_candidate_keys_of, node.parts) if keys is not None]
    if isinstance(node, And):
        return max(found, key=_rarity_of_commonest_key, default=None)
    return frozenset[Key]().union(*found) if len(found) == len(node.parts) else None


def _rarity_of_commonest_key(keys: frozenset[Key]) -> tuple[bool, int, str]:
    return min(map(estimate_rarity, keys), default=(True, 0, ""))


def _exact_clauses_of(node: Node) -> Collection[Clause] | None:
    if isinstance(node, Operator):
        return None if node.negated else node.condition.exact_clauses()
    found: set[Clause] = {frozenset()} if isinstance(node, And) else set()
    for part in node.parts:
        clauses = _exact_clauses_of(part)
        if clauses is None:
            return None
        found = {one | other for one in found for other in clauses} if isinstance(node, And) else found.union(clauses)
        if len(found) > MAX_CLAUSES:
            return None
    return found


def _candidate_clauses_of(node: Node) -> frozenset[Clause] | None:
    """Of an AND the rarest part, and as many more as leave few clauses; of an OR all."""
    if isinstance(node, Operator):
        keys = _candidate_keys_of(node)
        return None if keys is None else frozenset(frozenset((key,)) for key in keys)
    found = [hints for hints in map(_candidate_clauses_of, node.parts) if hints is not None]
    if isinstance(node, Or):
        return frozenset[Clause]().union(*found) if len(found) == len(node.parts) else None
    if not found:
        return None
    found.sort(key=_rarity_of_commonest_clause, reverse=True)
    return reduce(_combine_clauses, found)


def _combine_clauses(some: frozenset[Clause], more: frozenset[Clause]) -> frozenset[Clause]:
    if len(some) * len(more) > MAX_CANDIDATE_CLAUSES:
        return some
    return frozenset(one | other for one in some for other in more)


def _rarity_of_commonest_clause(hints: frozenset[Clause]) -> tuple[bool, int, str]:
    return min((estimate_rarity(rarest_key(clause)) for clause in hints), default=(True, 0, ""))
