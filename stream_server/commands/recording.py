"""A file of statuses, one JSON object a line: ``{"author", "message", "posted"?, "location"?, "place"?, …}``.

What a line cannot be read for is told with its number; what the server thinks of a message, a point or a name is the
server's to say, so its rules stand in one place.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

PLACE_CHARS = 100
"""The longest place name that the API takes; profiles have longer ones, which are cut: they are no addresses."""


class Unreadable(NamedTuple):
    """A line that is no status, and why."""

    line: int
    reason: str


class Recorded(NamedTuple):
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


def read(path: Path) -> Iterator[Recorded | Unreadable]:
    """The statuses of the file in its order; blank lines are passed over."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _read(number, line)


def _read(number: int, line: bytes) -> Recorded | Unreadable:
    try:
        row = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return Unreadable(number, str(error))
    if not row.author.strip():
        return Unreadable(number, "`author` is empty")
    return Recorded(number, row.author, _unix(row.posted), {"message": row.message, **_optional(row)})


def _optional(row: _Row) -> dict[str, Any]:
    """The members that the API may be given, as it names them."""
    found: dict[str, Any] = {}
    if row.location is not None:
        found["location"] = {"lon": row.location[0], "lat": row.location[1]}
    if isinstance(row.place, dict):
        found["place"] = row.place
    elif row.place is not None and row.place.strip():
        found["place"] = {"name": row.place.strip()[:PLACE_CHARS]}
    if row.lang is not None:
        found["lang"] = row.lang
    return found


def _unix(posted: datetime | None) -> float | None:
    if posted is None:
        return None
    return (posted if posted.tzinfo is not None else posted.replace(tzinfo=UTC)).timestamp()
