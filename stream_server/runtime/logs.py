"""Log lines: one JSON object per line, bounded in length, without secrets, and limited in number.

The one decision: **no client can fill the disk by its requests.** The number of lines that one place in the code
writes is limited, and the next line says how many were suppressed. The server keeps no access log.
"""

import logging
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

from stream_server.events.one_line import encode_json

MAX_LINES_PER_WINDOW = 20
THROTTLE_SECONDS = 10.0
"""Each place in the code may write so many lines in so many seconds."""

MAX_PLACES = 2000
"""Number of places whose lines are counted. If there are more, the count of all begins anew."""

MAX_LOG_MESSAGE_CHARS = 2000
"""Longest message in characters; the rest is cut off."""

MAX_LOG_LINE_BYTES = 16 * 1024
"""Longest line with its end. A traceback that makes it longer loses its beginning.

Log collectors cut longer lines in parts (containerd and Docker do so after 16 KiB), which are no JSON.
"""

_SECRET_PATTERNS = (
    # From the last `eyJ` of a token's header. From the first, a text of many without a dot would take quadratic time.
    (re.compile(r"eyJ(?:(?!eyJ)[\w-]){5,}\.[\w-]*\.?[\w-]*"), "<token>"),
    (re.compile(r"(?i)(bearer\s+)[\w.~+/=-]+"), r"\1<token>"),
    (re.compile(r"(?i)((?:token|password|secret)[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,}]+"), r"\1<hidden>"),
    (re.compile(r"(?i)(rediss?://)[^\s/@]*@"), r"\1<hidden>@"),
)


def redact(text: str) -> str:
    """Return ``text`` with placeholders for everything that looks like a token, a password or a URL's credentials."""
    for pattern, replacement in _SECRET_PATTERNS:
        text = pattern.sub(replacement, text)
    return text


class LogThrottle(logging.Filter):
    """Limits each place in the code to :data:`MAX_LINES_PER_WINDOW` log lines in 10 seconds.

    A place is a file and a line and, for an exception, also its type and the line that raised it. So a flood of one
    error does not hide another one that is logged at the same line.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._monotonic = monotonic
        self._windows: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return False, which drops the record, if its place in the code has logged too many lines in the last 10 s.

        The first record of this place after the 10 s gets the number of dropped records as ``suppressed``.
        """
        origin = (record.pathname, record.lineno, *_raised_at(record))
        if len(self._windows) >= MAX_PLACES:
            self._windows.clear()
        started, count = self._windows.get(origin, (self._monotonic(), 0))
        if self._monotonic() - started >= THROTTLE_SECONDS:
            record.suppressed = max(0, count - MAX_LINES_PER_WINDOW)
            started, count = self._monotonic(), 0
        self._windows[origin] = (started, count + 1)
        return count < MAX_LINES_PER_WINDOW


def _raised_at(record: logging.LogRecord) -> tuple[object, ...]:
    """Return the type of the record's exception, and the file and line that raised it. Nothing without exception."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    if error is None:
        return ()
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = () if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return (type(error).__name__, *where)


class JsonLineFormatter(logging.Formatter):
    """Formats a log record as a JSON object: ``at``, ``level``, ``logger``, ``message``; for an exception ``trace``.

    ``pid`` is the process, and ``worker`` its number: absent for a supervisor (None).
    """

    def __init__(self, worker: int | None = None) -> None:
        super().__init__()
        self._process = {"pid": os.getpid()} | ({} if worker is None else {"worker": worker})

    def format(self, record: logging.LogRecord) -> str:
        """Return ``record`` as one line of JSON. Secrets are replaced, and a long message or traceback is cut."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._process,
            "message": redact(record.getMessage())[:MAX_LOG_MESSAGE_CHARS],
        }
        request_id = getattr(record, "request_id", None)
        if request_id:
            line["request_id"] = str(request_id)
        if getattr(record, "suppressed", 0):
            line["suppressed"] = record.suppressed  # type: ignore[attr-defined]  # set by LogThrottle
        if record.exc_info:
            line["trace"] = redact(self.formatException(record.exc_info))[-MAX_LOG_LINE_BYTES:]
            while (too_many := len(encode_json(line)) + len("\n") - MAX_LOG_LINE_BYTES) > 0:
                line["trace"] = line["trace"][1 + too_many // 6 :]  # a character takes at most six bytes of JSON
        return encode_json(line).decode()


def configure(level: str, stream: TextIO, worker: int | None = None) -> None:
    """Write the process' log lines of ``level`` (debug, info, warning, error) or higher to ``stream``, as JSON.

    ``worker`` is the number of the process, which each line has.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonLineFormatter(worker))
    handler.addFilter(LogThrottle())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)


def set_level(level: str) -> None:
    """From now on, write only log lines of ``level`` (debug, info, warning, error) or higher."""
    logging.getLogger().setLevel(level.upper())
