"""Whether a client gets on, by a clock of the test's own."""

import pytest

from stream_server.hub.slow_client import CHECKS_PER_WINDOW, PeerSilence, SlowClientDetector, StallTimer

FAR = 1000

WINDOW = 60.0

LOOK = WINDOW / CHECKS_PER_WINDOW


def judged(behind: list[int], every: float = LOOK) -> float | None:
    """After how many seconds a client that is so far behind, one look after the other, is found hopeless."""
    pace = SlowClientDetector(FAR, WINDOW)
    for number, entries in enumerate(behind):
        if pace.is_too_slow(entries, number * every):
            return number * every
    return None


def test_who_is_far_behind_and_falls_further_for_a_whole_window_is_hopeless() -> None:
    """At the end of the window, not before, however often it is asked."""
    assert judged([2000 + number for number in range(20)]) == WINDOW
    assert judged([2000 + number for number in range(2000)], every=0.1) == pytest.approx(WINDOW)


@pytest.mark.parametrize(
    "behind",
    [
        [FAR - number % 2 for number in range(100)],
        [2000] * 100,
        [200_000 - number for number in range(100)],
        [2000 + 10 * number - 15 * (number % CHECKS_PER_WINDOW == 0) for number in range(100)],
        [2000, 12_000, *range(11_990, 11_000, -10)],
        [*range(2000, 2007), 900, *range(2000, 2007), 1000, *range(2000, 2007)],
    ],
    ids=["near", "the log stands still", "from far behind", "gains once a window", "after a burst", "near at times"],
)
def test_who_gains_or_is_near_is_never_cut(behind: list[int]) -> None:
    """However slowly, and however far behind it began."""
    assert judged(behind) is None


def test_looks_that_come_late_are_as_good() -> None:
    """A client that is waited for is looked at when that ends."""
    assert judged([2000, 2001, 2002, 2003], every=WINDOW / 2) == WINDOW
    assert judged([2000, 2001, 1999, 2000], every=WINDOW / 2) is None


def test_one_late_look_condemns_nobody() -> None:
    """Behind a window in which nobody looked another one begins, at the end of which it is found all the same."""
    assert judged([2000, 2001], every=WINDOW + 1) is None
    pace = SlowClientDetector(FAR, WINDOW)
    looks = [0.0, WINDOW + 1, *(WINDOW + 1 + LOOK * number for number in range(1, CHECKS_PER_WINDOW + 1))]
    found = [pace.is_too_slow(2000 + number, now) for number, now in enumerate(looks)]
    assert found == [False] * (CHECKS_PER_WINDOW + 1) + [True]


def test_who_takes_no_byte_for_the_deadline_is_stalled() -> None:
    """From the last byte on; one byte within it is enough."""
    stall = StallTimer(30)
    assert [stall.is_over(100, now) for now in (0.0, 29.9)] == [False, False]
    assert [stall.is_over(99, now) for now in (29.95, 30.1, 59.9)] == [False, False, False]
    assert stall.is_over(99, 59.95)


@pytest.mark.parametrize(
    ("looks", "lasted"),
    [
        ([(0, 0.5), (5, 5.5), (9, 9.5)], 9),
        ([(0, 3600.0), (5, 3605.0)], 5),
        ([(0, 0.0), (3600, 3599.0)], 0),
        ([(0, 3.0), (5, 0.1), (9, 4.1)], 4),
        ([(0, 3.0), (5, 0.0), (9, 10.0)], 0),
    ],
    ids=["silent", "written after an hour", "written just now", "heard once", "all acknowledged between"],
)
def test_silence_counts_from_a_look_that_found_something_to_acknowledge(
    looks: list[tuple[float, float]], lasted: float
) -> None:
    """Each look is a time, and what the socket says then; the last one's answer is asked for."""
    silence = PeerSilence()
    assert [silence.measure_seconds(said, now) for now, said in looks][-1] == lasted
