"""The data folder of a server: which folder it is, that only its user can open it, and how its files are written.

The folder of the settings may belong to others too: a volume that a container mounts with a group (Kubernetes'
``fsGroup``, mode 2775), a folder like ``/tmp``, that of another user, or one with other content. The server changes
nothing there. It makes a private folder of its own inside, :data:`OWN_FOLDER`.
"""

import os
import stat
from pathlib import Path

from stream_server.config.settings import InvalidSetting

PRIVATE_MODE = 0o700
OTHERS = 0o077
OTHERS_MAY_WRITE = 0o022

OWN_FOLDER = "stream-server"
"""Name of the private folder inside a folder that is shared with others."""

SECRET_FILE = "jwt.secret"  # noqa: S105 - a name
"""Name of the file with the key of HS256 tokens, if the server has made it."""


def data_folder(given: Path) -> Path:
    """Return the data folder for the setting ``data_dir``: ``given``, or a folder in it if it is shared with others.

    The answer is the same for all processes of the user, and for the answer itself. A folder with data stays the
    answer, whatever happens to the rights of ``given``. Nothing is changed on the disk.
    """
    own = given / OWN_FOLDER
    try:
        return own if _is_shared(given) or (_has_data(own) and not _has_data(given)) else given
    except OSError:  # whoever uses the folder says what is wrong with it
        return given


def _is_shared(folder: Path) -> bool:
    """Return whether others can open the folder, unless it is this user's, and empty or with the data of a server.

    In a folder like ``/tmp``, which has the sticky bit, anybody could make what looks like the data of a server.
    """
    if not folder.is_dir() or not folder.stat().st_mode & OTHERS:
        return False
    about = folder.stat()
    if about.st_mode & stat.S_ISVTX:
        return True
    is_open = about.st_uid != os.geteuid() or bool(about.st_mode & OTHERS_MAY_WRITE) or any(folder.iterdir())
    return is_open and not _has_data(folder)


def _has_data(folder: Path) -> bool:
    """Return whether one of a server's own files shows that a folder is the data folder already."""
    names = ("redis.version", "redis.lock", "appendonlydir", SECRET_FILE, "bus.secret")
    return any((folder / name).exists() for name in names)


def make_private(folder: Path) -> None:
    """Create the data folder with the mode 0700, or take the rights of other users away from an existing one.

    Raises :class:`InvalidSetting` if other users have rights that this process cannot take away, and OSError if the
    folder cannot be created.
    """
    folder.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    if folder.stat().st_mode & OTHERS:
        try:
            folder.chmod(PRIVATE_MODE)
        except PermissionError:
            owner = f"it belongs to user {folder.stat().st_uid} and this process runs as {os.geteuid()}"
            message = f"other users can read the data folder {folder}, and {owner}: `chmod 700` it"
            raise InvalidSetting(message) from None


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read. A reader sees the old or the new content, never a part."""
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_bytes(content)
    partial.replace(file)


def sync_folder(folder: Path) -> None:
    """Write the names in the folder to the disk. Without this, a power cut may take away a new file.

    Raises OSError if the folder cannot be opened, or is on a disk with a fault.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
