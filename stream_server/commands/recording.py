"""Reads a recording: a file of statuses, one JSON object per line.

The members are ``{"author", "message", "posted"?, "location"?, "place"?, "lang"?}``. The reader reports lines that it
cannot decode, with their number. It does not check messages, points or names: the server does, so the rules exist once.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MAX_PLACE_CHARS = 100
"""Longest place name that the API accepts. Places from profiles can be longer and are cut."""


class UnreadableLine(NamedTuple):
    """A line that is not a status, and the reason."""

    line: int
    reason: str


class RecordedStatus(NamedTuple):
    """One status of a recording.

    Attributes:
        line: Number of the line, from 1.
        author: Author as the recording names it.
        posted: Unix time of the post; None if unknown.
        body: Body of the request that posts it.
    """

    line: int
    author: str
    posted: float | None
    body: dict[str, Any]


class _Row(msgspec.Struct):
    """The members of a line."""

    author: str
    message: str
    posted: datetime | None = None
    location: tuple[float, float] | None = None
    place: str | dict[str, Any] | None = None
    lang: str | None = None


_decode = msgspec.json.Decoder(_Row).decode


def read_recording(path: Path) -> Iterator[RecordedStatus | UnreadableLine]:
    """Yield the statuses of the file in order; skip blank lines."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parse_line(number, line)


def _parse_line(number: int, line: bytes) -> RecordedStatus | UnreadableLine:
    """Return the status of one line, or why the line is unreadable."""
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
    """Return the optional members of the request body, by the names of the API."""
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
    """Return the Unix time; a time without a zone counts as UTC."""
    if posted is None:
        return None
    return (posted if posted.tzinfo is not None else posted.replace(tzinfo=UTC)).timestamp()
