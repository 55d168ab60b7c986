"""``doctor``: what is wrong with this machine, in plain sentences."""

import asyncio
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from stream_server import config, note
from stream_server.commands import backstage, checks, settings
from stream_server.commands.checks import Finding, State
from stream_server.commands.exits import FAILED, OK
from stream_server.config import Config

MARKS = {State.GOOD: ("✓", "green"), State.ADVICE: ("!", "yellow"), State.BROKEN: ("✗", "bold red")}

ASCII = {State.GOOD: "ok", State.ADVICE: "!!", State.BROKEN: "NO"}
"""The marks where the terminal has no others."""

EPILOG = """
\b
Examples:
  stream-server doctor                             this machine, and a server on port 8000 if there is one
  stream-server doctor --data-dir ./data           that server, its folder and its embedded Redis
  stream-server doctor --redis redis://10.0.0.5    that Redis
  stream-server doctor --redis redis+sentinel://10.0.0.5,10.0.0.6,10.0.0.7/main --write-replicas 1
"""


@click.command(epilog=EPILOG)
@click.option("--url", help="The server; by default the one on --data-dir, else http://127.0.0.1:8000.")
@settings.options(*settings.BACKSTAGE, "redis_read", "write_replicas")
@click.pass_context
def doctor(context: click.Context, /, url: str | None, **flags: Any) -> None:
    """Check this machine, a Redis and a running server.

    ✓ is well, ! could be better, ✗ is broken; the exit code is 1 if anything is broken.
    """
    settled = config.load(flags)
    findings = asyncio.run(examine(settled, _server_to_ask(url, settled)))
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(_line(finding, unicode=console.encoding.startswith("utf")))
    context.exit(FAILED if any(finding.state is State.BROKEN for finding in findings) else OK)


def _server_to_ask(url: str | None, settled: Config) -> str | None:
    """The address; None where a data folder was named on which no server runs: another one would be no answer."""
    stopped = url is None and settled.data_dir and note.read(settled.data_dir) is None
    return None if stopped else backstage.address(url, settled)


async def examine(settled: Config, url: str | None) -> list[Finding]:
    """All findings, in the order in which a person would look."""
    server = checks.no_server(settled.data_dir) if url is None else await checks.server(url)
    redis_url = settled.redis or _embedded(settled, server)
    return [
        checks.python(),
        checks.redis_binary(needed=not settled.redis),
        *([checks.languages()] if settled.detect_language == "on" else []),
        checks.descriptors(),
        *checks.data_folder(settled.data_dir),
        checks.key(settled),
        *(await _redis(settled, redis_url) if redis_url else []),
        server,
    ]


async def _redis(settled: Config, url: str) -> list[Finding]:
    seconds = settled.redis_timeout_seconds
    asked = await checks.sentinels(url, seconds) + await checks.redis(url, seconds)
    return asked + await checks.replicas(settled, url)


def _embedded(settled: Config, server: Finding) -> str:
    """The Redis of the server on the data folder; one that has stopped has left its note behind, and no Redis."""
    left = note.read(settled.data_dir) if settled.data_dir else None
    return left.redis if left is not None and server.state is not State.ADVICE else ""


def _line(finding: Finding, *, unicode: bool) -> Text:
    mark, style = MARKS[finding.state]
    return Text.assemble((mark if unicode else ASCII[finding.state], style), " ", finding.sentence)
