"""The command ``doctor``: what is wrong with this machine, a Redis or a server, in plain sentences."""

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
"""The mark and colour of each result."""

ASCII_MARKS = {CheckState.GOOD: "ok", CheckState.ADVICE: "!!", CheckState.BROKEN: "NO"}
"""The marks for a terminal that cannot show the others."""

EPILOG = """
\b
Examples:
  stream-server doctor                             this machine, and a server on port 8000 if there is one
  stream-server doctor --data-dir ./data           that server, its folder and its embedded Redis
  stream-server doctor --redis redis://10.0.0.5    that Redis
  stream-server doctor --redis redis+sentinel://10.0.0.5,10.0.0.6,10.0.0.7/main --write-replicas 1
"""


@click.command(epilog=EPILOG)
@click.option("--url", help="URL of the server; default: the one on --data-dir, else http://127.0.0.1:8000.")
@setting_options.options(*setting_options.ACCESS_SETTINGS, "redis_read", "write_replicas")
@click.pass_context
def doctor(context: click.Context, /, url: str | None, **flags: Any) -> None:
    """Check this machine, a Redis and a running server.

    ✓ needs no action, ! could be better, ✗ is broken. The exit code is 1 if anything is broken.
    """
    settings = config.load(flags)
    results = asyncio.run(run_checks(settings, _server_url(url, settings)))
    console = Console(highlight=False, soft_wrap=True)
    for result in results:
        console.print(_format_result(result, unicode=console.encoding.startswith("utf")))
    context.exit(FAILED if any(result.state is CheckState.BROKEN for result in results) else OK)


def _server_url(url: str | None, settings: Config) -> str | None:
    """Return the URL to check.

    None if the data folder has no running server, because another server would be a wrong answer.
    """
    is_stopped = url is None and settings.data_dir and run_file.read(settings.data_dir) is None
    return None if is_stopped else server_access.server_address(url, settings)


async def run_checks(settings: Config, url: str | None) -> list[CheckResult]:
    """Return the results of all checks, in the order in which a person would look."""
    no_server = doctor_checks.no_server_running(settings.data_dir)
    server = no_server if url is None else await doctor_checks.check_server(url)
    redis_url = settings.redis or _embedded_redis_url(settings, server)
    return [
        doctor_checks.check_python(),
        doctor_checks.check_redis_binary(needed=not settings.redis),
        *([doctor_checks.languages()] if settings.detect_language == "on" else []),
        doctor_checks.check_filters(),
        doctor_checks.check_descriptors(),
        *doctor_checks.check_data_folder(settings.data_dir),
        doctor_checks.check_token_key(settings),
        *(await _check_redis(settings, redis_url) if redis_url else []),
        server,
    ]


async def _check_redis(settings: Config, url: str) -> list[CheckResult]:
    """Return the results of the checks of Sentinels, Redis and replicas."""
    seconds = settings.redis_timeout_seconds
    results = await doctor_checks.check_sentinels(url, seconds) + await doctor_checks.check_redis(url, seconds)
    return results + await doctor_checks.check_replicas(settings, url)


def _embedded_redis_url(settings: Config, server: CheckResult) -> str:
    """Return the embedded Redis of the server on the data folder; empty if that server is not running."""
    running = run_file.read(settings.data_dir) if settings.data_dir else None
    return running.redis if running is not None and server.state is not CheckState.ADVICE else ""


def _format_result(result: CheckResult, *, unicode: bool) -> Text:
    """Return one result as a line with a mark."""
    mark, style = MARKS[result.state]
    return Text.assemble((mark if unicode else ASCII_MARKS[result.state], style), " ", result.sentence)
