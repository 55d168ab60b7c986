"""What clients ask for, parsed once for all who ask the same."""

from functools import lru_cache

from filters.combine import Subscription
from filters.params import parse_subscription
from filters.registry import Registry
from filters.rules.rule import Rule

KEPT = 1024
SHORT_CHARS = 1024
"""So many subscriptions are kept, of so many characters: a thousand long ones would be a gigabyte."""

RULES_KEPT = 8192
RULE_CHARS = 256
"""So many rules of so many characters are kept, where equal ones of different users and streams are one object.

A rule weighs 3 KB, one of a thousand characters 40.
"""


class Subscriptions:
    """Parses the filters' parameters; equal short ones give the same immutable subscription.

    ``separators`` are how parameters that may be given several times are joined, where that is no comma.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.separators = {one.name: one.separator for one in registry.all() if one.separator != ","}
        self._kept = lru_cache(KEPT)(self._parse)
        self._rules = lru_cache(RULES_KEPT)(self._rule)

    def parse(
        self, parameters: dict[str, str], *, explain: bool = False, impersonal: bool | None = None
    ) -> Subscription:
        """The subscription that ``parameters`` ask for; raises filters' ParameterError."""
        pairs = tuple(sorted(parameters.items()))
        short = sum(len(name) + len(value) for name, value in pairs) <= SHORT_CHARS
        return (self._kept if short else self._parse)(pairs, explain, impersonal)

    def _parse(
        self, pairs: tuple[tuple[str, str], ...], explain: bool, impersonal: bool | None  # noqa: FBT001 - lru_cache
    ) -> Subscription:
        return parse_subscription(dict(pairs), self.registry, explain=explain, impersonal=impersonal)

    def rule(self, text: str) -> Rule:
        """The rule that ``text`` says; raises filters' ParameterError."""
        return self._rules(text) if len(text) <= RULE_CHARS else self._rule(text)

    def _rule(self, text: str) -> Rule:
        return Rule.parse(text, self.registry)
