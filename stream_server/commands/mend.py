"""The command ``mend``: cut the damaged end of the append-only file of a Redis that does not run."""

import asyncio
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from stream_server.commands import setting_options
from stream_server.commands.exit_codes import FAILED, USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, finish
from stream_server.config import config
from stream_server.runtime import append_only_file
from stream_server.runtime.append_only_file import Damage
from stream_server.runtime.embedded_redis import EmbeddedRedis, EmbeddedRedisError
from stream_server.runtime.redis_folder import LOCK_FILE, recorded_engine


@click.command(
    epilog="""
\b
Examples:
  stream-server mend --data-dir ./data          show the damage, and ask
  stream-server mend --data-dir ./data --yes    cut it off without a question

\b
Exit codes: 0 mended or nothing to mend, 1 the damage stays.
"""
)
@click.option("--yes", is_flag=True, help="Cut without a question.")
@setting_options.options("data_dir", "settings_file")
@JSON_OPTION
def mend(*, yes: bool, as_json: bool, **flags: Any) -> None:
    """Cut the damaged end of the append-only file of Redis, such as zeros after a power cut.

    The bytes that are cut off stay in a file beside it. Only bytes behind the last whole command or transaction are
    cut: a damage in the middle is refused. Stop the server and its Redis before.
    """
    settings = config.load(flags)
    if not settings.data_dir:
        raise CommandFailure("no data folder named: give its --data-dir", USAGE)
    folder = Path(settings.data_dir).absolute()
    try:
        with _locked(folder):
            damage = _find(folder)
            if damage is None:
                nothing = f"the append-only file in {folder} has no damage"
                finish({"damage": None, "copy": None}, nothing, as_json=as_json)
                return
            click.echo(damage.describe(), err=True)
            if not yes and not sys.stdin.isatty():
                raise CommandFailure("nothing was changed: give --yes to cut these bytes off")
            if not yes and not click.confirm("Cut these bytes off? They are kept in a file.", err=True):
                raise click.exceptions.Exit(FAILED)
            if damage.part.stat().st_size != damage.size:
                raise CommandFailure(f"nothing was changed: a Redis writes {damage.part}. Stop it before")
            name, number = f"{damage.part.name}.from-{damage.keeps}", 1
            copy = folder / name
            while copy.exists():
                number += 1
                copy = folder / f"{name}.{number}"
            append_only_file.cut(damage, copy)
        _prove(folder, damage, copy)
    except OSError as error:
        raise CommandFailure(f"{error.filename or folder}: {error.strerror}") from None
    except EmbeddedRedisError as error:
        raise CommandFailure(f"nothing was changed: {error}") from None
    result = {"damage": {**damage._asdict(), "part": str(damage.part)}, "copy": str(copy)}
    finish(result, f"cut off {damage.size - damage.keeps:,} bytes; they are kept in {copy}", as_json=as_json)


def _find(folder: Path) -> Damage | None:
    """Return the damaged end of the append-only file. Raises :class:`CommandFailure` if it cannot be cut."""
    if not append_only_file.list_parts(folder):
        parts = f"{append_only_file.PARTS_FOLDER}/{append_only_file.MANIFEST}"
        raise CommandFailure(f"{folder} has no append-only file: there is no {parts}, or nothing that it lists")
    damage = append_only_file.find_damage(folder, reads_all=True)
    if damage is not None and (damage.later or not damage.keeps):
        raise CommandFailure(f"{damage.describe()}. To cut there would lose them: restore a backup")
    return damage


def _prove(folder: Path, damage: Damage, copy: Path) -> None:
    """Start the Redis of a server's data folder once, which loads all. If it does not, undo the cut.

    A folder of another Redis is left to that one, which may be older. The cut also stays if a server has started on the
    folder meanwhile: what it has written stands there now.
    """

    async def start_once() -> None:
        await (await EmbeddedRedis.start(folder)).stop()

    if recorded_engine(folder) is None:
        return
    try:
        asyncio.run(start_once())
    except EmbeddedRedisError:
        with _locked(folder):
            if not damage.part.exists() or damage.part.stat().st_size != damage.keeps:
                stays = f"another Redis has used {folder} meanwhile, so the cut stays: what was cut off is in {copy}"
                raise CommandFailure(stays) from None
            append_only_file.undo_cut(damage, copy)
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the data folder. Raises :class:`CommandFailure` if a Redis holds it."""
    lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        holder = os.pread(lock, 64, 0).decode() or "?"
        raise CommandFailure(f"a server runs on the data folder {folder} (its Redis is process {holder})") from None
    finally:
        os.close(lock)
