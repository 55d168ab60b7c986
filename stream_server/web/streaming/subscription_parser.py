"""Parses filter parameters into subscriptions (the filters of a stream). Clients with equal filters share one."""

from functools import lru_cache

from aiohttp import web

from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription, parse_subscription
from stream_server.runtime.work_thread import WorkThread

MAX_CACHED_SUBSCRIPTIONS = 1024
MAX_CACHED_SUBSCRIPTION_CHARS = 1024
"""Longest subscription that the cache keeps, in characters. A thousand very long ones would take a gigabyte."""

MAX_PENDING_PARSES = 10_000
"""Most rules and subscriptions that are parsed or wait for it. Each open request has one at most."""

MAX_CACHED_RULES = 8192
"""Most rules in the cache. Equal rules of different users and streams share one object."""

MAX_CACHED_RULE_CHARS = 256
"""Longest rule that the cache keeps, in characters. A rule takes 3 KB of memory, one of a thousand characters 40 KB."""


class SubscriptionParser:
    """Parses filter parameters into immutable subscriptions. A cache lets equal short parameters share one of them.

    Attributes:
        thread: Runs what may take long, because a client determines how long its rules are. The owner of the parser
            must close it.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        busy = "too many long rules at the same time; try again"
        self.thread = WorkThread("rules", max_pending=MAX_PENDING_PARSES, busy_message=busy)
        # what joins the values of each parameter that may be repeated, if not a comma
        self.separators = {each.name: each.separator for each in registry.all() if each.separator != ","}
        self._parse_cached = lru_cache(MAX_CACHED_SUBSCRIPTIONS)(self._parse)
        self._parse_rule_cached = lru_cache(MAX_CACHED_RULES)(self._parse_rule)

    async def parse(
        self, parameters: dict[str, str], *, explain: bool = False, impersonal: bool | None = None
    ) -> Subscription:
        """Return the subscription (the parsed filters) for ``parameters``.

        Raises ParameterError for an invalid filter, and Unavailable if too many long subscriptions are being parsed.
        With ``explain`` each message says which filters matched. ``impersonal`` says whether every caller gets the same
        messages; with None the filters determine this.
        """
        short = self.parse_short(parameters, explain=explain, impersonal=impersonal)
        if short is not None:
            return short
        pairs = tuple(sorted(parameters.items()))
        return await self.thread.run(lambda: self._parse(pairs, explain, impersonal))

    def parse_short(
        self, parameters: dict[str, str], *, explain: bool = False, impersonal: bool | None = None
    ) -> Subscription | None:
        """Do as :meth:`parse` for short parameters. Return None for long ones, which need a thread."""
        pairs = tuple(sorted(parameters.items()))
        if sum(len(name) + len(value) for name, value in pairs) > MAX_CACHED_SUBSCRIPTION_CHARS:
            return None
        return self._parse_cached(pairs, explain, impersonal)

    def _parse(
        self,
        pairs: tuple[tuple[str, str], ...],
        explain: bool,  # noqa: FBT001 - lru_cache keys positional arguments
        impersonal: bool | None,  # noqa: FBT001 - lru_cache keys positional arguments
    ) -> Subscription:
        """Parse filter parameters, given as sorted pairs, because the cache needs a hashable key."""
        return parse_subscription(dict(pairs), self.registry, explain=explain, viewer_independent=impersonal)

    async def parse_rule(self, text: str) -> Rule:
        """Parse the text of one filter rule. Raises ParameterError for an invalid rule."""
        parse = self._parse_rule_cached if len(text) <= MAX_CACHED_RULE_CHARS else self._parse_rule
        return await self.thread.run(lambda: parse(text))

    def _parse_rule(self, text: str) -> Rule:
        return Rule.parse(text, self.registry)


SUBSCRIPTION_PARSER = web.AppKey("subscriptions", SubscriptionParser)
