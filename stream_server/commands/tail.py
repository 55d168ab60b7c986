"""The command ``tail``: show a stream in the terminal until Ctrl-C."""

import asyncio
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.status import Status

from stream_server.client import StreamClient, StreamMessage
from stream_server.commands import credential, server_access, terminal
from stream_server.commands.exit_codes import USAGE, CommandFailure

FILTER_OPTIONS = {
    "track": "Words, #tags, @mentions: comma is OR, blank is AND.",
    "follow": "User ids, or @me for the users that you follow.",
    "locations": "Boxes: west,south,east,north.",
    "rule": "A rule, or tag:rule; repeat the option for more.",
    "rules": "saved: your saved rules.",
    "sample": "Percent of all posts.",
    "language": "Only these languages: en,fr.",
    "kinds": "Only these kinds: post,delete,follow,like,comment and others; default post,delete.",
    "partition": "k/n: one of n parts of the firehose.",
}
"""The filter parameters that are options, with their help texts."""

SEPARATORS = {"rule": "\n"}
"""Separators between the values of an option given several times; a comma for all other options."""

EPILOG = """
\b
Examples:
  stream-server tail --token-file t --track "redis,event stream"
  stream-server tail --token-file t --rule "tea -is:reply" --rule "drinks:coffee OR #matcha"
  stream-server tail --token-file t --locations -122.75,36.8,-121.75,37.8
  stream-server tail --data-dir ./data --user ada --follow @me --since -15m
  stream-server tail --data-dir ./data --user ada --firehose --json | jq .status.message
"""


def _filter_options(command: Any) -> Any:
    """Add the options of :data:`FILTER_OPTIONS` to the command."""
    for name, text in reversed(FILTER_OPTIONS.items()):
        command = click.option(f"--{name}", multiple=True, metavar="VALUE", help=text)(command)
    return command


@click.command(epilog=EPILOG)
@_filter_options
@click.option("--firehose", is_flag=True, help="Everything public (scope firehose).")
@click.option("--param", "more", multiple=True, metavar="NAME=VALUE", help="A parameter of a plugin's filter.")
@click.option("--since", help="Where to start: a cursor, an ISO time, or -15m.")
@click.option("--json", "as_json", is_flag=True, help="The messages as JSON lines.")
@click.option("--framing", type=click.Choice(["sse", "ndjson"]), default="sse", show_default=True)
@credential.options
def tail(
    *, firehose: bool, more: tuple[str, ...], since: str | None, as_json: bool, framing: str, **given: Any
) -> None:
    """Show a stream in the terminal.

    It reconnects after a lost connection and continues at the same position.
    """
    parameters = _parameters(given, more) | ({"firehose": "true"} if firehose else {})
    token = credential.token_source(given)
    url = server_access.server_address(given["url"], credential.load(given))
    view = TailOutput(as_json=as_json)
    client = StreamClient(
        url,
        token,
        parameters,
        since=since,
        framing=framing,
        include_control=True,
        on_connection_change=view.show_connection,
    )
    asyncio.run(_print_messages(client, view))


def _parameters(given: Mapping[str, Any], more: tuple[str, ...]) -> dict[str, str]:
    """Return the stream's parameters from the options; several values of one option become a list."""
    parameters = {name: SEPARATORS.get(name, ",").join(given[name]) for name in FILTER_OPTIONS if given[name]}
    for pair in more:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise CommandFailure(f"--param {pair}: write NAME=VALUE", USAGE)
        parameters[name] = value
    return parameters


async def _print_messages(client: StreamClient, view: "TailOutput") -> None:
    """Print messages until the stream ends."""
    with view.status or nullcontext():
        async with client:
            async for message in client:
                view.show(message)


class TailOutput:
    """Prints messages on standard output.

    A terminal also has a status line; otherwise such text goes to standard error.
    """

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._out = Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.status: Status | None = self._out.status("connecting") if self._out.is_terminal else None
        self._events = 0
        self._lag_ms = 0.0

    def show(self, message: StreamMessage) -> None:
        """Print one message, or update the status line if it is a control message."""
        if self._as_json and (not message.is_control or message.kind == "gap"):
            self._out.print(terminal.escape_json_controls(message.raw))
        elif not message.is_control or message.kind in {"gap", "warning", "effective"}:
            self._out.print(terminal.render_message(message))
        elif message.kind == "hello":
            self._show_connection_text("connected")
        self._update_status(message)

    def show_connection(self, text: str) -> None:
        """Show what happens to the connection."""
        self._show_connection_text(terminal.escape_controls(text))

    def _show_connection_text(self, sentence: str) -> None:
        """Show the sentence in the status line, or on standard error."""
        if self.status is not None:
            self.status.update(sentence)
        elif sentence != "connected":
            self._err.print(sentence)

    def _update_status(self, message: StreamMessage) -> None:
        """Update the count of events and the lag in the status line."""
        if message.kind == "heartbeat":
            self._lag_ms = float(message.data.get("lag_ms") or 0)
        elif not message.is_control:
            self._events += 1
            self._lag_ms = age_ms(message.at, datetime.now(UTC))
        if self.status is not None and message.kind not in {"hello", "goodbye"}:
            self.status.update(f"live · {self._events:,} events · {self._lag_ms:,.0f} ms behind")


def age_ms(at: str, now: datetime) -> float:
    """Return how long ago ``at`` (ISO 8601) was in milliseconds; 0 for an invalid or future time."""
    try:
        return max(0.0, (now - datetime.fromisoformat(at)).total_seconds() * 1000)
    except (ValueError, TypeError):
        return 0.0
