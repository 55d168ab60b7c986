"""The command ``reload``: make a running server read its settings again."""

import os
import signal
import time
from collections.abc import Sequence
from typing import Any

import click

from stream_server.commands import setting_options
from stream_server.commands.exit_codes import UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.config import config
from stream_server.runtime import run_file
from stream_server.runtime.run_file import RunFile

REPLY_TIMEOUT_SECONDS = 10.0
POLL_SECONDS = 0.05

EPILOG = """
\b
Examples:
  stream-server reload --data-dir ./data
  stream-server reload --pid 4711        for a server without --data-dir; its log has the result

\b
docs/reference/settings.md marks the reloadable settings. The server reads its --settings-file again. Flags and
environment variables stay the same and override the file. An invalid file changes nothing.
"""


@click.command("reload", epilog=EPILOG, short_help="Make a running server read its settings again.")
@click.option("--pid", type=click.IntRange(min=2), help="Process id of a server without a data folder.")
@JSON_OPTION
@setting_options.options("data_dir")
def reload(*, pid: int | None, as_json: bool, **flags: Any) -> None:
    """Make a running server read its settings file again, without closing connections, and print what changed.

    The command sends SIGHUP to the process of the server (with --workers, to the supervisor).
    """
    if pid is not None:
        if flags["data_dir"] is not None:
            raise CommandFailure("give --pid or --data-dir, not both", USAGE)
        _send_sighup(_check_is_server(pid))
        _show(pid, [f"SIGHUP sent to process {pid}; its log has the result"], as_json=as_json)
        return
    data_dir = config.load(flags).data_dir
    if not data_dir:
        raise CommandFailure("no server named: give its --data-dir or its --pid", USAGE)
    after = _request_reload(data_dir)
    if after.refused:
        raise CommandFailure("; ".join(after.messages))
    _show(after.pid, after.messages, as_json=as_json)


def _show(pid: int, sentences: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"pid": pid, "messages": sentences})
        return
    for sentence in sentences:
        click.echo(sentence)


def _check_is_server(pid: int) -> int:
    """Return ``pid`` if it is a stream-server. Else raise CommandFailure, because SIGHUP ends most other programs."""
    command_line = run_file.process_command_line(pid)
    if "serve" not in command_line.split() or not ("stream-server" in command_line or "stream_server" in command_line):
        raise CommandFailure(f"process {pid} is not a running stream-server", UNREACHABLE)
    return pid


def _request_reload(data_dir: str) -> RunFile:
    """Send SIGHUP to the server that uses ``data_dir``. Wait until its run file has the result; return the content."""
    before = run_file.read(data_dir)
    if before is None:
        raise CommandFailure(f"no server is running on the data folder {data_dir}", UNREACHABLE)
    if not before.started_at or run_file.process_started_at(before.pid) != before.started_at:
        raise CommandFailure(f"the server of the run file in {data_dir} is not running", UNREACHABLE)
    _send_sighup(before.pid)
    deadline = time.monotonic() + REPLY_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        now = run_file.read(data_dir)
        if now is not None and now.pid == before.pid and now.reloads > before.reloads:
            return now
        time.sleep(POLL_SECONDS)
    raise CommandFailure(f"the server did not report a result within {REPLY_TIMEOUT_SECONDS:g} s; look at its log")


def _send_sighup(pid: int) -> None:
    """Send SIGHUP to the process; raises :class:`CommandFailure` if it has ended or belongs to another user."""
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        raise CommandFailure(f"process {pid} is not running", UNREACHABLE) from None
    except PermissionError:
        raise CommandFailure(f"process {pid} belongs to another user") from None
