"""The delays between reconnects."""

from stream_server.client.transport import Backoff


def test_the_delay_doubles_up_to_its_maximum() -> None:
    backoff = Backoff(initial_seconds=1.0, max_seconds=8.0, random_source=lambda: 1.0)
    assert [backoff.delay(failures) for failures in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]


def test_the_delay_is_random_in_its_upper_half() -> None:
    assert Backoff(initial_seconds=1.0, random_source=lambda: 0.0).delay(2) == 2.0


def test_a_delay_of_the_server_is_the_minimum() -> None:
    assert Backoff(initial_seconds=1.0, random_source=lambda: 1.0).delay(0, 8.0) == 10.0
    assert Backoff(initial_seconds=1.0, random_source=lambda: 0.0).delay(0, 8.0) == 8.0
    assert Backoff(initial_seconds=1.0, random_source=lambda: 1.0).delay(4, 2.0) == 16.0


def test_ten_thousand_failures_give_the_maximum() -> None:
    assert Backoff(random_source=lambda: 1.0).delay(10_000) == 30.0
