"""``sample`` is a fixed share of all statuses."""

from hashlib import blake2b

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.sample import SAMPLE_HASH_KEY, Sample, sample_position

STATUSES = [Event("post", status_id=str(n * 4096)) for n in range(20_000)]


def taken(percent: str) -> set[str | None]:
    """The ids in the sample."""
    sample = Sample.parse(percent)
    return {event.status_id for event in STATUSES if sample.matches(event)}


def test_samples_are_nested_and_near_their_size() -> None:
    """The 1 % lies inside the 10 %, which lies inside all, and each has about its share."""
    one, ten = taken("1"), taken("10")
    assert one < ten
    assert 140 < len(one) < 260
    assert 1_800 < len(ten) < 2_200
    assert len(taken("100")) == len(STATUSES)


def test_the_bound_is_exact() -> None:
    """A status is in from the very percentage at which its point falls below the bound, to the millionth."""
    event = STATUSES[7]
    millionths = (
        sample_position(event) * 100 * 10**6 // 2**64
    )  # the share below which it is out, in millionths of a percent
    below, above = (f"{n // 10**6}.{n % 10**6:06d}" for n in (millionths, millionths + 1))
    assert not Sample.parse(below).matches(event)
    assert Sample.parse(above).matches(event)


def test_the_very_bound_is_outside() -> None:
    """Half of the line ends before its middle, which belongs to the other half."""
    half, event = Sample.parse("50"), Event("post", status_id="1")
    for place, inside in ((2**63 - 1, True), (2**63, False)):
        event.sample_position = place
        assert (half.matches(event), half.contains_position(place)) == (inside, inside)


def test_the_hash_is_the_documented_one() -> None:
    """The first 8 bytes of BLAKE2b of the id under the fixed key: another would be another sample for everyone."""
    expected = blake2b(b"28672", key=b"stream-server sample").digest()[:8]
    assert SAMPLE_HASH_KEY == b"stream-server sample"
    assert sample_position(STATUSES[7]) == int.from_bytes(expected, "big")


def test_what_is_never_sampled_is_not_even_in_the_whole() -> None:
    """Events without a status, of kinds that are not sampled, or not public stay out at 100 %."""
    sample = Sample.parse("100")
    assert sample.matches(Event("like", status_id="1"))
    assert not sample.matches(Event("follow"))
    assert not sample.matches(Event("follow", status_id="1", is_sampled=False))
    assert not sample.matches(Event("post", status_id="1", is_public=False))


@pytest.mark.parametrize(("one", "other"), [("100.0", "100"), ("0.000001", ".000001"), (".5", "0.5"), ("1.50", "1.5")])
def test_percentages(one: str, other: str) -> None:
    """Up to 100, with up to six places; written otherwise it is the same filter."""
    assert Sample.parse(one) == Sample.parse(other)


@pytest.mark.parametrize(
    "value", ["", "0", "0.0", "101", "100.000001", "-1", "1e1", "nan", "inf", "0.0000001", "1,2", " 1", "5%", "\u0661"]
)
def test_what_is_no_percentage(value: str) -> None:
    """Nothing, all, more than all and what is no plain decimal are refused."""
    with pytest.raises(ParameterError) as refusal:
        Sample.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "sample")
