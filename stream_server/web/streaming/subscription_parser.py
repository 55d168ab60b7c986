"""Parses filter parameters into subscriptions (the filters of a stream). Clients with equal filters share one."""

import gc
import re
import sys
from collections import deque
from collections.abc import Mapping
from functools import lru_cache, partial
from typing import NamedTuple
from urllib.parse import quote_plus, urlencode

from aiohttp import web

from filters.narrowing import Kinds
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
"""Most memory of the filters that are remembered: those of about 20,000 streams with a word of their own."""

_DATA = frozenset({str, tuple, frozenset, dict, list, set, float})
"""Types of the data of filters. What has another type is a part of a filter, or is shared, such as a class."""

_PLAIN_QUERY = re.compile(r"(?:[\w=&,+]|%2[03C])*", re.ASCII)
"""A query of words and tags without further punctuation, whose filters have a size for each value."""

_ONE_OPERATOR = re.compile(r"rule=(?:[\w.:]|%23|%3A)*", re.ASCII)
"""A query of one rule that is one word or one operator with its value. All such rules take about as much."""

ONE_OPERATOR_BYTES = 3_300

SUMMARY_PARAMETER = "summary"
"""The parameter that asks for counts in the place of events."""

MAX_SUMMARY_SECONDS = 3600
"""Longest period of a summary in seconds. A client that loses its connection counts anew from the last one on."""

SUBSCRIPTION_PARAMETER = "subscription"
"""The parameter with the name of a subscription that the server keeps, in the place of all filters."""


class ParsedFilters(NamedTuple):
    """The filters of a stream that were parsed when its parameters were read.

    Attributes:
        subscription: The parsed filters.
        description: The parameters as a query, for the list of open streams.
        since: The start of the stream as the client wrote it, or None.
        may_warn: Whether the stream may begin with warnings about its filters.
        are_ready: Whether they are the same for every user, so that nothing has to be read for them.
        summary_ms: The period in ms in which the stream counts events instead of sending them. 0 for none.
    """

    subscription: Subscription
    description: str
    since: str | None
    may_warn: bool
    are_ready: bool
    summary_ms: int = 0


class UnparsedFilters(NamedTuple):
    """The filters of a stream that a thread must parse, because they are long or because Redis must name users before.

    Attributes:
        parameters: The filters by their names.
        description: As in `ParsedFilters`, and so are ``since``, ``may_warn`` and ``summary_ms``.
        explain: Whether each message says which filters matched.
        impersonal: Whether every caller gets the same messages. None lets the filters determine this.
    """

    parameters: Mapping[str, str]
    description: str
    since: str | None
    explain: bool
    impersonal: bool | None
    may_warn: bool = True
    summary_ms: int = 0


class NamedFilters(NamedTuple):
    """The filters of a stream that reads a named subscription, which Redis has.

    Attributes:
        acked: The cursor that a poll acknowledges, as the client wrote it. None for a stream, and for a first poll.
        worker: The name by which a member of a shared subscription is the same over its connections, or None.
        connection: The connection that had the acked cursor, None if the client does not say it.
        poll_seconds: How long a long poll waits, in seconds. None for a stream.
    """

    name: str
    acked: str | None
    worker: str | None = None
    connection: str | None = None
    poll_seconds: float | None = None

    @property
    def description(self) -> str:
        """The parameters as a query, for the list of open streams."""
        return describe({SUBSCRIPTION_PARAMETER: self.name} | ({} if self.worker is None else {"worker": self.worker}))


OwnFilters = ParsedFilters | UnparsedFilters
"""The filters that stand in the parameters of a stream."""

StreamFilters = OwnFilters | NamedFilters
"""What the parameters of a stream ask for, as far as their text tells it."""


class KnownFilters(dict[str, ParsedFilters]):
    """The filters and options of the latest streams, by the text of their query.

    The oldest are forgotten above :data:`MAX_FILTER_BYTES`. ``counted_bytes`` is about what all of them take.
    """

    def __init__(self) -> None:
        self.counted_bytes = 0
        self._sizes = deque[int]()  # in the order of the texts; a filter may grow after it was counted

    def remember(self, text: str, filters: ParsedFilters) -> None:
        """Remember the filters that a new text asks for. They must depend on nothing but the text."""
        self[text] = filters
        self._sizes.append(_memory_of(text, filters))
        self.counted_bytes += self._sizes[-1]
        while self.counted_bytes > MAX_FILTER_BYTES:
            del self[next(iter(self))]
            self.counted_bytes -= self._sizes.popleft()


def _memory_of(text: str, filters: ParsedFilters) -> int:
    """Return about how many bytes the filters take, by the sizes of the objects to which they refer."""
    if len(text) <= 64 and filters.are_ready:  # to look at their objects would take a fifteenth of the opening
        if _ONE_OPERATOR.fullmatch(text):
            return ONE_OPERATOR_BYTES
        if "rule=" not in text and _PLAIN_QUERY.fullmatch(text):
            return 700 + 200 * (text.count(",") + text.count("+") + text.count("%"))
    found: list[object] = [text, filters.description, *filters.subscription.bases]
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

    def read_stream(self, parameters: dict[str, str], *, start_parameter: str = "since") -> StreamFilters:
        """Return the subscription that the parameters name, else what :meth:`read` returns for them.

        Raises BadRequest for other parameters beside a name, except a cursor.
        """
        if SUBSCRIPTION_PARAMETER not in parameters:
            return self.read(parameters, start_parameter=start_parameter)
        name, worker = parameters.pop(SUBSCRIPTION_PARAMETER), parameters.pop("worker", None)
        acked = connection = None
        if start_parameter == "cursor":
            acked, connection = parameters.pop("cursor"), parameters.pop("connection", None)
        for other in parameters:
            message = "a subscription has its filters and its cursor: send no other parameters"
            raise BadRequest(message, code="conflicting_parameters", param=other[:40])
        return NamedFilters(name, acked, worker, connection)

    def read(
        self, parameters: dict[str, str], *, start_parameter: str = "since", impersonal: bool | None = None
    ) -> OwnFilters:
        """Return the filters and options in the parameters. Short filters without names of users are parsed at once.

        Removes from ``parameters`` the flag ``explain``, ``summary``, and the parameter whose name is in
        ``start_parameter``; the others are filters. Raises BadRequest for an invalid flag or summary, and
        ParameterError for an invalid filter.
        """
        description = describe(parameters)
        since = parameters.pop(start_parameter, None)
        explain = "explain" in parameters and pop_flag(parameters, "explain")
        summary_ms = _pop_summary(parameters, explain=explain) if SUMMARY_PARAMETER in parameters else 0
        # Longer ones are parsed in a thread, and are not remembered.
        is_short = sum(map(len, parameters)) + sum(map(len, parameters.values())) <= 1024
        # The protocols of Twitter know ids only.
        if not is_short or (impersonal is None and "follow" in parameters and find_names(parameters["follow"])):
            return UnparsedFilters(
                parameters, description, since, explain=explain, impersonal=impersonal, summary_ms=summary_ms
            )
        parsed = parse_subscription(parameters, self.registry, explain=explain, viewer_independent=impersonal)
        has_saved_rules = SavedRules.name in parameters
        may_warn = has_saved_rules or bool(parsed.unindexed_bases or parsed.doubts)
        depends = has_saved_rules or parsed.uses_me
        if Rules.name in parameters:
            rules = parsed.find_base(Rules.name)
            depends |= isinstance(rules, Rules) and bool(rules.logins())  # Redis must know the users of these logins
        return ParsedFilters(parsed, description, since, may_warn, not depends, summary_ms)

    async def parse(self, filters: UnparsedFilters, parameters: Mapping[str, str], payer: Payer) -> Subscription:
        """Return the subscription (the parsed filters) for ``parameters``, with the options of ``filters``.

        Raises ParameterError for an invalid filter, and Unavailable or RateLimited if too many wait to be parsed.
        """
        parse = partial(parse_subscription, explain=filters.explain, viewer_independent=filters.impersonal)
        return await payer.run_in(self.thread, lambda: parse(parameters, self.registry))

    async def parse_rule(self, text: str, user: str = "", payer: Payer | None = None) -> Rule:
        """Parse the text of one filter rule in the work thread. Raises ParameterError for an invalid rule.

        The users take turns there, so a caller waits for at most one piece of work of each other user. Rules of an
        entry of the log are parsed without a ``user``: all such callers share one turn. ``payer`` pays for the time
        and takes a turn of its user; without one, the limits of writes and trials bound the time that one user takes.
        """
        # such a rule takes 3 KB of memory, one of a thousand characters 40 KB
        parse = self._parse_rule_cached if len(text) <= 256 else self._parse_rule
        if payer is None:
            return await self.thread.run(lambda: parse(text), user)
        return await payer.run_in(self.thread, lambda: parse(text))

    def _parse_rule(self, text: str) -> Rule:
        return Rule.parse(text, self.registry)


def _pop_summary(parameters: dict[str, str], *, explain: bool) -> int:
    """Remove ``summary`` and return its period in ms. Without ``kinds``, let it count posts.

    Raises BadRequest for a period that is no number of seconds within its bounds, and beside ``explain``.
    """
    text = parameters.pop(SUMMARY_PARAMETER)
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and 1 <= int(text) <= MAX_SUMMARY_SECONDS):
        raise BadRequest(f"a whole number of seconds from 1 to {MAX_SUMMARY_SECONDS}", param=SUMMARY_PARAMETER)
    if explain:
        message = "a summary has no events to explain"
        raise BadRequest(message, code="conflicting_parameters", param="explain")
    parameters.setdefault(Kinds.name, "post")
    return int(text) * 1000


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
