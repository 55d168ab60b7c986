"""`sample` matches a fixed share of all statuses."""

from hashlib import blake2b

import pytest

from filters.event import Event
from filters.sample import SAMPLE_HASH_KEY, Sample, sample_position

STATUSES = [Event("post", status_id=str(n * 4096)) for n in range(20_000)]


def taken(percent: str) -> set[str | None]:
    sample = Sample.parse(percent)
    return {event.status_id for event in STATUSES if sample.matches(event)}


def test_samples_are_nested_and_near_their_size() -> None:
    one, ten = taken("1"), taken("10")
    assert one < ten
    assert 140 < len(one) < 260
    assert 1_800 < len(ten) < 2_200
    assert len(taken("100")) == len(STATUSES)


def test_the_bound_is_exact() -> None:
    event = STATUSES[7]
    millionths = (
        sample_position(event) * 100 * 10**6 // 2**64
    )  # the share below which it is out, in millionths of a percent
    below, above = (f"{n // 10**6}.{n % 10**6:06d}" for n in (millionths, millionths + 1))
    assert not Sample.parse(below).matches(event)
    assert Sample.parse(above).matches(event)


def test_the_bound_itself_is_outside() -> None:
    half, event = Sample.parse("50"), Event("post", status_id="1")
    for place, inside in ((2**63 - 1, True), (2**63, False)):
        event.sample_position = place
        assert (half.matches(event), half.contains_position(place)) == (inside, inside)


def test_the_hash_is_the_documented_one() -> None:
    """Another hash would be another sample for every client."""
    expected = blake2b(b"28672", key=b"stream-server sample").digest()[:8]
    assert SAMPLE_HASH_KEY == b"stream-server sample"
    assert sample_position(STATUSES[7]) == int.from_bytes(expected, "big")


def test_events_that_are_never_sampled_are_outside_the_whole() -> None:
    sample = Sample.parse("100")
    assert sample.matches(Event("like", status_id="1"))
    assert not sample.matches(Event("follow"))
    assert not sample.matches(Event("follow", status_id="1", is_sampled=False))
    assert not sample.matches(Event("post", status_id="1", is_public=False))


@pytest.mark.parametrize(("one", "other"), [("100.0", "100"), ("0.000001", ".000001"), (".5", "0.5"), ("1.50", "1.5")])
def test_equal_percentages_are_equal_filters(one: str, other: str) -> None:
    assert Sample.parse(one) == Sample.parse(other)
