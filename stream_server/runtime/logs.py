"""Log lines: one JSON object each, bounded, without tokens, and never a storm.

The one decision: whatever a client does, it cannot fill the disk. Lines of one origin (the place in the code
that logs) are let through a few times in a while; the first one of the next while tells how many were held back.
There is no access log.
"""

import logging
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import msgspec

MAX_LINES_PER_WINDOW = 20
"""Lines of one origin let through in each :data:`WINDOW_SECONDS`."""

WINDOW_SECONDS = 10.0

MAX_LINE_CHARS = 2000
MAX_TRACE_CHARS = 16_000

_SECRET_PATTERNS = (
    (re.compile(r"eyJ[\w-]{5,}\.[\w-]*\.?[\w-]*"), "<token>"),
    (re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+"), r"\1<token>"),
    (re.compile(r"(?i)((?:token|password|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,}]+"), r"\1<hidden>"),
    (re.compile(r"(?i)(rediss?://)[^\s/@]*@"), r"\1<hidden>@"),
)


def redact(text: str) -> str:
    """``text`` with everything that looks like a token, a password or a URL's credentials taken out."""
    for pattern, instead in _SECRET_PATTERNS:
        text = pattern.sub(instead, text)
    return text


class LogThrottle(logging.Filter):
    """Lets :data:`MAX_LINES_PER_WINDOW` lines of an origin through in each window, and counts the rest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._windows: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the line is written; an origin is a place in the code, so their number is bounded."""
        origin = (record.pathname, record.lineno)
        began, count = self._windows.get(origin, (self._clock(), 0))
        if self._clock() - began >= WINDOW_SECONDS:
            record.suppressed = max(0, count - MAX_LINES_PER_WINDOW)
            began, count = self._clock(), 0
        self._windows[origin] = (began, count + 1)
        return count < MAX_LINES_PER_WINDOW


class JsonLineFormatter(logging.Formatter):
    """One JSON object a line: ``at``, ``level``, ``logger``, ``message``, and what else there is."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, whatever was logged: bounded and redacted."""
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
            line["suppressed"] = record.suppressed  # type: ignore[attr-defined]  # set by Throttle
        if record.exc_info:
            line["trace"] = redact(self.formatException(record.exc_info))[-MAX_TRACE_CHARS:]
        return msgspec.json.encode(line).decode()


def configure(level: str, stream: TextIO) -> None:
    """Write the lines of the whole process to ``stream`` from ``level`` (debug, info, warning, error) on."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLineFormatter())
    handler.addFilter(LogThrottle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)


def set_level(level: str) -> None:
    """From now on write lines from ``level`` (debug, info, warning, error) on."""
    logging.getLogger().setLevel(level.upper())
