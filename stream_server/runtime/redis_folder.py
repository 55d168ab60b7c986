"""The files of the embedded Redis in the data folder: what forbids a start on them, and a view that a Redis may load.

Redis says nothing if it does not find its data, and starts empty. It sees no part of its append-only file without the
manifest, the list of the parts. So :func:`start_fault` looks first.
"""

import re
import shutil
from pathlib import Path

from stream_server.config.data_folder import write_private
from stream_server.runtime.append_only_file import MANIFEST, PARTS_FOLDER, find_damage
from stream_server.store.redis.engine import Engine, parse_engine

SINGLE_FILE = "appendonly.aof"
"""The append-only file of Redis 6.2. Newer programs move it into :data:`PARTS_FOLDER` at their first start."""

VERSION_FILE = "redis.version"
LOCK_FILE = "redis.lock"
LOG_FILE = "redis.log"


def start_fault(folder: Path, engine: Engine) -> str:
    """Return why this program must not start on ``folder``, with the way out. Empty if it may.

    The caller holds the lock of the folder. Raises OSError if the folder cannot be read.
    """
    written_by, parts = recorded_engine(folder), folder / PARTS_FOLDER
    if written_by is not None and not engine.can_read(written_by):
        return (
            f"the data folder {folder} was written by {written_by}, and {engine} cannot read it: install {written_by} "
            "or newer"
        )
    is_single = not parts.exists() and (folder / SINGLE_FILE).exists()
    if is_single:
        return ""
    if (parts / MANIFEST).exists():
        return end_fault(folder)
    if written_by is None and all(map(_is_empty, parts.glob("appendonly.aof.*"))):
        return ""  # the first start of a Redis may have been killed before it listed its parts
    return (
        f"the data folder {folder} has data but no {PARTS_FOLDER}/{MANIFEST}, so {engine.name} would start empty: "
        "restore that file (docs/operations.md says how), or move the data away to begin without them"
    )


def end_fault(folder: Path, *, reads_all: bool = False) -> str:
    """Return why Redis cannot load its append-only file in ``folder``, with the way out. Empty if it can.

    Redis itself drops a command that is only cut. ``reads_all`` also finds a damage in the middle, and a cut command:
    Redis keeps that if another part follows, even an empty one. Raises OSError if the file cannot be read.
    """
    damage = find_damage(folder, reads_all=reads_all)
    if damage is None or (damage.is_cut and not reads_all):
        return ""
    way_out = "restore a backup" if damage.later else f"`stream-server mend --data-dir {folder}` cuts them off"
    return f"{damage.describe()}: {way_out} (docs/operations.md, After a power cut)"


def has_data(folder: Path) -> bool:
    """Return whether a Redis that starts on ``folder`` finds data there."""
    return (folder / PARTS_FOLDER / MANIFEST).exists() or (folder / SINGLE_FILE).exists()


def make_view(folder: Path, view: Path, *, is_torn: bool) -> None:
    """Make the folder ``view``, in which a Redis finds the data of ``folder``, and changes nothing of them.

    It finds links, because the data may be large. Its list ends with one more part, an empty one. There Redis writes
    what it deletes after it has loaded the data, such as expired keys. Only a Redis that cuts a torn end off writes to
    the parts before that: with ``is_torn`` it finds copies of all but the snapshots. Raises OSError.
    """
    manifest = view / PARTS_FOLDER / MANIFEST
    for path in (*folder.glob(SINGLE_FILE), *folder.glob(f"{PARTS_FOLDER}/{SINGLE_FILE}.*")):
        place = view / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        if place == manifest or (is_torn and path.suffix != ".rdb"):
            shutil.copyfile(path, place)
        else:
            place.symlink_to(path)
    if manifest.exists() and not is_torn:
        listed = manifest.read_bytes()  # after a power cut these need not be text
        number = max(map(int, re.findall(rb" seq (\d+) type i", listed)), default=0) + 1
        last = f"{SINGLE_FILE}.{number}.incr.aof"
        manifest.write_bytes(listed + f"file {last} seq {number} type i\n".encode())
        (manifest.parent / last).touch()


def redis_files(folder: Path) -> list[Path]:
    """Return the files and folders that a start opens, as far as they exist. Raises OSError if it cannot look."""
    named = (folder / name for name in (LOCK_FILE, LOG_FILE, VERSION_FILE, SINGLE_FILE, PARTS_FOLDER))
    return [path for path in (*named, *folder.glob(f"{PARTS_FOLDER}/*")) if path.exists()]


def record_engine(folder: Path, engine: Engine) -> None:
    """Write into ``redis.version`` which program has loaded the data, and writes them anew."""
    write_private(folder / VERSION_FILE, f"{engine}\n".encode())


def recorded_engine(folder: Path) -> Engine | None:
    """Return the program in the file ``redis.version``; None if the file is missing or names none.

    Raises OSError if the file cannot be read.
    """
    try:
        return parse_engine((folder / VERSION_FILE).read_text(errors="replace"))
    except FileNotFoundError:
        return None


def _is_empty(part: Path) -> bool:
    # The first part has a header of up to 200 bytes, also without data.
    return part.stat().st_size <= (200 if ".base." in part.name else 0)
