"""A status' one form on the wire, from the fields of its hash. ``lua/post.lua`` puts the same pieces together.

The counters come last, so that everything before them is immutable bytes.
"""

from collections.abc import Mapping, Sequence

import msgspec

from stream_server.events import iso

_encode = msgspec.json.encode

FIELDS = (
    "id", "uid", "login", "message", "posted", "location", "place", "lang", "entities", "in_reply_to",
    "in_reply_to_uid", "origin", "media", "meta", "likes", "comments", "reposts", "original",
)  # fmt: skip
"""What is read of a status' hash. ``original`` is the reposted as it was then; it is shown as it is now."""

Kept = Mapping[str, bytes]
"""The fields that a status has."""

NO_COUNTERS = b',"likes":0,"comments":0,"reposts":0}'


def kept(row: Sequence[bytes | None]) -> Kept | None:
    """The fields in a row of :data:`FIELDS`; None if there is no such status."""
    if row[0] is None:
        return None
    return {name: value for name, value in zip(FIELDS, row, strict=True) if value is not None}


def words(status: Kept) -> bytes:
    """The members before the time."""
    return b'"message":' + _encode(status["message"].decode())


def rest(status: Kept) -> bytes:
    """The members after the time, without the original and the counters."""
    get = status.get
    return (
        b'"location":%b,"place":%b,"lang":%b,"entities":%b,"in_reply_to":%b,"in_reply_to_uid":%b,"origin":%b,'
        b'"media":%b,"meta":%b'
        % (
            get("location", b"null"), get("place", b"null"), _text(get("lang")), status["entities"],
            _text(get("in_reply_to")), _text(get("in_reply_to_uid")), _text(get("origin")),
            get("media", b"[]"), get("meta", b"null"),
        )
    )  # fmt: skip


def head(status: Kept) -> bytes:
    """Everything that never changes: the JSON up to the original and the counters."""
    posted = iso(int(status["posted"])).encode()
    return b'{"id":"%b","uid":"%b","login":"%b",%b,"posted":"%b",%b' % (
        status["id"], status["uid"], status["login"], words(status), posted, rest(status),
    )  # fmt: skip


def counters(status: Kept) -> bytes:
    """The end of the JSON: the counters as they are."""
    return b',"likes":%b,"comments":%b,"reposts":%b}' % (status["likes"], status["comments"], status["reposts"])


def whole(status: Kept, original: bytes | None) -> bytes:
    """A status as it is now; ``original`` is None for a repost whose original is gone."""
    embedded = b',"original":' + (original or b"null") if "origin" in status else b""
    return head(status) + embedded + counters(status)


def as_posted(status: Kept) -> bytes:
    """A status as its entry on the log has it: no counts yet, the original as it was."""
    embedded = b',"original":' + status["original"] if "original" in status else b""
    return head(status) + embedded + NO_COUNTERS


def _text(value: bytes | None) -> bytes:
    """An id or a language tag as JSON: neither has a character to escape."""
    return b"null" if value is None else b'"%b"' % value
