"""The shared memory of the benchmark: a reader gets all bytes in order, or learns that it was too slow."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.shared_ring import RING_BYTES, RingReader, RingWriter, make_ring


@pytest.fixture
def wake_fd() -> Iterator[int]:
    if not hasattr(os, "eventfd"):
        pytest.skip("no eventfd here")
    fd = os.eventfd(0, os.EFD_NONBLOCK)
    yield fd
    os.close(fd)


def test_a_reader_gets_all_bytes_in_order_also_across_the_end(tmp_path: Path, wake_fd: int) -> None:
    chance, sent, taken = random.Random(3), bytearray(), bytearray()
    make_ring(tmp_path / "ring")
    writer = RingWriter(tmp_path / "ring", [wake_fd])
    reader = RingReader(tmp_path / "ring", wake_fd, taken.extend)
    while len(sent) < 3 * RING_BYTES:
        for _ in range(chance.randint(1, 3)):
            data = chance.randbytes(chance.randint(1, RING_BYTES // 4))
            sent += data
            writer.write(data)
        reader.read()
    assert (taken, reader.lost) == (sent, 0)


def test_a_reader_that_is_too_slow_learns_it_and_goes_on_at_the_newest(tmp_path: Path, wake_fd: int) -> None:
    taken: list[bytes] = []
    make_ring(tmp_path / "ring")
    writer = RingWriter(tmp_path / "ring", [wake_fd])
    reader = RingReader(tmp_path / "ring", wake_fd, taken.append)
    for _ in range(5):
        writer.write(b"x" * (RING_BYTES // 4))
    reader.read()
    assert (taken, reader.lost) == ([], 1)
    writer.write(b"new")
    reader.read()
    assert taken == [b"new"]
