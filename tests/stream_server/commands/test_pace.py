"""When a status is due."""

from stream_server.commands.pacing import OriginalPace, SteadyPace, at_once


def test_a_rate_is_even() -> None:
    """At 50 a second, number 100 is due after two seconds."""
    assert SteadyPace(50)(100, None) == 2.0


def test_a_speed_shrinks_the_recordings_own_time() -> None:
    """At 60 times its pace an hour takes a minute, from the first status on; what has no time waits for nothing."""
    due = OriginalPace(60)
    assert [due(n, posted) for n, posted in enumerate((None, 1000.0, 4600.0, 900.0))] == [0.0, 0.0, 60.0, -100 / 60]


def test_as_fast_as_possible_waits_for_nothing() -> None:
    """Without either, all are due at once."""
    assert at_once(99, 5.0) == 0.0
