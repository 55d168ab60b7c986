"""Verification of candidates within a limited time, with a clock that the test moves."""

from collections.abc import Sequence

from filters.subscription_index import CANDIDATES_PER_SLICE, MAX_COUNTED_SECONDS, MAX_EVENT_SECONDS, Verification


class Candidates:
    """Items that match if they are even. Each verification takes ``seconds`` of the test's clock."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.slices: list[int] = []
        self.verification: Verification[int] = Verification(lambda: self.now)

    def check(self, items: Sequence[int]) -> list[int]:
        self.slices.append(len(items))
        self.now += self.seconds * len(items)
        return [item for item in items if item % 2 == 0]


def test_cheap_candidates_are_all_verified() -> None:
    cheap = Candidates(0.0002)
    assert cheap.verification.verify(range(1001), cheap.check) == [*range(0, 1001, 2)]
    assert cheap.verification.unverified == []


def test_costly_candidates_are_left_for_later_when_the_time_is_over() -> None:
    costly = Candidates(0.002)
    found = costly.verification.verify(range(100), costly.check)
    left = costly.verification.unverified
    assert sorted([*left, *range(left[0])]) == [*range(100)]  # none is lost
    assert found == [*range(0, left[0], 2)]
    assert costly.slices[:2] == [CANDIDATES_PER_SLICE, 1]
    assert costly.now < MAX_EVENT_SECONDS + CANDIDATES_PER_SLICE * costly.seconds


def test_one_pause_of_the_process_leaves_nothing() -> None:
    paused = Candidates(0.0)

    def check(items: Sequence[int]) -> list[int]:
        paused.now += 1.0 if 8 in items else 0.0
        return paused.check(items)

    assert MAX_COUNTED_SECONDS < MAX_EVENT_SECONDS
    assert paused.verification.verify(range(100), check) == [*range(0, 100, 2)]
    assert paused.verification.unverified == []


def test_the_next_event_has_its_own_time() -> None:
    costly = Candidates(0.002)
    costly.verification.verify(range(100), costly.check)
    costly.verification.unverified.clear()
    assert costly.verification.verify([0], costly.check) == []
    costly.verification.spent_seconds = 0.0
    assert costly.verification.verify([0], costly.check) == [0]
