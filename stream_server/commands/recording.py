"""Reads a recording: a file of statuses, one JSON object per line, by authors who may lack an account.

The members are ``{"author", "message", "posted"?, "location"?, "place"?, "lang"?}`` (``?``: the member is optional).
The reader only reports lines that it cannot decode. The server checks the values when the statuses are posted.
"""

import re
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_server.security.external_identity import MAX_NAME_CHARS

LOGIN_PATTERN = re.compile(r"[A-Za-z0-9_]{1,20}")


class UnreadableLine(NamedTuple):
    """A line of a recording that cannot be decoded as a status: its number from 1, and the reason."""

    line: int
    reason: str


class RecordedStatus(NamedTuple):
    """One status of a recording.

    Attributes:
        line: Number of the status's line in the file, from 1.
        author: Name of the author as the file gives it. It need not be a valid login.
        posted: Unix time of the post in seconds; None if the line has no time. A time without a zone counts as UTC.
        body: Body of the API request that posts the status.
    """

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
    """Yield the statuses and the unreadable lines of the file in order; skip blank lines."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield _parse_line(number, line)


def _parse_line(number: int, line: bytes) -> RecordedStatus | UnreadableLine:
    try:
        row = _decode(line.removeprefix(BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return UnreadableLine(number, str(error))
    if not row.author.strip():
        return UnreadableLine(number, "`author` is empty")
    posted = row.posted if row.posted is None or row.posted.tzinfo is not None else row.posted.replace(tzinfo=UTC)
    return RecordedStatus(number, row.author, None if posted is None else posted.timestamp(), _request_body(row))


def _request_body(row: _Row) -> dict[str, Any]:
    found: dict[str, Any] = {"message": row.message}
    if row.location is not None:
        found["location"] = {"lon": row.location[0], "lat": row.location[1]}
    if isinstance(row.place, dict):
        found["place"] = row.place
    elif row.place is not None and row.place.strip():
        # Places from profiles can be longer than the API accepts.
        found["place"] = {"name": row.place.strip()[:100]}
    if row.lang is not None:
        found["lang"] = row.lang
    return found


def login_of_author(author: str) -> str:
    """Return the login for an author of a recording: the name itself if it is a valid login, else one made from it.

    The same name always gives the same login, so a second replay finds the account. A made login ends with six
    hexadecimal digits of the name's hash.
    """
    if LOGIN_PATTERN.fullmatch(author):
        return author
    digest = blake2b(author.encode(errors="surrogatepass"), digest_size=3).hexdigest()
    readable = re.sub(r"[^A-Za-z0-9_]+", "_", author).strip("_")
    return f"{readable[:13] or 'author'}_{digest}"


def name_of_author(author: str) -> str:
    """Return an author's display name: ``author`` without control characters, cut to 50; the login if that is empty."""
    clean = "".join(c for c in author if unicodedata.category(c) not in {"Cc", "Cs"}).strip()
    return clean[:MAX_NAME_CHARS].strip() or login_of_author(author)
