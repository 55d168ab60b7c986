"""``doctor``: what is wrong with this machine, in plain sentences."""

import asyncio
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from stream_server.commands import doctor_checks, server_access, setting_options
from stream_server.commands.doctor_checks import CheckResult, CheckState
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.runtime import run_file

MARKS = {CheckState.GOOD: ("✓", "green"), CheckState.ADVICE: ("!", "yellow"), CheckState.BROKEN: ("✗", "bold red")}

ASCII_MARKS = {CheckState.GOOD: "ok", CheckState.ADVICE: "!!", CheckState.BROKEN: "NO"}
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
@setting_options.options(*setting_options.ACCESS_SETTINGS, "redis_read", "write_replicas")
@click.pass_context
def doctor(context: click.Context, /, url: str | None, **flags: Any) -> None:
    """Check this machine, a Redis and a running server.

    ✓ is well, ! could be better, ✗ is broken; the exit code is 1 if anything is broken.
    """
    settled = config.load(flags)
    findings = asyncio.run(run_checks(settled, _server_url(url, settled)))
    console = Console(highlight=False, soft_wrap=True)
    for finding in findings:
        console.print(_format_result(finding, unicode=console.encoding.startswith("utf")))
    context.exit(FAILED if any(finding.state is CheckState.BROKEN for finding in findings) else OK)


def _server_url(url: str | None, settled: Config) -> str | None:
    """The address; None where a data folder was named on which no server runs: another one would be no answer."""
    stopped = url is None and settled.data_dir and run_file.read(settled.data_dir) is None
    return None if stopped else server_access.server_address(url, settled)


async def run_checks(settled: Config, url: str | None) -> list[CheckResult]:
    """All findings, in the order in which a person would look."""
    server = doctor_checks.no_server_running(settled.data_dir) if url is None else await doctor_checks.check_server(url)
    redis_url = settled.redis or _embedded_redis_url(settled, server)
    return [
        doctor_checks.check_python(),
        doctor_checks.check_redis_binary(needed=not settled.redis),
        *([doctor_checks.languages()] if settled.detect_language == "on" else []),
        doctor_checks.check_filters(),
        doctor_checks.check_descriptors(),
        *doctor_checks.check_data_folder(settled.data_dir),
        doctor_checks.check_token_key(settled),
        *(await _check_redis(settled, redis_url) if redis_url else []),
        server,
    ]


async def _check_redis(settled: Config, url: str) -> list[CheckResult]:
    seconds = settled.redis_timeout_seconds
    asked = await doctor_checks.check_sentinels(url, seconds) + await doctor_checks.check_redis(url, seconds)
    return asked + await doctor_checks.check_replicas(settled, url)


def _embedded_redis_url(settled: Config, server: CheckResult) -> str:
    """The Redis of the server on the data folder; one that has stopped has left its note behind, and no Redis."""
    left = run_file.read(settled.data_dir) if settled.data_dir else None
    return left.redis if left is not None and server.state is not CheckState.ADVICE else ""


def _format_result(finding: CheckResult, *, unicode: bool) -> Text:
    mark, style = MARKS[finding.state]
    return Text.assemble((mark if unicode else ASCII_MARKS[finding.state], style), " ", finding.sentence)
