"""The command ``tail``: show a stream in the terminal until Ctrl-C.

`RateMeter` has the rate and the age of the events of the last seconds.
"""

import asyncio
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any

import click
from rich.status import Status

from stream_server.client import Client, Event, Gap, Stream
from stream_server.client.connection import Framing
from stream_server.commands import server_access
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.output import (
    JSON_OPTION,
    OutputConsole,
    escape_controls,
    escape_json_controls,
    render_message,
)
from stream_server.wire.messages import Effective, Goodbye, Hello, StreamWarning

FILTER_OPTIONS = {
    "track": "Words, #tags, @mentions: comma is OR, blank is AND.",
    "follow": "User ids or logins, or @me for the users that you follow.",
    "locations": "Boxes: west,south,east,north.",
    "rule": "A rule, or tag:rule; repeat the option for more.",
    "rules": "saved: your saved rules.",
    "sample": "Percent of all posts.",
    "language": "Only these languages: en,fr.",
    "kinds": "Only these kinds: post,delete,follow,like,comment and others; default post,delete.",
    "partition": "k/n: one of n parts of the firehose.",
}
"""The filter parameters that are options, with their help texts."""

STREAM_SCOPES = frozenset({"read", "stream", "firehose"})
"""Scopes of a token that the command signs to read streams."""


def filter_options(command: Any) -> Any:
    """Add the options of the filters to a command."""
    for name, text in reversed(FILTER_OPTIONS.items()):
        command = click.option(f"--{name}", multiple=True, metavar="VALUE", help=text)(command)
    return command


@click.command(
    epilog="""
\b
Examples:
  stream-server tail --token-file t --track "redis,event stream"
  stream-server tail --token-file t --rule "tea -is:reply" --rule "drinks:coffee OR #matcha"
  stream-server tail --token-file t --locations -122.75,36.8,-121.75,37.8
  stream-server tail --data-dir ./data --user ada --follow @me --since -15m
  stream-server tail --user ada --subscription work
  stream-server tail --user ada --subscription work --worker one
  stream-server tail --user ada --rule 'hot:tea' --rule 'cold:ice' --summary 60
  stream-server tail --data-dir ./data --user ada --firehose --json | jq .status.message
"""
)
@filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose).")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@click.option("--since", help="Where to start: a cursor, an ISO time, or -15m.")
@click.option("--subscription", help="Read a named subscription, and acknowledge what was shown.")
@click.option("--worker", help="The name of this reader of a shared subscription, the same in each run.")
@click.option("--summary", type=click.IntRange(1, 3600), metavar="SECONDS", help="Show counts of each period instead.")
@click.option("--explain", is_flag=True, help="Also say why each event matched; on a terminal its words are marked.")
@JSON_OPTION
@click.option("--framing", type=click.Choice(["sse", "ndjson", "websocket"]), default="sse", show_default=True)
@server_access.credential_options
def tail(
    *,
    firehose: bool,
    more: tuple[str, ...],
    since: str | None,
    subscription: str | None,
    worker: str | None,
    summary: int | None,
    explain: bool,
    as_json: bool,
    framing: Framing,
    **given: Any,
) -> None:
    """Show a stream in the terminal.

    After a lost connection the command connects again and continues at the same position. With --subscription, so does
    the next run of the command: the server keeps the filters and the position. On a terminal the words that
    matched are marked, and the last line shows the rate and the median age of the events of the last ten seconds.
    """
    parameters = filter_parameters(given, more) | ({"firehose": "true"} if firehose else {})
    client = server_access.open_client(given, STREAM_SCOPES)
    view = TailOutput(as_json=as_json)
    if subscription is not None:
        if since is not None:
            raise CommandFailure("--since: the server keeps where a subscription begins", USAGE)
        parameters["subscription"] = subscription
    if worker is not None:
        if subscription is None:
            raise CommandFailure("--worker: it reads a share of a --subscription", USAGE)
        parameters["worker"] = worker
    if summary is not None:
        parameters["summary"] = str(summary)
    # These three filters say where a text matched.
    elif explain or (view.marks_matches and parameters.keys() & {"track", "rule", "rules"}):
        parameters["explain"] = "true"
    stream = client.stream(
        more=parameters, since=since, framing=framing, control=True, on_connection_change=view.show_connection
    )
    asyncio.run(_print_events(client, stream, view))


def filter_parameters(given: Mapping[str, Any], more: tuple[str, ...]) -> dict[str, str]:
    """Return the query parameters of the stream. Join several values of an option by commas, rules by newlines."""
    parameters = {name: ("\n" if name == "rule" else ",").join(given[name]) for name in FILTER_OPTIONS if given[name]}
    for pair in more:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise CommandFailure(f"--param {pair}: write NAME=VALUE", USAGE)
        parameters[name] = value
    return parameters


async def _print_events(client: Client, stream: Stream, view: "TailOutput") -> None:
    with view.status or nullcontext():
        async with client:
            async for event in stream:
                view.show(event)


class TailOutput:
    """Prints events on stdout. A status line, or stderr if stdout is no terminal, shows the connection's state."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._out = OutputConsole()
        self._err = OutputConsole(stderr=True)
        self._meter = RateMeter()
        spinner = "dots" if self._out.has_unicode else "line"
        self.status: Status | None = self._out.status("connecting", spinner=spinner) if self._out.is_terminal else None
        self.marks_matches = self._out.is_terminal and not as_json

    def show(self, event: Event) -> None:
        """Print events, ``gap``, ``warning`` and ``effective`` (as JSON only the first two). Update the status line."""
        if self._as_json and (not event.is_control or isinstance(event, Gap)):
            self._out.print(escape_json_controls(event.raw, has_unicode=self._out.has_unicode))
        elif not event.is_control or isinstance(event, Gap | StreamWarning | Effective):
            self._out.print(render_message(event.data, event.spans))
        if not event.is_control:
            self._meter.add(event.age_seconds() * 1000)
        if isinstance(event, Hello):
            self._show_connection_text("connected")
        if self.status is not None and not isinstance(event, Hello | Goodbye):
            self.status.update(self._meter)

    def show_connection(self, text: str) -> None:
        """Show a sentence about the connection, such as why it was lost."""
        self._show_connection_text(escape_controls(text))

    def _show_connection_text(self, sentence: str) -> None:
        if self.status is not None:
            self.status.update(sentence)
        elif sentence != "connected":
            self._err.print(sentence)


METER_SECONDS = 10.0
MAX_EVENTS = 20_000
"""Most events that are remembered. At a higher rate the window is shorter than ten seconds."""


class RateMeter:
    """Counts events, and computes rate and median age of those of the last ten seconds."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._recent: deque[tuple[float, float]] = deque(maxlen=MAX_EVENTS)
        self.count = 0

    def add(self, age_ms: float) -> None:
        """Count an event that is ``age_ms`` old."""
        self._recent.append((self._monotonic(), age_ms))
        self.count += 1

    @property
    def per_second(self) -> float:
        """Events per second in the window, which begins with the meter."""
        self._forget()
        if len(self._recent) == MAX_EVENTS:
            seconds = self._monotonic() - self._recent[0][0]
        else:
            seconds = min(METER_SECONDS, self._monotonic() - self._began)
        return len(self._recent) / max(seconds, 1.0)

    @property
    def median_age_ms(self) -> float | None:
        """Median age in the window, in milliseconds; None without an event."""
        self._forget()
        return statistics.median(age for _, age in self._recent) if self._recent else None

    def __rich__(self) -> str:
        """Return the rate line. A live display asks for it again and again, so it also falls without events."""
        age = self.median_age_ms
        shown = f" · age p50 {age:,.0f} ms" if age is not None else ""
        return f"{self.per_second:,.1f}/s · {self.count:,} events{shown}"

    def _forget(self) -> None:
        oldest = self._monotonic() - METER_SECONDS
        while self._recent and self._recent[0][0] < oldest:
            self._recent.popleft()
