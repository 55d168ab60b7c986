"""The data folder of the embedded Redis: which Redis may use it, and what in it forbids a start.

Redis itself says nothing if it does not find its data: it starts empty. Redis 6.2 does not see the append-only file of
Redis 7, and Redis 7 sees no part of the file without its manifest, the list of its parts.
"""

from pathlib import Path

PARTS_FOLDER = "appendonlydir"
"""Folder of the append-only file of Redis 7 and newer: a manifest and the parts that it lists."""

MANIFEST = "appendonly.aof.manifest"
SINGLE_FILE = "appendonly.aof"
"""The append-only file of Redis 6.2. Redis 7 moves it into :data:`PARTS_FOLDER` at its first start."""

VERSION_FILE = "redis.version"
LOCK_FILE = "redis.lock"
LOG_FILE = "redis.log"

EMPTY_BASE_BYTES = 200
"""Greatest size of the first part of a Redis without data."""


def start_fault(folder: Path, version: tuple[int, int, int]) -> str:
    """Return why a Redis of this version must not start on ``folder``, with the way out. Empty if it may.

    The caller holds the lock of the folder. Raises OSError if the folder cannot be read.
    """
    recorded, parts = _recorded_major(folder), folder / PARTS_FOLDER
    written_by = max(recorded, 7 if parts.exists() else 0)
    if written_by > version[0]:
        return (
            f"the data folder {folder} was written by Redis {written_by} and the redis-server found is "
            f"{'.'.join(map(str, version))}, which would not see its data: install Redis {written_by} or newer"
        )
    if (parts / MANIFEST).exists() or (written_by < 7 and (folder / SINGLE_FILE).exists()):
        return ""
    if recorded == 0 and all(map(_is_empty, parts.glob("appendonly.aof.*"))):
        return ""  # the first start of a Redis may have been killed before it listed its parts
    missing = f"{PARTS_FOLDER}/{MANIFEST}" if written_by >= 7 else SINGLE_FILE
    return (
        f"the data folder {folder} has data of Redis {written_by} but no {missing}, so Redis would start empty: "
        "restore that file (docs/operations.md says how), or move the data away to begin without them"
    )


def files(folder: Path) -> list[Path]:
    """Return the files and folders that a start opens, as far as they exist. Raises OSError if it cannot look."""
    named = (folder / name for name in (LOCK_FILE, LOG_FILE, VERSION_FILE, SINGLE_FILE, PARTS_FOLDER))
    return [path for path in (*named, *folder.glob(f"{PARTS_FOLDER}/*")) if path.exists()]


def record_version(folder: Path, version: tuple[int, int, int]) -> None:
    """Write into ``redis.version`` the major version of the Redis that has loaded the data, and writes them anew."""
    record = folder / VERSION_FILE
    new_record = record.with_suffix(".new")
    new_record.touch(mode=0o600)
    new_record.write_text(f"{version[0]}\n")
    new_record.replace(record)


def _is_empty(part: Path) -> bool:
    return part.stat().st_size <= (EMPTY_BASE_BYTES if ".base." in part.name else 0)


def _recorded_major(folder: Path) -> int:
    """Return the major version of Redis in the file ``redis.version``; 0 if the file is missing or invalid."""
    try:
        return int((folder / VERSION_FILE).read_text())
    except (FileNotFoundError, ValueError):
        return 0
