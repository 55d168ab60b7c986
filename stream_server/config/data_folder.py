"""The data folder: only the user who runs the server may look into it, because it holds e-mails, hashes and keys."""

import os
from pathlib import Path

from stream_server.config.settings import InvalidSetting

PRIVATE_MODE = 0o700
OTHERS = 0o077


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
