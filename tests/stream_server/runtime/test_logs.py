"""Log lines: one JSON object each, bounded, without secrets, and throttled."""

import io
import json
import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest

from stream_server.runtime import logs
from tests.growth import assert_linear
from tests.stream_server import tokens


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """Configure the logs of this process to write here, and restore them."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_log_line_is_one_json_object(out: io.StringIO) -> None:
    logging.getLogger("a.room").warning("lost\n%s", "link")
    (line,) = lines(out)
    assert (line["level"], line["logger"], line["message"]) == ("warning", "a.room", "lost\nlink")
    assert line["at"].endswith("+00:00")
    assert line["pid"] == os.getpid()
    assert "worker" not in line


def test_each_line_of_a_worker_has_its_number() -> None:
    formatter = logs.JsonLineFormatter(3)
    line = json.loads(formatter.format(logging.makeLogRecord({"msg": "x"})))
    assert (line["worker"], line["pid"]) == (3, os.getpid())


def test_records_below_the_level_are_not_written(out: io.StringIO) -> None:
    logging.getLogger("a.room").debug("x")
    assert lines(out) == []


@pytest.mark.parametrize(
    "text",
    [
        tokens.fresh("42"),
        f"GET /v1/stream?access_token={tokens.fresh('42')}",
        tokens.fresh("42").replace(".", "eyJhdHRh.", 1),
        "Authorization: Bearer c2VjcmV0LXNlY3JldA",
        "password='hush-hush'",
        '{"refresh_token": "hush-hush"}',
        "redis://user:hush-hush@inside:6379/0",
        "jwt_secret=hush-hush",
    ],
)
def test_secrets_are_redacted_in_messages_and_tracebacks(out: io.StringIO, text: str) -> None:
    logging.getLogger("a.room").error("failed with %s", text, exc_info=ValueError(text))
    written = out.getvalue()
    assert "failed with" in written
    for secret in ("hush-hush", "c2VjcmV0", text if text.startswith("eyJ") else "eyJ"):
        assert secret not in written


@pytest.mark.parametrize("text", ["eyJ", "eyJhYmNkZWY", "token ", "password:  ", "redis://", "bearer  "])
def test_the_search_for_secrets_grows_no_faster_than_the_text(text: str) -> None:
    assert_linear(lambda size: logs.redact(text * (size // len(text))), 64_000)


def test_a_long_message_is_cut(out: io.StringIO) -> None:
    logging.getLogger("a.room").error("x" * 2**20)
    assert len(lines(out)[0]["message"]) == logs.MAX_LOG_MESSAGE_CHARS


@pytest.mark.parametrize("character", ["x", "é", "\U0001f600", "\x01"])
def test_a_line_has_at_most_16_kib_and_the_end_of_its_traceback(out: io.StringIO, character: str) -> None:
    """A character may take six bytes of JSON."""
    error = ValueError(character * 20_000 + "the end")
    logging.getLogger("a.room").error(character * 20_000, exc_info=error)
    (written,) = out.getvalue().splitlines(keepends=True)
    assert len(written.encode()) <= 16 * 1024
    assert json.loads(written)["trace"].endswith("the end")


def test_repeated_lines_are_suppressed_and_counted() -> None:
    now = 0.0
    throttle = logs.LogThrottle(lambda: now)

    def record(line: int) -> logging.LogRecord:
        return logging.LogRecord("a.room", logging.WARNING, "room.py", line, "lost", (), None)

    assert sum(throttle.filter(record(1)) for _ in range(100)) == logs.MAX_LINES_PER_WINDOW
    assert throttle.filter(record(2))
    now = logs.THROTTLE_SECONDS
    after = record(1)
    assert throttle.filter(after)
    assert json.loads(logs.JsonLineFormatter().format(after))["suppressed"] == 80


def test_a_log_line_has_the_request_id() -> None:
    record = logging.LogRecord("web", logging.ERROR, "web.py", 1, "failed", (), None)
    record.request_id = "abc"
    assert json.loads(logs.JsonLineFormatter().format(record))["request_id"] == "abc"


def test_a_flood_of_one_error_does_not_hide_another_at_the_same_line() -> None:
    throttle = logs.LogThrottle(lambda: 0.0)

    def record(error: Exception) -> logging.LogRecord:
        return logging.LogRecord("a", logging.ERROR, "a.py", 1, "x", (), (type(error), error, None))

    assert sum(throttle.filter(record(ValueError())) for _ in range(100)) == logs.MAX_LINES_PER_WINDOW
    assert throttle.filter(record(KeyError()))


def test_the_throttle_remembers_a_bounded_number_of_places() -> None:
    throttle = logs.LogThrottle(lambda: 0.0)
    for line in range(logs.MAX_PLACES + 10):
        throttle.filter(logging.LogRecord("a", logging.ERROR, "a.py", line, "x", (), None))
    assert len(throttle._windows) <= logs.MAX_PLACES
