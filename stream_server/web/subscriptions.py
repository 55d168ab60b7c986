"""What clients ask for, parsed once for all who ask the same."""

from functools import lru_cache

from filters.combine import Subscription
from filters.params import parse_subscription
from filters.registry import Registry

KEPT = 1024
SHORT_CHARS = 1024
"""So many subscriptions are kept, of so many characters: a thousand long ones would be a gigabyte."""


class Subscriptions:
    """Parses the filters' parameters; equal short ones give the same immutable subscription."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._kept = lru_cache(KEPT)(self._parse)

    def parse(self, parameters: dict[str, str]) -> Subscription:
        """The subscription that ``parameters`` ask for; raises filters' ParameterError."""
        pairs = tuple(sorted(parameters.items()))
        short = sum(len(name) + len(value) for name, value in pairs) <= SHORT_CHARS
        return self._kept(pairs) if short else self._parse(pairs)

    def _parse(self, pairs: tuple[tuple[str, str], ...]) -> Subscription:
        return parse_subscription(dict(pairs), self._registry)
