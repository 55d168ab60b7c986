"""A file of statuses, one JSON object a line: ``{"author", "message", "posted"?, "location"?, "place"?, …}``.

What a line cannot be read for is told with its number; what the server thinks of a message, a point or a name is the
server's to say, so its rules stand in one place.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MAX_PLACE_CHARS = 100
"""The longest place name that the API takes; profiles have longer ones, which are cut: they are no addresses."""


class UnreadableLine(NamedTuple):
    """A line that is no status, and why."""

    line: int
    reason: str


class RecordedStatus(NamedTuple):
    """One status of a recording; ``posted`` is Unix time, ``body`` what is sent."""

    line: int
    author: str
    posted: float | None
    body: dict[str, Any]


class _Row(msgspec.Struct):
    author: str
    message: str
    posted: datetime | None = None
    location: tuple[float, float] | None = None
    place: str | dict[str, Any] | None = None
    lang: str | None = None


_decode = msgspec.json.Decoder(_Row).decode


def read_recording(path: Path) -> Iterator[RecordedStatus | UnreadableLine]:
    """The statuses of the file in its order; blank lines are passed over."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parse_line(number, line)


def _parse_line(number: int, line: bytes) -> RecordedStatus | UnreadableLine:
    try:
        row = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return UnreadableLine(number, str(error))
    if not row.author.strip():
        return UnreadableLine(number, "`author` is empty")
    return RecordedStatus(
        number, row.author, _unix_time(row.posted), {"message": row.message, **_optional_members(row)}
    )


def _optional_members(row: _Row) -> dict[str, Any]:
    """The members that the API may be given, as it names them."""
    found: dict[str, Any] = {}
    if row.location is not None:
        found["location"] = {"lon": row.location[0], "lat": row.location[1]}
    if isinstance(row.place, dict):
        found["place"] = row.place
    elif row.place is not None and row.place.strip():
        found["place"] = {"name": row.place.strip()[:MAX_PLACE_CHARS]}
    if row.lang is not None:
        found["lang"] = row.lang
    return found


def _unix_time(posted: datetime | None) -> float | None:
    if posted is None:
        return None
    return (posted if posted.tzinfo is not None else posted.replace(tzinfo=UTC)).timestamp()
