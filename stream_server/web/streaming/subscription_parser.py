"""What clients ask for, parsed once for all who ask the same."""

from functools import lru_cache

from aiohttp import web

from filters.params import parse_subscription
from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription

MAX_CACHED_SUBSCRIPTIONS = 1024
MAX_CACHED_SUBSCRIPTION_CHARS = 1024
"""So many subscriptions are kept, of so many characters: a thousand long ones would be a gigabyte."""

MAX_CACHED_RULES = 8192
MAX_CACHED_RULE_CHARS = 256
"""So many rules of so many characters are kept, where equal ones of different users and streams are one object.

A rule weighs 3 KB, one of a thousand characters 40.
"""


class SubscriptionParser:
    """Parses the filters' parameters; equal short ones give the same immutable subscription.

    ``separators`` are how parameters that may be given several times are joined, where that is no comma.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.separators = {one.name: one.separator for one in registry.all() if one.separator != ","}
        self._parse_cached = lru_cache(MAX_CACHED_SUBSCRIPTIONS)(self._parse)
        self._parse_rule_cached = lru_cache(MAX_CACHED_RULES)(self._parse_rule)

    def parse(
        self, parameters: dict[str, str], *, explain: bool = False, impersonal: bool | None = None
    ) -> Subscription:
        """The subscription that ``parameters`` ask for; raises filters' ParameterError."""
        pairs = tuple(sorted(parameters.items()))
        short = sum(len(name) + len(value) for name, value in pairs) <= MAX_CACHED_SUBSCRIPTION_CHARS
        return (self._parse_cached if short else self._parse)(pairs, explain, impersonal)

    def _parse(
        self,
        pairs: tuple[tuple[str, str], ...],
        explain: bool,
        impersonal: bool | None,  # noqa: FBT001 - lru_cache
    ) -> Subscription:
        return parse_subscription(dict(pairs), self.registry, explain=explain, viewer_independent=impersonal)

    def parse_rule(self, text: str) -> Rule:
        """The rule that ``text`` says; raises filters' ParameterError."""
        return self._parse_rule_cached(text) if len(text) <= MAX_CACHED_RULE_CHARS else self._parse_rule(text)

    def _parse_rule(self, text: str) -> Rule:
        return Rule.parse(text, self.registry)


SUBSCRIPTION_PARSER = web.AppKey("subscriptions", SubscriptionParser)
"""The app's parser."""
