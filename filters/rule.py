"""``rule`` and ``rules``: expressions of the rule language, written with a stream or saved by its user."""

import re
from collections.abc import Collection, Hashable, Iterable, Sequence
from copy import copy
from typing import ClassVar, Self

from filters.base import Filter, FilterFailure, MatchedItem, Role
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import Clause, IndexTerms, Key
from filters.registry import Registry, installed_registry
from filters.rules.error import RuleError
from filters.rules.named_rule import NamedRule
from filters.rules.operators import find_operator
from filters.rules.rule import Rule

MAX_RULES = 100
"""The most rules that are written with one stream."""

MAX_CLAUSES = 64
"""The most clauses that rules are said in together; more of them are looked for by their keys."""

MAX_UNINDEXED_RULES = 4
"""So many rules are asked without looking for their keys first."""

MAX_KEYS = 4096
"""Rules with more keys are asked about every event: that is one look at their own keys, and such a list is made and
unmade with every change."""

_TAG = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_-]{0,59}):")


class Rules(Filter):
    """Events that one of the rules matches, each rule known by an id and perhaps a tag.

    There may be a thousand: each is looked at only for events with one of its keys.
    """

    __slots__ = ("_by_key", "_rules", "_rules_without_keys")

    name: ClassVar[str] = "rule"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "A rule, or `tag:rule`; may be given several times, or as several lines."
    usable_in_rules: ClassVar[bool] = False
    separator: ClassVar[str] = "\n"
    reports_matches: ClassVar[bool] = True

    def __init__(self, rules: Iterable[NamedRule] = ()) -> None:
        self._rules: dict[int, NamedRule] = {}
        self._by_key: dict[Key, tuple[int, ...]] = {}
        self._rules_without_keys: set[int] = set()
        self._add_rules(rules)

    def __len__(self) -> int:
        return len(self._rules)

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls.parse_with(value, installed_registry())

    @classmethod
    def parse_with(cls, value: str, registry: Registry) -> Self:
        """The same where the operators are those of ``registry``. Raises ParameterError; of a rule, RuleError."""
        lines = value.split("\n")
        if len(lines) > MAX_RULES:
            message = f"rule is taken at most {MAX_RULES} times, not {len(lines)}"
            raise ParameterError(message, param="rule", code="too_many")
        return cls(_parse_line(line, nth, len(lines), registry) for nth, line in enumerate(lines, start=1))

    @property
    def canonical_form(self) -> Hashable:
        return frozenset(self._rules.values())

    def candidate_keys(self) -> frozenset[Key] | None:
        return None if self._rules_without_keys else frozenset(self._by_key)

    def exact_clauses(self) -> Collection[Clause] | None:
        found: set[Clause] = set()
        for named in self._rules.values():
            clauses = named.rule.exact_clauses()
            if clauses is None:
                return None
            found.update(clauses)
            if len(found) > MAX_CLAUSES:
                return None
        return found

    def index_terms(self) -> IndexTerms | None:
        """Rules that can be said exactly are proof; of many, each is looked for by its keys alone, of too many none."""
        if self._rules_without_keys or len(self._by_key) > MAX_KEYS:
            return None
        proofs, hints = set[Clause](), set[Clause]()
        for named in self._rules.values():
            clauses = named.rule.exact_clauses()
            if clauses is None:
                hints.update(named.rule.candidate_clauses())
            else:
                proofs.update(clauses)
            if len(proofs) + len(hints) > MAX_CLAUSES:
                return IndexTerms((), [frozenset((key,)) for key in self._by_key])
        return IndexTerms(proofs, hints)

    def matching_rules(self, event: Event) -> list[NamedRule]:
        """The rules that match, in their order; raises Failed naming the one that raises."""
        return [named for named in self._candidates(event) if self._rule_matches(named, event)]

    def matches(self, event: Event) -> bool:
        for named in self._candidates(event):  # noqa: SIM110 - most streams have a rule or two: no generator for them
            if self._rule_matches(named, event):
                return True
        return False

    def matched_items(self, event: Event) -> list[MatchedItem]:
        return [_matched_item(named) for named in self.matching_rules(event)]

    def explain(self, event: Event) -> list[MatchedItem]:
        return [self._explain_rule(named, event) for named in self.matching_rules(event)]

    def without_failed(self, rule_id: str | None) -> Filter:
        return super().without_failed(rule_id) if rule_id is None else self.with_changes((), (rule_id,))

    def with_changes(self, added: Sequence[NamedRule], removed: Collection[str]) -> Self:
        """The same after some rules were added and others taken away; costs what changes, and a copy of dicts."""
        left = copy(self)
        left._apply_changes(added, removed)  # noqa: SLF001 - nobody has it yet
        return left

    def _apply_changes(self, added: Iterable[NamedRule], removed: Collection[str]) -> None:
        self._rules, self._by_key, self._rules_without_keys = (
            dict(self._rules),
            dict(self._by_key),
            set(self._rules_without_keys),
        )
        self._remove_rules(removed)
        self._add_rules(added)

    def _add_rules(self, added: Iterable[NamedRule]) -> None:
        for nth, named in enumerate(added, start=next(reversed(self._rules), -1) + 1):
            self._rules[nth] = named
            keys = named.rule.candidate_keys()
            if keys is None:
                self._rules_without_keys.add(nth)
            for key in keys or ():
                self._by_key[key] = (*self._by_key.get(key, ()), nth)

    def _remove_rules(self, removed: Collection[str]) -> None:
        for nth in [nth for nth, named in self._rules.items() if named.id in removed]:
            self._rules_without_keys.discard(nth)
            for key in self._rules.pop(nth).rule.candidate_keys() or ():
                left = tuple(one for one in self._by_key.pop(key) if one != nth)
                if left:
                    self._by_key[key] = left

    def _candidates(self, event: Event) -> Iterable[NamedRule]:
        if len(self._rules) <= MAX_UNINDEXED_RULES:
            return self._rules.values()
        found = {nth for key in self._by_key.keys() & event.index_keys for nth in self._by_key[key]}
        return map(self._rules.__getitem__, sorted(found.union(self._rules_without_keys)))

    def _rule_matches(self, named: NamedRule, event: Event) -> bool:
        try:
            return named.rule.matches(event)
        except Exception as error:
            raise FilterFailure(self, error, named.id) from error

    def _explain_rule(self, named: NamedRule, event: Event) -> MatchedItem:
        told = named.rule.explain(event)
        if told.error is not None:
            raise FilterFailure(self, told.error, named.id) from told.error
        parts = [
            {"part": part.text, "indices": [list(span) for span in part.indices]} for part in told.matched_operators()
        ]
        return {**_matched_item(named), "filter": "rule", "parts": parts}


class SavedRules(Rules):
    """The rules that the asking user has saved, as they change; empty until it is said which these are."""

    __slots__ = ("__weakref__", "user_id")

    name: ClassVar[str] = "rules"
    help: ClassVar[str] = "`saved`: the rules that you have saved (`/v1/rules`), as they change."
    separator: ClassVar[str] = ","

    def __init__(self, user_id: str = "", rules: Iterable[NamedRule] = ()) -> None:
        super().__init__(rules)
        self.user_id = user_id

    @classmethod
    def parse_with(cls, value: str, registry: Registry) -> Self:  # noqa: ARG003 - which rules there are is said later
        if value != "saved":
            raise ParameterError("rules is `saved` or is not there", param="rules")
        return cls()

    @property
    def canonical_form(self) -> Hashable:
        return self.user_id, super().canonical_form

    @property
    def rule_ids(self) -> list[str]:
        """Of these rules, in their order."""
        return [named.id for named in self._rules.values()]


def _matched_item(named: NamedRule) -> MatchedItem:
    return {"id": named.id, "tag": named.tag}


def _parse_line(line: str, nth: int, count: int, registry: Registry) -> NamedRule:
    """One rule with the tag before it, known by its place among so many."""
    found = _TAG.match(line)
    tag = found.group(1) if found and not _is_reserved(found.group(1).lower(), registry) else ""
    before = f"rule {nth}: " if count > 1 else ""
    begins = len(tag) + 1 if tag else 0
    try:
        return NamedRule(f"r{nth}", tag, Rule.parse(line[begins:], registry))
    except RuleError as error:
        raise error.shifted(begins, before) from error


def _is_reserved(name: str, registry: Registry) -> bool:
    """Whether it is the name of an operator, or of a filter that is none and might be taken for one."""
    return find_operator(name, registry) is not None or name in registry.names()
