"""Tests of the reconnect delays."""

from stream_server.client.backoff import Backoff


def test_grows_up_to_its_most() -> None:
    """Each failure doubles the delay, up to the maximum."""
    backoff = Backoff(initial_seconds=1.0, max_seconds=8.0, random_source=lambda: 1.0)
    assert [backoff.delay(failures) for failures in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]


def test_is_drawn_from_the_upper_half() -> None:
    """Clients that fail together do not reconnect together, and none reconnects at once."""
    assert Backoff(initial_seconds=1.0, random_source=lambda: 0.0).delay(2) == 2.0


def test_what_the_server_names_is_the_least() -> None:
    """A delay named by the server is kept and extended at random; a longer own delay wins."""
    assert Backoff(initial_seconds=1.0, random_source=lambda: 1.0).delay(0, 8.0) == 10.0
    assert Backoff(initial_seconds=1.0, random_source=lambda: 0.0).delay(0, 8.0) == 8.0
    assert Backoff(initial_seconds=1.0, random_source=lambda: 1.0).delay(4, 2.0) == 16.0


def test_ten_thousand_failures_are_no_overflow() -> None:
    """If the server is away for days, the client tries at the longest interval, without an error."""
    assert Backoff(random_source=lambda: 1.0).delay(10_000) == 30.0
