"""``firehose`` and its partitions."""

from hashlib import blake2b

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.firehose import Firehose
from filters.partition import Partition


def test_the_firehose_is_everything_public() -> None:
    """Whatever the kind, being public is enough, and necessary."""
    firehose = Firehose.parse("true")
    assert firehose.matches(Event("follow", is_sampled=False))
    assert not firehose.matches(Event("post", is_public=False))


@pytest.mark.parametrize("value", ["", "false", "True", "1", "true,true"])
def test_the_firehose_is_true_or_absent(value: str) -> None:
    """A firehose that is false would be no base at all."""
    with pytest.raises(ParameterError) as refusal:
        Firehose.parse(value)
    assert refusal.value.param == "firehose"


@pytest.mark.parametrize("n", [1, 2, 3, 64])
def test_partitions_are_disjoint_and_complete(n: int) -> None:
    """Each event is in exactly one of the n parts, and no part is empty or nearly everything."""
    parts = [Partition.parse(f"{k}/{n}") for k in range(1, n + 1)]
    sizes = [0] * n
    for author in range(2_000):
        event = Event("post", author=str(author))
        holders = [k for k, part in enumerate(parts) if part.matches(event)]
        assert len(holders) == 1
        sizes[holders[0]] += 1
    assert min(sizes) > 2_000 / n / 3


def test_the_hash_is_the_documented_one() -> None:
    """The first 8 bytes of BLAKE2b of the author's id under the fixed key: another would move everyone's partition."""
    hashed = int.from_bytes(blake2b(b"7", key=b"stream-server partition").digest()[:8], "big")
    matching = [k for k in range(1, 65) if Partition(k, 64).matches(Event("post", author="7"))]
    assert matching == [hashed % 64 + 1]


def test_one_author_stays_in_one_partition() -> None:
    """A consumer sees all that an author does, in order; what nobody did has its part too."""
    part = Partition.parse("2/3")
    author = next(str(n) for n in range(100) if part.matches(Event("post", author=str(n))))
    assert part.matches(Event("delete", author=author, status_id="5"))
    assert sum(Partition(k, 3).matches(Event("post")) for k in (1, 2, 3)) == 1


@pytest.mark.parametrize("value", ["", "0/3", "4/3", "1/65", "1/0", "01/3", "1/3/4", "a/b", "1", "-1/3", "1/3,2/3"])
def test_partitions_that_are_none(value: str) -> None:
    """The part lies within 1 and n, and n within 64."""
    with pytest.raises(ParameterError) as refusal:
        Partition.parse(value)
    assert refusal.value.param == "partition"
