"""Parses filter parameters into subscriptions (the filters of a stream). Clients with equal filters share one."""

import gc
import sys
from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote_plus, urlencode

from aiohttp import web

from filters.registry import Registry
from filters.rule import Rules, SavedRules
from filters.rules.rule import Rule
from filters.subscription import Subscription, parse_subscription
from stream_server.errors import BadRequest
from stream_server.runtime.event_loop import WorkThread
from stream_server.web.limits.processor_time import Payer
from stream_server.web.shared_text import shared
from stream_server.web.streaming.followed_names import find_names

MAX_FILTER_BYTES = 16 * 2**20
"""Most memory of the filters that are remembered: those of about 9,000 streams that all differ."""

_DATA = frozenset({str, tuple, frozenset, dict, list, set, float})
"""Types of the data of filters. What has another type is a part of a filter, or is shared, such as a class."""

_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


class ReadyFilters(NamedTuple):
    """The parsed filters and the options of a stream, the same for every user: nothing has to be read for them.

    Attributes:
        subscription: The parsed filters.
        description: The parameters as a query, for the list of open streams.
        since: The start of the stream as the client wrote it, or None.
        may_warn: Whether the stream may begin with warnings about its filters.
    """

    subscription: Subscription
    description: str
    since: str | None
    may_warn: bool


class UnreadyFilters(NamedTuple):
    """The filters and the options of a stream that a thread must parse, or for which Redis must be asked.

    Attributes:
        parameters: The filters by their names. None of them if they are parsed.
        subscription: The parsed filters. None if a thread must parse them, or Redis must name users before.
        description: As in `ReadyFilters`, and so is ``since``.
        explain: Whether each message says which filters matched.
        impersonal: Whether every caller gets the same messages. None lets the filters determine this.
        may_warn: As in `ReadyFilters`.
    """

    parameters: Mapping[str, str]
    subscription: Subscription | None
    description: str
    since: str | None
    explain: bool
    impersonal: bool | None
    may_warn: bool = True


StreamFilters = ReadyFilters | UnreadyFilters
"""What the parameters of a stream ask for, as far as their text tells it."""


class KnownFilters(dict[str, StreamFilters]):
    """The filters and options of the latest streams, by the text of their query.

    The oldest are forgotten above :data:`MAX_FILTER_BYTES`. ``counted_bytes`` is about what all of them take.
    """

    def __init__(self) -> None:
        self.counted_bytes = 0
        self._sizes = deque[int]()  # in the order of the texts; a filter may grow after it was counted

    def remember(self, text: str, filters: StreamFilters) -> None:
        """Remember the filters that a new text asks for. They must depend on nothing but the text."""
        self[text] = filters
        self._sizes.append(_memory_of(text, filters))
        self.counted_bytes += self._sizes[-1]
        while self.counted_bytes > MAX_FILTER_BYTES:
            del self[next(iter(self))]
            self.counted_bytes -= self._sizes.popleft()


def _memory_of(text: str, filters: StreamFilters) -> int:
    """Return about how many bytes the filters take, by the sizes of the objects to which they refer."""
    if len(text) <= 64 and isinstance(filters, ReadyFilters) and text.isascii():
        return 900 + 35 * len(text)  # to look at their objects would take a fifteenth of the opening of a stream
    found: list[object] = [text, filters.description]
    if filters.subscription is not None:
        found += filters.subscription.bases
    size, seen = 350, set(map(id, found))  # 350 bytes are the entry itself
    while found:
        size += sum(map(sys.getsizeof, found))
        parts = {
            id(part): part for part in gc.get_referents(*found)
            if type(part) in _DATA or type(part).__module__.startswith("filters.")
        }  # fmt: skip
        found = [parts[number] for number in parts.keys() - seen]
        seen |= parts.keys()
    return size


class SubscriptionParser:
    """Parses filter parameters into immutable subscriptions.

    Attributes:
        known: The filters that were parsed lately, by the text of a query.
        thread: Runs what may take long, because a client determines how long its rules are. The owner of the parser
            must close it.
    """

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.known = KnownFilters()
        busy = "too many long rules at the same time; try again"
        self.thread = WorkThread("rules", max_pending=10_000, busy_message=busy)  # each open request has one at most
        # what joins the values of each parameter that may be repeated, if not a comma
        self.separators = {each.name: each.separator for each in registry.all() if each.separator != ","}
        self._parse_rule_cached = lru_cache(8192)(self._parse_rule)

    def read(
        self, parameters: dict[str, str], *, start_parameter: str = "since", impersonal: bool | None = None
    ) -> StreamFilters:
        """Return the filters and options in the parameters. Short filters without names of users are parsed at once.

        Removes from ``parameters`` the flag ``explain`` and the parameter whose name is in ``start_parameter``; the
        others are filters. Raises BadRequest for an invalid flag, and ParameterError for an invalid filter.
        """
        description = describe(parameters)
        since = parameters.pop(start_parameter, None)
        explain = "explain" in parameters and pop_flag(parameters, "explain")
        # Longer ones are parsed in a thread, and are not remembered.
        is_short = sum(map(len, parameters)) + sum(map(len, parameters.values())) <= 1024
        # The protocols of Twitter know ids only.
        if not is_short or (impersonal is None and "follow" in parameters and find_names(parameters["follow"])):
            return UnreadyFilters(parameters, None, description, since, explain, impersonal)
        parsed = parse_subscription(parameters, self.registry, explain=explain, viewer_independent=impersonal)
        has_saved_rules = SavedRules.name in parameters
        may_warn = has_saved_rules or bool(parsed.unindexed_bases or parsed.doubts)
        if has_saved_rules or parsed.uses_me or Rules.name in parameters:
            return UnreadyFilters(_NO_PARAMETERS, parsed, description, since, explain, impersonal, may_warn)
        return ReadyFilters(parsed, description, since, may_warn)

    async def parse(self, filters: UnreadyFilters, parameters: Mapping[str, str], payer: Payer) -> Subscription:
        """Return the subscription (the parsed filters) for ``parameters``, with the options of ``filters``.

        Raises ParameterError for an invalid filter, and Unavailable or RateLimited if too many wait to be parsed.
        """
        parse = partial(parse_subscription, explain=filters.explain, viewer_independent=filters.impersonal)
        return await payer.run_in(self.thread, lambda: parse(parameters, self.registry))

    async def parse_rule(self, text: str, user: str = "") -> Rule:
        """Parse the text of one filter rule in the work thread. Raises ParameterError for an invalid rule.

        The users take turns there, so a caller waits for at most one piece of work of each other user. Rules that were
        saved are parsed without a ``user``: all such callers share one turn. The limits of writes and trials bound the
        time that one user takes.
        """
        # such a rule takes 3 KB of memory, one of a thousand characters 40 KB
        parse = self._parse_rule_cached if len(text) <= 256 else self._parse_rule
        return await self.thread.run(lambda: parse(text), user)

    def _parse_rule(self, text: str) -> Rule:
        return Rule.parse(text, self.registry)


def describe(parameters: dict[str, str]) -> str:
    """Return the parameters as a query string for the list of open streams. Equal ones share one object."""
    if all(map(str.isascii, parameters)) and all(map(str.isascii, parameters.values())):  # in a fifth of the time
        pairs = [f"{name.translate(_ESCAPES)}={value.translate(_ESCAPES)}" for name, value in parameters.items()]
        text = "&".join(pairs)
    else:
        text = urlencode(parameters)
    return shared(text[:500])  # 5,000 ids would take 100 KB


_ESCAPES = {code: escaped for code in range(128) if (escaped := quote_plus(chr(code))) != chr(code)}


def pop_flag(parameters: dict[str, str], name: str) -> bool:
    """Remove the parameter ``name`` and return it as a boolean. Raises BadRequest if it is invalid."""
    text = parameters.pop(name)
    if text not in {"true", "false"}:
        raise BadRequest("true or false", param=name)
    return text == "true"


SUBSCRIPTION_PARSER = web.AppKey("subscriptions", SubscriptionParser)
