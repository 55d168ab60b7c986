"""Log lines: one JSON object per line, bounded in length, without secrets, and limited in number.

The one decision: **no client can fill the disk by what it does.** A place in the code that logs may write
:data:`MAX_LINES_PER_WINDOW` lines per :data:`WINDOW_SECONDS`. The first line of the next window has the number of
suppressed lines. There is no access log.
"""

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import msgspec

MAX_LINES_PER_WINDOW = 20
"""Number of lines that one place in the code may write in each :data:`WINDOW_SECONDS`."""

WINDOW_SECONDS = 10.0
"""Length of the throttle's window in seconds."""

MAX_LINE_CHARS = 2000
"""Longest message in characters; the rest is cut off."""
MAX_TRACE_CHARS = 16_000
"""Longest traceback in characters; the beginning is cut off."""

_SECRET_PATTERNS = (
    (re.compile(r"eyJ[\w-]{5,}\.[\w-]*\.?[\w-]*"), "<token>"),
    (re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+"), r"\1<token>"),
    (re.compile(r"(?i)((?:token|password|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,}]+"), r"\1<hidden>"),
    (re.compile(r"(?i)(rediss?://)[^\s/@]*@"), r"\1<hidden>@"),
)


def redact(text: str) -> str:
    """Return ``text`` with everything that looks like a token, a password or the credentials of a URL replaced."""
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


class LogThrottle(logging.Filter):
    """Lets :data:`MAX_LINES_PER_WINDOW` lines of one place in the code pass in each window, and counts the others."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to write the line.

        The number of counters is bounded, because each belongs to a place in the code.
        """
        origin = (record.pathname, record.lineno)
        started, count = self._windows.get(origin, (self._clock(), 0))
        if self._clock() - started >= WINDOW_SECONDS:
            record.suppressed = max(0, count - MAX_LINES_PER_WINDOW)
            started, count = self._clock(), 0
        self._windows[origin] = (started, count + 1)
        return count < MAX_LINES_PER_WINDOW


class JsonLineFormatter(logging.Formatter):
    """Formats a record as one JSON object with ``at``, ``level``, ``logger``, ``message`` and optional members."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line for any record, redacted and bounded in length."""
        line: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redact(record.getMessage())[:MAX_LINE_CHARS],
        }
        request_id = getattr(record, "request_id", None)
        if request_id:
            line["request_id"] = str(request_id)
        if getattr(record, "suppressed", 0):
            line["suppressed"] = record.suppressed  # type: ignore[attr-defined]  # set by LogThrottle
        if record.exc_info:
            line["trace"] = redact(self.formatException(record.exc_info))[-MAX_TRACE_CHARS:]
        return msgspec.json.encode(line).decode()


def configure(level: str, stream: TextIO) -> None:
    """Write the log lines of the whole process to ``stream``, from ``level`` (debug, info, warning, error) upwards."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLineFormatter())
    handler.addFilter(LogThrottle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)


def set_level(level: str) -> None:
    """Write only log lines from ``level`` (debug, info, warning, error) upwards from now on."""
    logging.getLogger().setLevel(level.upper())
