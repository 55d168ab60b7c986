"""A ring of bytes in shared memory: one process writes, others read, and an eventfd for each of them wakes it up.

It is the alternative that `bench.hop` compares with the relay's unix socket. A reader that is too slow finds its bytes
overwritten and starts again at the newest: so nobody holds back the writer.
"""

import mmap
import os
import struct
from collections.abc import Callable
from pathlib import Path

RING_BYTES = 4 * 2**20

_HEAD = struct.Struct("=Q")
"""The number of bytes that were ever written. An aligned word of eight bytes is stored in one step."""


def make_ring(path: Path) -> None:
    """Create the file of a ring. Put it in memory, such as in ``/dev/shm``."""
    path.write_bytes(bytes(_HEAD.size + RING_BYTES))


class RingWriter:
    """The writing side. ``wake_fds`` are the eventfds of the readers."""

    def __init__(self, path: Path, wake_fds: list[int]) -> None:
        self._ring = _Ring(path)
        self._wake_fds = wake_fds

    def write(self, data: bytes) -> None:
        """Append ``data``, and wake up all readers. Never waits."""
        self._ring.put(data)
        for fd in self._wake_fds:
            os.eventfd_write(fd, 1)


class RingReader:
    """The reading side. Call `read` when the eventfd is readable."""

    def __init__(self, path: Path, wake_fd: int, take: Callable[[bytes], None]) -> None:
        self.lost = 0
        self._ring = _Ring(path)
        self._wake_fd = wake_fd
        self._take = take
        self._at = self._ring.written

    def read(self) -> None:
        """Hand over what was written since the last call."""
        os.eventfd_read(self._wake_fd)
        written = self._ring.written
        data = self._ring.get(self._at, written)
        is_whole = self._ring.written - self._at <= RING_BYTES
        self.lost += not is_whole
        self._at = written
        if is_whole:
            self._take(data)


class _Ring:
    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)

    @property
    def written(self) -> int:
        number: int = _HEAD.unpack_from(self._memory)[0]
        return number

    def put(self, data: bytes) -> None:
        written = self.written
        start = written % RING_BYTES
        first = data[: RING_BYTES - start]
        self._copy(start, first)
        if len(first) < len(data):
            self._copy(0, data[len(first) :])
        _HEAD.pack_into(self._memory, 0, written + len(data))

    def get(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` to ``end``, or nothing if they do not fit into the ring."""
        if end - start > RING_BYTES:
            return b""
        low, high = start % RING_BYTES, end % RING_BYTES
        if low <= high:
            return self._memory[_HEAD.size + low : _HEAD.size + high]
        return self._memory[_HEAD.size + low :] + self._memory[_HEAD.size : _HEAD.size + high]

    def _copy(self, at: int, data: bytes) -> None:
        self._memory[_HEAD.size + at : _HEAD.size + at + len(data)] = data
