"""The last warnings and errors: bounded, counted and without secrets."""

import logging
from functools import partial
from itertools import count

from stream_server.monitoring.incidents import MAX_ERROR_CHARS, MAX_ERRORS, RecentErrors

logger = logging.getLogger("stream_server.test_incidents")


def test_equal_errors_are_one_row_and_the_newest_is_first() -> None:
    errors = RecentErrors()
    with errors.attached():
        for word in ("one", "two", "one"):
            logger.warning("it failed: %s", word)
        logger.info("all is well")
    logger.warning("after the block")
    assert [(error.message, error.times) for error in errors.newest_first()] == [
        ("it failed: one", 2), ("it failed: two", 1)
    ]  # fmt: skip


def test_the_memory_of_errors_is_bounded() -> None:
    errors = RecentErrors(partial(next, count(0, 100)))
    with errors.attached():
        for number in range(10 * MAX_ERRORS):
            logger.error("error %d %s", number, "x" * 2000)
    assert [error.message.split()[1] for error in errors.newest_first()] == [
        str(number) for number in range(10 * MAX_ERRORS - 1, 9 * MAX_ERRORS - 1, -1)
    ]
    assert {len(error.message) for error in errors.newest_first()} == {MAX_ERROR_CHARS}


def test_a_flood_costs_little_and_is_counted_at_its_next_record() -> None:
    """A place is heard 20 times in 10 s. The next window adds the others."""
    now = [0.0]
    errors = RecentErrors(lambda: now[0])
    with errors.attached():
        for number in range(1001):
            now[0] = 11.0 * (number == 1000)
            logger.warning("again")
            if number == 999:
                assert [error.times for error in errors.newest_first()] == [20]
    assert [error.times for error in errors.newest_first()] == [1001]


def test_secrets_are_replaced_also_in_the_text_of_an_exception() -> None:
    errors = RecentErrors()
    with errors.attached():
        error = ValueError("redis://user:hunter2@host is away")
        logger.error("password=hunter3 of eyJhbGciOi.x.y", exc_info=error)
    (found,) = errors.newest_first()
    assert found.message == "password=<hidden> of <token>: ValueError: redis://<hidden>@host is away"


def test_a_record_with_wrong_arguments_is_left_to_the_log() -> None:
    errors = RecentErrors()
    errors.handle(logging.LogRecord("x", logging.ERROR, "x.py", 1, "%d", ("word",), None))
    assert errors.newest_first() == []
