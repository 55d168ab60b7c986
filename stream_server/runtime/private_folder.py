"""Temporary folders for sockets and data of one run of a server or a demo, which only their user can open.

A folder is locked as long as its process runs. So the next server on the machine finds the folders of processes that
were killed, and removes them.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stream_server.config.data_folder import OTHERS

PREFIX = "stream-server-run-"


class PrivateFolder:
    """A new temporary folder, its ``path``, for unix sockets with names of at most ``name_bytes`` bytes.

    Without sockets (0) it is in the machine's folder for temporary files, however long that path is.

    Raises OSError if the machine's folder for temporary files cannot be used.
    """

    def __init__(self, name_bytes: int) -> None:
        parent = tempfile.gettempdir()
        length = len(os.fsencode(parent)) + len(PREFIX) + len("/12345678/") + name_bytes
        if name_bytes and length > 100:  # a longer path of a unix socket fails on some systems (Linux 107, macOS 103)
            parent = "/tmp"  # noqa: S108 - the folder in it is private
        _remove_leftovers(Path(parent))
        self.path, self._lock = _make_locked(parent)

    def remove(self) -> None:
        """Remove the folder with all its content. A second call does nothing."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1


def _make_locked(parent: str) -> tuple[Path, int]:
    """Make a folder and lock it. If another server removes it as a leftover before it is locked, make another one."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        lock = _lock(path)
        if lock is not None:
            if path.exists():
                return path, lock
            os.close(lock)


def _remove_leftovers(parent: Path) -> None:
    """Remove the folders in ``parent`` that belong to this user and whose processes have ended."""
    for path in own_folders(parent):
        with suppress(OSError):
            lock = _lock(path)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def own_folders(parent: Path) -> Iterator[Path]:
    """Yield the private folders in ``parent`` that belong to this user and that nobody else can open."""
    with suppress(OSError), os.scandir(parent) as entries:  # a folder for temporary files need not be readable
        for entry in entries:
            if entry.name.startswith(PREFIX) and entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # another server has just removed it
                    about = entry.stat(follow_symlinks=False)
                    if about.st_uid == os.geteuid() and not about.st_mode & OTHERS:
                        yield Path(entry.path)


def _lock(folder: Path) -> int | None:
    """Return a descriptor that holds the lock of the folder, or None if another process has it or it is gone.

    Raises OSError for any other failure, such as a file system without locks.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return descriptor
