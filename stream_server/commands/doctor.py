"""The command ``doctor``: report faults of this machine, a Redis or a server, in plain sentences.

It finds each state in which ``serve`` would refuse to start, or in which writes would fail.
"""

import asyncio
from dataclasses import replace
from typing import Any

import click
from rich.text import Text

from stream_server.client import Client, ClientFailure, RequestRefused
from stream_server.commands import doctor_machine as machine
from stream_server.commands import doctor_redis, server_access, setting_options
from stream_server.commands.doctor_machine import CheckResult, CheckState, advice, broken, good
from stream_server.commands.doctor_redis import check_cluster_setup
from stream_server.commands.exit_codes import FAILED, OK
from stream_server.commands.output import JSON_OPTION, OutputConsole, finish
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.runtime import run_file

MARKS = {
    CheckState.GOOD: ("✓", "ok", "green"),
    CheckState.ADVICE: ("!", "!!", "yellow"),
    CheckState.BROKEN: ("✗", "NO", "bold red"),
}


@click.command(
    epilog="""
\b
Examples:
  stream-server doctor                             this machine, and the server that runs here if there is one
  stream-server doctor --data-dir ./data           that server, its folder and its embedded Redis
  stream-server doctor --redis redis://10.0.0.5    that Redis
  stream-server doctor --redis redis+sentinel://10.0.0.5,10.0.0.6,10.0.0.7/main --write-replicas 1
  stream-server doctor --redis redis+cluster://10.0.0.5,10.0.0.6,10.0.0.7
"""
)
@setting_options.URL_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS, "host", "port", "redis_read", "write_replicas")
@JSON_OPTION
def doctor(url: str | None, *, as_json: bool, **flags: Any) -> None:
    """Check this machine, a Redis and a running server.

    ✓ needs no action, ! could be better, ✗ is broken. The exit code is 1 if anything is broken.
    """
    settings = config.load(flags)
    try:
        found, several = server_access.find_server(settings, url), ""
        # None if --data-dir is given without --url, and no server uses this folder
        is_stopped = url is None and found.data_dir and run_file.read(found.data_dir) is None
        address = None if is_stopped else server_access.server_address(url, found)
    except server_access.SeveralServers as error:
        found, several, address = settings, error.message, None
    is_elsewhere = url is not None or bool(several)
    results = asyncio.run(run_checks(settings, address, is_elsewhere=is_elsewhere, found=found, several=several))
    states = [{"state": result.state.value, "sentence": result.sentence} for result in results]
    has_unicode, shown = OutputConsole().has_unicode, []
    for result in results:
        mark, ascii_mark, style = MARKS[result.state]
        shown.append(Text.assemble((mark if has_unicode else ascii_mark, style), " ", result.sentence))
    is_broken = any(result.state is CheckState.BROKEN for result in results)
    finish(states, *shown, as_json=as_json, code=FAILED if is_broken else OK)


async def run_checks(
    settings: Config, url: str | None, *, is_elsewhere: bool = False, found: Config | None = None, several: str = ""
) -> list[CheckResult]:
    """Run all checks: this machine, Redis, the server at ``url`` (None: no server runs). Return their results.

    Args:
        settings: What the person gave.
        url: URL of the server to check.
        is_elsewhere: Whether the settings are not those of the server at ``url``.
        found: ``settings`` with the data folder of the server that was found; None if none was looked for.
        several: Why no server was chosen, if several run here.
    """
    no_server = advice(several or f"no server runs on {settings.data_dir}")
    server = no_server if url is None else await check_server(url)
    is_served = server.state is not CheckState.ADVICE
    running = run_file.read(found.data_dir) if found is not None and found.data_dir and is_served else None
    redis_url = settings.redis or ("" if running is None else running.redis)
    if running is not None and running.data_dir:
        settings = replace(settings, data_dir=running.data_dir)
    return [
        machine.check_python(),
        *([] if settings.redis else [machine.check_redis_binary()]),
        machine.check_fan_out(),
        machine.check_filters(),
        machine.check_descriptors(),
        *machine.check_temporary_folder(),
        *machine.check_data_folder(settings, is_served=is_served),
        machine.check_token_key(settings),
        *machine.check_traces(settings),
        *([] if is_served or is_elsewhere else machine.check_port(settings)),
        *(await _check_redis(settings, redis_url) if redis_url else []),
        server,
    ]


async def _check_redis(settings: Config, url: str) -> list[CheckResult]:
    seconds = settings.redis_timeout_seconds
    results = await doctor_redis.check_sentinels(url, seconds)
    results += await check_cluster_setup(url, seconds, settings.write_replicas)
    read_urls, write_replicas = settings.redis_read, settings.write_replicas
    return results + await doctor_redis.check_redis(url, seconds, read_urls=read_urls, write_replicas=write_replicas)


async def check_server(url: str) -> CheckResult:
    """Check whether a server answers at ``url`` and is ready (``GET /readyz``)."""
    try:
        async with Client(url, attempts=1, seconds=3) as api:
            await api.request("GET", "/readyz")
    except RequestRefused as refused:
        if refused.status != 503:  # by which a server says that it is not ready
            return advice(f"another program answers at {url}: it says {refused.status} to /readyz")
        return broken(f"the server at {url} is not ready: {refused}")
    except ClientFailure:
        return advice(f"no server answers at {url}")
    return good(f"the server at {url} is ready")
