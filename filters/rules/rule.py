"""A rule, parsed and ready to match."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import reduce

from filters.event import Event
from filters.index_keys import Clause, Key, estimate_rarity, rarest_key
from filters.registry import Registry
from filters.rules.explain import Explanation, explain_node
from filters.rules.parser import parse_rule
from filters.rules.tree import And, Node, Operator, Or, format_node

MAX_CLAUSES = 16
"""Maximum number of exact clauses of a rule. With more clauses, the index lookup costs more than matching the rule."""

MAX_CANDIDATE_CLAUSES = 4
"""Maximum number of candidate clauses of a rule that has no exact clauses, if its rarest part alone does not need more.
"""

Matcher = Callable[[Event], bool]


class Rule:
    """One expression of the rule language. Immutable; rules with equal canonical text are equal.

    Attributes:
        node: The tree of the rule.
        text: The canonical text.
        matches: Function that returns whether an event matches. It raises what a plug-in filter raises.
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
        """Parse a rule. Raises :class:`filters.rules.error.RuleError`, and no other exception."""
        return cls(parse_rule(text, registry))

    def candidate_keys(self) -> frozenset[Key] | None:
        """Return index keys of which each matching event has at least one.

        None if there are no such keys. This happens only if an operator of a plug-in filter has no keys.
        """
        return self._candidate_keys

    def exact_clauses(self) -> Collection[Clause] | None:
        """Return clauses that describe the rule exactly, or None if there are none.

        Exactly means: an event matches if and only if it has all keys of at least one clause.
        """
        return self._exact_clauses

    def candidate_clauses(self) -> Collection[Clause]:
        """Return clauses of which each matching event satisfies at least one.

        Empty if the rule has no candidate keys.
        """
        return _candidate_clauses_of(self.node) or ()

    def explain(self, event: Event) -> Explanation:
        """Return why the rule matches the event or not, with all its parts."""
        return explain_node(self.node, event)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<Rule {self.text}>"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule with the names by which clients know it.

    Attributes:
        id: Id given by the server.
        tag: Tag given by the client, or an empty string.
        rule: The rule.
    """

    id: str
    tag: str
    rule: Rule


def _compile(node: Node) -> Matcher:
    """Compile the tree to one plain function. A rule is matched often, so its tree should be walked only once."""
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
    """Return the candidate keys of a node.

    For AND these are the keys of the part whose most common key is the rarest. For OR these are the keys of all parts.
    """
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
    """Return the candidate clauses of a node.

    For AND these combine the rarest part with as many other parts as keep the number of clauses small. For OR these
    are the clauses of all parts.
    """
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
