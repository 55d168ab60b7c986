"""A rule, ready to match and to explain why it matches an event or not."""

from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass
from typing import Any

from filters.entities import Indices
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, Key, estimate_rarity, rarest_key
from filters.registry import Registry
from filters.rules.attributes import UserCondition
from filters.rules.condition import RuleError
from filters.rules.contradictions import reach_of_rule
from filters.rules.parser import And, Node, Operator, Or, format_node, node_column, parse_rule

MAX_CLAUSES = 16
"""Maximum number of exact clauses of a rule. With more clauses, the index lookup costs more than matching the rule."""
MAX_CANDIDATE_CLAUSES = 4
"""Maximum number of candidate clauses of a rule without exact clauses, unless its rarest part alone needs more."""

Matcher = Callable[[Event], bool]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why one part of a rule matches an event or not. A part is an operator, or a group joined by AND or OR.

    Attributes:
        text: Canonical text of the part.
        column: Where the part begins in the rule as written, in code points from 1.
        why: The reason, as a sentence without a full stop.
        indices: Start and end, in code points, of the places in the event's text that fulfil an operator.
        parts: Explanations of the parts of a group.
        error: The exception that a filter raised in this part, or None. An operator that raised does not match.
    """

    text: str
    column: int
    matched: bool
    why: str
    indices: tuple[Indices, ...] = ()
    parts: tuple["Explanation", ...] = ()
    negated: bool = False
    error: Exception | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON. The member ``parts`` is present only for a group."""
        explanation: dict[str, Any] = {name: getattr(self, name) for name in ("text", "column", "matched", "why")}
        explanation["indices"] = [list(span) for span in self.indices]
        return {**explanation, "parts": [part.to_json() for part in self.parts]} if self.parts else explanation

    def matched_operators(self) -> Iterator["Explanation"]:
        """Return the operators that made the rule match: those without a minus, in groups that match."""
        if self.matched and not self.parts and not self.negated:
            yield self
        if self.matched:
            for part in self.parts:
                yield from part.matched_operators()


class Rule:
    """One rule, such as ``tea lang:en``. Immutable. Rules with equal canonical ``text`` are equal.

    Attributes:
        node: The tree of the rule.
        matches: Function that returns whether an event matches. It does not catch what a plug-in filter raises.
        index_terms: How the index finds the rule: by exact or by candidate clauses, or None if any event may match.
        kinds: The kinds of events that may match, none if the rule contradicts itself.
        languages: Codes (:func:`filters.tables.whole_language`) of the languages of which an event must have one; none
            of them allows all.
    """

    __slots__ = ("index_terms", "kinds", "languages", "matches", "node", "text")

    matches: Matcher

    def __init__(self, node: Node) -> None:
        self.node = node
        self.text = format_node(node)
        self.matches = _compile(node)
        self.index_terms = _index_terms_of(node)
        self.kinds, self.languages = reach_of_rule(node)

    @classmethod
    def parse(cls, text: str, registry: Registry) -> "Rule":
        """Parse the text of a rule. Raises :class:`filters.rules.condition.RuleError`, and no other exception."""
        return cls(parse_rule(text, registry))

    @property
    def has_keys(self) -> bool:
        """Whether each matching event has one of some index keys, those of :meth:`keys`, which takes longer."""
        return self.index_terms is not None and self.index_terms.has_keys

    def keys(self) -> frozenset[Key] | None:
        """Return index keys of which each matching event has at least one. None if the rule has no such keys."""
        return None if self.index_terms is None else self.index_terms.keys()

    def may_match(self, kinds: frozenset[str], languages: frozenset[str] = frozenset()) -> bool:
        """Whether an event of one of the kinds, and in one of the languages if any is given, may match.

        ``languages`` are codes (:func:`filters.tables.whole_language`). It takes no time for a long rule, because the
        event loop asks for all rules of a stream.
        """
        if self.kinds.isdisjoint(kinds):
            return False
        return not languages or not self.languages or not self.languages.isdisjoint(languages)

    def logins(self) -> frozenset[str]:
        """Return the logins of the users that the rule names in ``from:``, ``to:`` and ``retweets_of:``."""
        return frozenset(login for _, login in _find_logins(self.node))

    def check_logins(self, known: Container[str]) -> None:
        """Raise RuleError, with the column of the operator, if the rule names a login that is not in ``known``."""
        for operator, login in _find_logins(self.node):
            if login not in known:
                problem = f"{operator.text} never matches, because no user is named {login}"
                raise RuleError(problem, column=operator.column, expected="the id or login of a user")

    def explain(self, event: Event) -> Explanation:
        """Return why the rule and each of its parts match the event or not."""
        return _explain_node(self.node, event)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rule) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<Rule {self.text}>"


@dataclass(frozen=True, slots=True)
class NamedRule:
    """A rule with its ``id``, which the server chooses, and its ``tag``, which the client chooses (may be empty)."""

    id: str
    tag: str
    rule: Rule


def _find_logins(node: Node) -> Iterator[tuple[Operator, str]]:
    """Return each operator that names a user by login, and the case-folded login."""
    if not isinstance(node, Operator):
        for part in node.parts:
            yield from _find_logins(part)
    elif isinstance(node.condition, UserCondition) and not node.condition.is_id:
        yield node, node.condition.user


def _explain_node(node: Node, event: Event) -> Explanation:
    if isinstance(node, Operator):
        text, condition = format_node(node), node.condition
        try:
            matched, why = condition.matches(event) is not node.negated, condition.describe(event)
            indices = tuple(condition.indices(event))
        except Exception as error:  # noqa: BLE001 - a plug-in filter may raise anything, and the explanation reports it
            why = f"it raised {type(error).__name__}"
            return Explanation(text, node.column, matched=False, why=why, error=error)
        return Explanation(text, node.column, matched, why, indices, negated=node.negated)
    parts = tuple(_explain_node(part, event) for part in node.parts)
    if isinstance(node, And):
        missing = [part.text for part in parts if not part.matched]
        matched, why = not missing, f"does not hold: {', '.join(missing)}" if missing else "all parts hold"
    else:
        found = [part.text for part in parts if part.matched]
        matched, why = bool(found), f"holds: {', '.join(found)}" if found else "no part holds"
    failed = next((part.error for part in parts if part.error is not None), None)
    return Explanation(format_node(node), node_column(node), matched, why, parts=parts, error=failed)


def _compile(node: Node) -> Matcher:
    """Return one function that evaluates the tree of a rule. It must be fast, because it is called for many events."""
    if isinstance(node, Operator):
        holds = node.condition.matches
        return (lambda event: not holds(event)) if node.negated else holds
    checks = tuple(map(_compile, node.parts))
    decisive = isinstance(node, Or)  # the first part with this result decides

    def group(event: Event) -> bool:
        for check in checks:
            if check(event) is decisive:
                return decisive
        return not decisive

    return group


def _index_terms_of(node: Node) -> IndexTerms | None:
    """Return the clauses (sets of index keys) of a rule's part: all of them exact, or all candidates.

    Candidates prove no match, but each matching event has all keys of at least one of them. Return None if any event
    may match. For OR these are the clauses of all parts. For AND each clause of one part is joined with each of the
    others: of all parts, if they are exact and make at most MAX_CLAUSES, else of the rarest parts, as long as there are
    at most MAX_CANDIDATE_CLAUSES.
    """
    if isinstance(node, Operator):
        return None if node.negated else _terms_of_condition(node.condition.index_terms())
    parts = list(map(_index_terms_of, node.parts))
    found = [terms for terms in parts if terms is not None]
    exact = len(found) == len(parts) and not any(terms.candidates for terms in found)
    if isinstance(node, Or):
        if len(found) < len(parts):
            return None
        joined: Collection[Clause] = {clause for terms in found for clause in (*terms.exact, *terms.candidates)}
        return IndexTerms(joined) if exact and len(joined) <= MAX_CLAUSES else IndexTerms((), joined)
    if not found:
        return None
    if exact:
        joined = [frozenset[Key]()]
        for terms in found:
            if len(joined) <= MAX_CLAUSES:
                joined = _join_clauses(joined, terms.exact)
        if len(joined) <= MAX_CLAUSES:
            return IndexTerms(joined)
    rarest = sorted([terms.exact or terms.candidates for terms in found], key=_rarity_of_commonest, reverse=True)
    joined = rarest[0]
    for clauses in rarest[1:]:
        if len(joined) * len(clauses) <= MAX_CANDIDATE_CLAUSES:
            joined = _join_clauses(joined, clauses)
    return IndexTerms((), joined)


def _terms_of_condition(terms: IndexTerms | None) -> IndexTerms | None:
    """Return index terms that have clauses of one kind only, exact or candidates, as rules need them.

    ``terms`` are those of an operator. Those of a plug-in may have boxes, dynamic keys or both kinds of clauses; then
    each of their keys becomes a candidate clause. Return None if any event may match.
    """
    if terms is None or not (terms.boxes or terms.dynamic_keys or (terms.exact and terms.candidates)):
        return terms
    keys = terms.keys()
    return None if keys is None else IndexTerms((), [frozenset((key,)) for key in keys])


def _join_clauses(some: Collection[Clause], more: Collection[Clause]) -> Collection[Clause]:
    return frozenset(one | other for one in some for other in more)


def _rarity_of_commonest(clauses: Collection[Clause]) -> tuple[bool, int, str]:
    return min((estimate_rarity(rarest_key(clause)) for clause in clauses if clause), default=(True, 0, ""))
