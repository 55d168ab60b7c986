"""Log lines: one JSON object each, bounded, without secrets, and never a storm."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from stream_server.runtime import logs
from tests.stream_server import tokens


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    """What a process with these logs writes; the root logger is as before afterwards."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    stream = io.StringIO()
    logs.configure("info", stream)
    yield stream
    root.handlers[:] = before
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    """The lines, decoded; each is one JSON object."""
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_is_an_object(out: io.StringIO) -> None:
    """With time, level, logger and message, whatever line feeds the message has."""
    logging.getLogger("a.room").warning("lost\n%s", "link")
    (line,) = lines(out)
    assert (line["level"], line["logger"], line["message"]) == ("warning", "a.room", "lost\nlink")
    assert line["at"].endswith("+00:00")


def test_less_than_the_level_is_nothing(out: io.StringIO) -> None:
    """What is below the level is not written at info."""
    logging.getLogger("a.room").debug("x")
    assert lines(out) == []


@pytest.mark.parametrize(
    "text",
    [
        tokens.fresh("42"),
        f"GET /v1/stream?access_token={tokens.fresh('42')}",
        "Authorization: Bearer c2VjcmV0LXNlY3JldA",
        "password='hush-hush'",
        '{"refresh_token": "hush-hush"}',
        "redis://user:hush-hush@inside:6379/0",
        "jwt_secret=hush-hush",
    ],
)
def test_secrets_are_taken_out(out: io.StringIO, text: str) -> None:
    """In the message and in a traceback."""
    logging.getLogger("a.room").error("failed with %s", text, exc_info=ValueError(text))
    written = out.getvalue()
    assert "failed with" in written
    for secret in ("hush-hush", "c2VjcmV0", text if text.startswith("eyJ") else "eyJ"):
        assert secret not in written


def test_a_line_is_bounded(out: io.StringIO) -> None:
    """A megabyte is cut to two thousand characters."""
    logging.getLogger("a.room").error("x" * 2**20)
    assert len(lines(out)[0]["message"]) == logs.MAX_LINE_CHARS


def test_a_storm_is_held_back_and_told() -> None:
    """A hundred lines of one place in the code: twenty pass; the first of the next while tells of the other eighty."""
    now = 0.0
    throttle = logs.LogThrottle(lambda: now)

    def record(line: int) -> logging.LogRecord:
        return logging.LogRecord("a.room", logging.WARNING, "room.py", line, "lost", (), None)

    assert sum(throttle.filter(record(1)) for _ in range(100)) == logs.MAX_LINES_PER_WINDOW
    assert throttle.filter(record(2))
    now = logs.WINDOW_SECONDS
    after = record(1)
    assert throttle.filter(after)
    assert json.loads(logs.JsonLineFormatter().format(after))["suppressed"] == 80


def test_a_request_is_named() -> None:
    """The id of a request that failed is on its line."""
    record = logging.LogRecord("web", logging.ERROR, "web.py", 1, "failed", (), None)
    record.request_id = "abc"
    assert json.loads(logs.JsonLineFormatter().format(record))["request_id"] == "abc"
