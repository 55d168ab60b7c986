"""``reload``: a running server reads its settings anew."""

import os
import signal
import time
from typing import Any

import click

from stream_server.commands import setting_options
from stream_server.commands.exit_codes import UNREACHABLE, USAGE, CommandFailure
from stream_server.config import config
from stream_server.runtime import run_file
from stream_server.runtime.run_file import RunFile

REPLY_TIMEOUT_SECONDS = 10.0
"""How long a server may take to say what it did; reading a file takes it a millisecond."""

POLL_SECONDS = 0.05

EPILOG = """
\b
Examples:
  stream-server reload --data-dir ./data
  stream-server reload --pid 4711        for a server without --data-dir: its log says what came of it

\b
What may be reloaded is marked in the table of settings. The server reads its --settings-file again; what it was given
by flags and environment stays, and wins. A file that is wrong changes nothing.
"""


@click.command("reload", epilog=EPILOG, short_help="Have a running server read its settings again.")
@click.option("--pid", type=click.IntRange(min=2), help="The server's process, where it has no data folder.")
@setting_options.options("data_dir")
def reload(pid: int | None, **flags: Any) -> None:
    """Have a running server read its settings file again, without dropping anybody, and say what changed.

    The same as SIGHUP to its process; with --workers, to the supervisor's.
    """
    if pid is not None:
        if flags["data_dir"] is not None:
            raise CommandFailure("give --pid or --data-dir, not both", USAGE)
        _send_sighup(_check_is_server(pid))
        click.echo(f"process {pid} was told; its log says what came of it")
        return
    data_dir = config.load(flags).data_dir
    if not data_dir:
        raise CommandFailure("which server? Give its --data-dir, or its --pid", USAGE)
    _print_outcome(_request_reload(data_dir))


def _check_is_server(pid: int) -> int:
    """``pid``, if that is a server: any other program would end at this signal."""
    words = run_file.process_command_line(pid)
    if "serve" not in words.split() or not ("stream-server" in words or "stream_server" in words):
        raise CommandFailure(f"process {pid} is no stream-server that serves", UNREACHABLE)
    return pid


def _request_reload(data_dir: str) -> RunFile:
    """The note of the server on the folder, after it was told."""
    left = run_file.read(data_dir)
    if left is None:
        raise CommandFailure(f"no server is running on the data folder {data_dir}", UNREACHABLE)
    if not left.started_at or run_file.process_started_at(left.pid) != left.started_at:
        raise CommandFailure(f"the server that left its note in {data_dir} runs no more", UNREACHABLE)
    _send_sighup(left.pid)
    ends = time.monotonic() + REPLY_TIMEOUT_SECONDS
    while time.monotonic() < ends:
        now = run_file.read(data_dir)
        if now is not None and now.pid == left.pid and now.reloads > left.reloads:
            return now
        time.sleep(POLL_SECONDS)
    raise CommandFailure(f"the server did not say within {REPLY_TIMEOUT_SECONDS:g} s what came of it; look at its log")


def _send_sighup(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGHUP)
    except ProcessLookupError:
        raise CommandFailure(f"process {pid} runs no more", UNREACHABLE) from None
    except PermissionError:
        raise CommandFailure(f"process {pid} is another user's") from None


def _print_outcome(left: RunFile) -> None:
    if left.refused:
        raise CommandFailure("; ".join(left.messages))
    for sentence in left.messages:
        click.echo(sentence)
