"""`firehose` and `partition`."""

from hashlib import blake2b

import pytest

from filters.event import Event
from filters.narrowing import Partition
from filters.sample import Firehose


def test_the_firehose_is_everything_public() -> None:
    firehose = Firehose.parse("true")
    assert firehose.matches(Event("follow", is_sampled=False))
    assert not firehose.matches(Event("post", is_public=False))


@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_partitions_are_disjoint_and_complete(n: int) -> None:
    parts = [Partition.parse(f"{k}/{n}") for k in range(1, n + 1)]
    sizes = [0] * n
    for author in range(2_000):
        event = Event("post", author=str(author))
        holders = [k for k, part in enumerate(parts) if part.matches(event)]
        assert len(holders) == 1
        sizes[holders[0]] += 1
    assert min(sizes) > 2_000 / n / 3


def test_the_hash_is_the_documented_one() -> None:
    """Another hash would move every author to another partition."""
    hashed = int.from_bytes(blake2b(b"7", key=b"stream-server partition").digest()[:8], "big")
    matching = [k for k in range(1, 65) if Partition(k, 64).matches(Event("post", author="7"))]
    assert matching == [hashed % 64 + 1]


def test_one_author_stays_in_one_partition() -> None:
    part = Partition.parse("2/3")
    author = next(str(n) for n in range(100) if part.matches(Event("post", author=str(n))))
    assert part.matches(Event("delete", author=author, status_id="5"))
    assert sum(Partition(k, 3).matches(Event("post")) for k in (1, 2, 3)) == 1
