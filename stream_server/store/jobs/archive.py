"""The archive of old statuses: gzip files of lines in a folder. Each is written once, as a whole.

A file has another name until it is on the disk. So those with the right name are whole, whenever a process ends, and
several processes can share a folder.
"""

import gzip
import os
import secrets
from pathlib import Path

from stream_server.config.data_folder import sync_folder


class ArchiveFailure(Exception):
    """The archive could not be written. The message is one sentence for an operator."""


class StatusArchive:
    """Writes files into a folder. Their names sort by the time at which their lines left Redis."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._process = secrets.token_hex(4)
        self._count = 0

    def write(self, at: str, lines: bytes | bytearray) -> None:
        """Write lines that leave at the time ``at`` (ISO 8601) into a new file, and return when it is on the disk.

        It blocks: call it in a thread, one call at a time. Raises `ArchiveFailure`.
        """
        self._count += 1
        name = f"statuses-{at.replace(':', '')}-{self._count:06}-{self._process}"
        partial = self.folder / f"{name}.partial"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it has protected statuses
                with os.fdopen(descriptor, "wb") as file:
                    file.write(gzip.compress(lines))
                    file.flush()
                    os.fsync(descriptor)
                partial.rename(self.folder / f"{name}.ndjson.gz")
            finally:
                partial.unlink(missing_ok=True)
            sync_folder(self.folder)
        except OSError as error:
            message = f"the archive of statuses in {self.folder} cannot be written: {error.strerror or error}"
            raise ArchiveFailure(message) from error
