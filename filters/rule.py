"""The filters ``rule`` and ``rules``: rules that a client writes with the stream, or that its user has saved.

Rules have a limited time, so that those of one user cannot block the event loop. One event may cost FREE_SECONDS. More
than that is taken from an allowance, which refills slowly. A filter that is costly again and again uses its allowance
up. It then raises `TooCostly`, and the server disables it on its stream.
"""

import re
import time
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import ClassVar, Self

from filters.base import Filter, FilterFailure, MatchedItem, Role
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import META_KEY_PREFIX, Clause, IndexTerms, Key
from filters.registry import Registry, installed_registry
from filters.rules.condition import RuleError
from filters.rules.operators import find_operator
from filters.rules.rule import NamedRule, Rule

FREE_SECONDS = 0.0005
"""Processor time in seconds that each event may cost. A hundred ordinary rules take a tenth of it."""

MAX_EVENT_SECONDS = 0.002
"""Most processor time in seconds that one event may cost."""

ALLOWANCE_SECONDS = 0.02
"""Largest allowance, in seconds of processor time."""


class TooCostly(Exception):
    """The rules of a filter took more processor time than a filter may take."""

    def __init__(self) -> None:
        super().__init__("its rules take too long")


class MatchingBudget:
    """The processor time that one filter may use: an allowance, which refills as time passes.

    It counts processor time, so that a busy machine does not disable filters.
    """

    __slots__ = ("_allowance", "_cpu_started_at", "_monotonic", "_started_at", "_thread_time")

    def __init__(
        self, thread_time: Callable[[], float] = time.thread_time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._thread_time = thread_time
        self._monotonic = monotonic
        self._allowance = ALLOWANCE_SECONDS
        self._started_at = monotonic()
        self._cpu_started_at = 0.0

    def start(self) -> None:
        """Begin to count the time for one event. Raises `TooCostly` if the allowance is used up."""
        now = self._monotonic()
        refill = (now - self._started_at) * 0.005  # so 0.5 % of the time
        self._allowance = min(ALLOWANCE_SECONDS, self._allowance + refill)
        self._started_at = now
        if self._allowance <= 0:
            raise TooCostly
        self._cpu_started_at = self._thread_time()

    def check(self) -> None:
        """Raise `TooCostly` if the event has taken more time than one event may. Then the next events raise it too."""
        if self._excess() > min(self._allowance, MAX_EVENT_SECONDS):
            self._allowance = -ALLOWANCE_SECONDS
            raise TooCostly

    def finish(self) -> None:
        """End the count for the event. Subtract from the allowance what the event took beyond FREE_SECONDS."""
        self._allowance -= self._excess()

    def _excess(self) -> float:
        if (
            self._monotonic() - self._started_at <= FREE_SECONDS
        ):  # as nearly always; the other clock takes nine times longer
            return 0.0
        return max(0.0, self._thread_time() - self._cpu_started_at - FREE_SECONDS)


MAX_RULES = 100  # written with one stream

MAX_CLAUSES = 64
"""Maximum number of clauses of all rules together. If there are more, the index finds the rules by single keys."""
MAX_KEYS = 4096
"""Maximum number of index keys of all rules together. With more keys the index asks the filter about every event.

Such a check looks up the event's keys in the filter's own table. The index would rebuild a long list at every change.
"""

FEW_RULES = 4
"""Number of rules that a filter checks one by one for each event: to look up their keys first would take longer."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD_OPERATOR = re.compile(r"(?:^|[ (-])(?:or|and|not)(?=[ )]|$)")  # in a canonical text without quotes

_TAG = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]{0,59}):")


class Rules(Filter):
    """The filter ``rule``: events that match at least one of its rules. Each rule has an id and perhaps a tag.

    If there are many rules, the filter checks only those that share an index key with the event or have no keys. Long
    rules have a budget of processor time, see :class:`MatchingBudget`. If they need more, the filter fails.
    """

    __slots__ = ("_budget", "_by_key", "_chars", "_has_meta_keys", "_rules", "_rules_without_keys")

    name: ClassVar[str] = "rule"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "A rule, or `tag:rule`; may be repeated, or written as several lines."
    usable_in_rules: ClassVar[bool] = False
    separator: ClassVar[str] = "\n"
    reports_matches: ClassVar[bool] = True

    def __init__(self, rules: Iterable[NamedRule] = ()) -> None:
        self._rules: dict[int, NamedRule] = {}
        self._by_key: dict[Key, tuple[int, ...]] | None = None  # few rules need none
        self._has_meta_keys = False
        self._rules_without_keys: set[int] = set()
        self._chars = 0
        self._budget = MatchingBudget()
        self._add_rules(rules)

    def __len__(self) -> int:
        return len(self._rules)

    def logins(self) -> frozenset[str]:
        """Return the logins of the users that the rules name in ``from:``, ``to:`` and ``retweets_of:``."""
        return frozenset[str]().union(*(named.rule.logins() for named in self._rules.values()))

    def unmatchable(self, kinds: frozenset[str], languages: frozenset[str]) -> list[str]:
        """Return the texts of the rules that no event of these kinds and languages can match.

        ``languages`` are codes (:func:`filters.tables.whole_language`); none of them allows all.
        """
        return [named.rule.text for named in self._rules.values() if not named.rule.may_match(kinds, languages)]

    def with_word_operators(self) -> list[str]:
        """Return the texts of the rules that search for a word which other languages use as an operator."""
        texts = (named.rule.text for named in self._rules.values())
        return [text for text in texts if _WORD_OPERATOR.search(_QUOTED.sub("", text))]

    def check_logins(self, known: Container[str]) -> None:
        """Raise RuleError, with the column in its line, for a rule that names a login which is not in ``known``."""
        for nth, named in enumerate(self._rules.values(), start=1):
            with _located(nth, len(self._rules), named.tag):
                named.rule.check_logins(known)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls.parse_with(value, installed_registry())

    @classmethod
    def parse_with(cls, value: str, registry: Registry) -> Self:
        """Parse one rule per line. Raises ParameterError for too many lines, and RuleError for an invalid rule."""
        lines = value.split("\n")
        if len(lines) > MAX_RULES:
            message = f"rule may be given at most {MAX_RULES} times, not {len(lines)}"
            raise ParameterError(message, param="rule", code="too_many")
        return cls(_parse_line(line, nth, len(lines), registry) for nth, line in enumerate(lines, start=1))

    @property
    def canonical_form(self) -> Hashable:
        return frozenset(self._rules.values())

    def index_terms(self) -> IndexTerms | None:
        """Return how the index finds the rules: by clauses, or by single keys if there are over MAX_CLAUSES clauses.

        Return None if a rule has no keys or if there are over MAX_KEYS keys. Then the server checks every event.
        """
        if self._rules_without_keys:
            return None
        exact, candidates = set[Clause](), set[Clause]()
        for named in self._rules.values():
            terms = named.rule.index_terms or IndexTerms(())
            exact.update(terms.exact)
            candidates.update(terms.candidates)
            if len(exact) + len(candidates) > MAX_CLAUSES:
                by_key = self._rules_by_key()
                return IndexTerms((), [frozenset((key,)) for key in by_key]) if len(by_key) <= MAX_KEYS else None
        return IndexTerms(exact, candidates)

    def matching_rules(self, event: Event) -> list[NamedRule]:
        """Return the rules that match the event, oldest first. If a rule raises, raises FilterFailure with its id."""
        return [named for named in self._metered(self._candidates(event)) if self._rule_matches(named, event)]

    def matches(self, event: Event) -> bool:
        for named in self._metered(self._candidates(event)):  # noqa: SIM110 - a generator would be slower
            if self._rule_matches(named, event):
                return True
        return False

    def matched_items(self, event: Event) -> list[MatchedItem]:
        return [_matched_item(named) for named in self.matching_rules(event)]

    def explain(self, event: Event) -> list[MatchedItem]:
        items: list[MatchedItem] = []
        for named in self._metered(self.matching_rules(event)):
            explanation = named.rule.explain(event)
            if explanation.error is not None:
                raise FilterFailure(self, explanation.error, named.id) from explanation.error
            operators = explanation.matched_operators()
            parts = [{"part": part.text, "indices": [list(span) for span in part.indices]} for part in operators]
            items.append({**_matched_item(named), "filter": "rule", "parts": parts})
        return items

    def without_failed(self, rule_id: str | None) -> Filter:
        return super().without_failed(rule_id) if rule_id is None else self.with_changes((), (rule_id,))

    def with_changes(self, added: Sequence[NamedRule], removed: Collection[str]) -> Self:
        """Return a copy of the filter with the rules ``added``, and without the rules whose ids are in ``removed``.

        An added rule with the id of another one takes its place.
        """
        changed = copy(self)
        changed._change_rules(added, removed)  # noqa: SLF001 - a new object of this class
        return changed

    def _change_rules(self, added: Iterable[NamedRule], removed: Collection[str]) -> None:
        self._rules, self._rules_without_keys = dict(self._rules), set(self._rules_without_keys)
        self._by_key = None if self._by_key is None else dict(self._by_key)
        for nth in [nth for nth, named in self._rules.items() if named.id in removed]:
            self._forget(nth)
            del self._rules[nth]
        self._add_rules(added)

    def _forget(self, nth: int) -> None:
        rule = self._rules[nth].rule
        self._rules_without_keys.discard(nth)
        self._chars -= len(rule.text)
        if self._by_key is not None:
            _unlist_keys(self._by_key, nth, rule)

    def _add_rules(self, added: Iterable[NamedRule]) -> None:
        places = {named.id: nth for nth, named in self._rules.items()}
        for named in added:
            nth = places.get(named.id)
            if nth is None:
                nth = next(reversed(self._rules), -1) + 1
            else:
                self._forget(nth)
            self._rules[nth] = named
            self._chars += len(named.rule.text)
            if not named.rule.has_keys:
                self._rules_without_keys.add(nth)
            if self._by_key is not None:
                _list_keys(self._by_key, nth, named.rule)
        if len(self._rules) > FEW_RULES:
            self._has_meta_keys = any(key.startswith(META_KEY_PREFIX) for key in self._rules_by_key())

    def _rules_by_key(self) -> dict[Key, tuple[int, ...]]:
        if self._by_key is None:
            self._by_key = {}
            for nth, named in self._rules.items():
                _list_keys(self._by_key, nth, named.rule)
        return self._by_key

    def _candidates(self, event: Event) -> Iterable[NamedRule]:
        if len(self._rules) <= FEW_RULES:
            return self._rules.values()
        by_key = self._rules_by_key()
        keys = event.index_keys if self._has_meta_keys else event.rule_keys  # without reading `meta`
        found = {nth for key in by_key.keys() & keys for nth in by_key[key]}
        return map(self._rules.__getitem__, sorted(found.union(self._rules_without_keys)))

    def _metered(self, rules: Iterable[NamedRule]) -> Iterable[NamedRule]:
        """Yield the rules to evaluate. If they are long and evaluating them takes too long, raise FilterFailure.

        Rules with at most 400 characters together need no MatchingBudget: no event can make them slow.
        """
        return rules if self._chars <= 400 else self._meter(rules)

    def _meter(self, rules: Iterable[NamedRule]) -> Iterator[NamedRule]:
        budget = self._budget
        try:
            budget.start()
            for named in rules:
                budget.check()
                yield named
            budget.finish()
        except GeneratorExit:  # a rule matched, so the others need not be evaluated
            budget.finish()
        except TooCostly as error:
            raise FilterFailure(self, error) from error

    def _rule_matches(self, named: NamedRule, event: Event) -> bool:
        try:
            return named.rule.matches(event)
        except Exception as error:
            raise FilterFailure(self, error, named.id) from error


class SavedRules(Rules):
    """The filter ``rules``: the user's saved rules (``/v1/rules``). The server adds the rules after :meth:`parse`."""

    __slots__ = ("__weakref__", "user_id")

    name: ClassVar[str] = "rules"
    help: ClassVar[str] = "`saved`: the rules that you have saved (`/v1/rules`), including later changes."
    separator: ClassVar[str] = ","

    def __init__(self, user_id: str = "", rules: Iterable[NamedRule] = ()) -> None:
        super().__init__(rules)
        self.user_id = user_id

    @classmethod
    def parse_with(cls, value: str, registry: Registry) -> Self:  # noqa: ARG003 - the server adds the rules later
        if value != "saved":
            raise ParameterError("rules must be `saved` or absent", param="rules")
        return cls()

    @property
    def canonical_form(self) -> Hashable:
        return self.user_id, super().canonical_form

    @property
    def named_rules(self) -> Collection[NamedRule]:
        """The saved rules, oldest first."""
        return self._rules.values()


def _list_keys(by_key: dict[Key, tuple[int, ...]], nth: int, rule: Rule) -> None:
    for key in rule.keys() or ():
        by_key[key] = (*by_key.get(key, ()), nth)


def _unlist_keys(by_key: dict[Key, tuple[int, ...]], nth: int, rule: Rule) -> None:
    for key in rule.keys() or ():
        others = tuple(number for number in by_key.pop(key) if number != nth)
        if others:
            by_key[key] = others


def _matched_item(named: NamedRule) -> MatchedItem:
    return {"id": named.id, "tag": named.tag}


def _parse_line(line: str, nth: int, count: int, registry: Registry) -> NamedRule:
    """Parse the ``nth`` line of the parameter ``rule``: a rule, or ``tag:rule``. The rule gets the id ``r<nth>``.

    The name of an operator is no tag: ``from:ada`` is the rule ``from:ada``, and not the rule ``ada`` with a tag.
    """
    found = _TAG.match(line)
    tag = found.group(1) if found else ""
    if tag and (find_operator(tag.lower(), registry) is not None or tag.lower() in registry.names()):
        tag = ""
    with _located(nth, count, tag):
        return NamedRule(f"r{nth}", tag, Rule.parse(line[len(tag) + 1 if tag else 0 :], registry))


@contextmanager
def _located(nth: int, count: int, tag: str) -> Iterator[None]:
    """Name the line (the ``nth`` of ``count``) in each RuleError that the block raises.

    The column of the error then counts from the beginning of the line, with the tag.
    """
    try:
        yield
    except RuleError as error:
        prefix = f"rule {nth}: " if count > 1 else ""
        raise error.shifted(len(tag) + 1 if tag else 0, prefix) from error
