"""Statuses as reads show them. The hash of a status keeps its JSON up to the counters."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.reads.sight import Sight, Text, not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command

_STATUS = keys.key_for("status").encode()
_FIELDS = ("plain", "likes", "comments", "reposts", "rest")

_PACKED_WORDS = {
    b"\1": b'{"id":"', b"\2": b'","uid":"', b"\3": b'","login":"', b"\4": b'","message":', b"\5": b',"posted":"',
    b"\6": b'","location":null,"place":null,"lang":"', b"\7": b',"lang":"', b"\x08": b'","entities":',
    b"\x0b": b'{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}',
    b"\x0c": b',"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null,'
             b'"conversation":"',
    b"\x0e": b'"author":{"id":"', b"\x0f": b',"followers":', b"\x10": b',"following":', b"\x11": b',"posts":',
}  # fmt: skip
"""What most statuses have in their JSON, by the bytes that stand for it (``lua/parts/statuses.lua``)."""

_PACKED_BYTE = re.compile(rb"[\1-\x1f]")

MAX_ROWS = 200
"""Most rows of one pipeline. Redis answers them in about half a millisecond, and others in between the next ones."""


class StatusRow(NamedTuple):
    """The fields of a status's hash. ``group`` is empty for none, ``origin`` is the id that it reposts or quotes."""

    head: bytes
    author: bytes
    likes: bytes
    comments: bytes
    reposts: bytes
    group: bytes = b""
    origin: bytes = b""
    is_plain_repost: bool = False

    @property
    def text(self) -> Text:
        """Author and group, which decide who sees it."""
        return Text(self.author, self.group)

    def json(self, original: bytes | None = None) -> bytes:
        """Return the status as JSON. ``original`` is the JSON of what it reposts or quotes, None for none."""
        shown = self.head if original is None else b'%b,"original":%b' % (self.head, original)
        return b'%b,"likes":%b,"comments":%b,"reposts":%b}' % (shown, self.likes, self.comments, self.reposts)


async def read_rows(redis: RedisClient, ids: Sequence[bytes], head: str = "head") -> list[StatusRow | None]:
    """Return the rows of statuses in the order of ``ids``, None for one that does not exist.

    ``head`` names the field that is read as the row's ``head``.
    """
    rows: list[StatusRow | None] = []
    for at in range(0, len(ids), MAX_ROWS):
        commands = [row_command(each, head) for each in ids[at : at + MAX_ROWS]]
        rows += map(parse_row, await redis.execute(*commands))
    return rows


def row_command(status_id: bytes, head: str = "head") -> Command:
    """Return the command whose reply :func:`parse_row` takes. ``head`` names the field of the row's ``head``."""
    return ("HMGET", _STATUS + status_id, head, *_FIELDS)


def parse_row(values: Sequence[bytes | None]) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist."""
    head, author, likes, comments, reposts, rest = values
    if head is None or likes is None or comments is None or reposts is None:
        return None
    if head[0] < 32:
        head = _PACKED_BYTE.sub(lambda found: _PACKED_WORDS[found[0]], head)
    if rest is None:
        return StatusRow(head, author or b"", likes, comments, reposts)
    uid, group, origin, wordless = rest.split(b" ")
    return StatusRow(head, uid, likes, comments, reposts, group, origin, wordless == b"1")


Originals = dict[bytes, StatusRow | None]
"""The rows of reposted and quoted statuses by id, None for one that does not exist."""


async def read_originals(redis: RedisClient, ids: Sequence[bytes], rows: Sequence[StatusRow | None]) -> Originals:
    """Return the originals of the statuses with these ids and rows. Those among the rows are not read again."""
    known: Originals = dict(zip(ids, rows, strict=True))
    missing = [*{row.origin for row in rows if row is not None and row.origin} - known.keys()]
    return known | dict(zip(missing, await read_rows(redis, missing), strict=True)) if missing else known


def texts_of(rows: Iterable[StatusRow | None], originals: Originals) -> Iterable[Text]:
    """Yield the texts of statuses and of what they repost or quote, for :meth:`Sight.learn`."""
    for row in rows:
        if row is not None:
            yield row.text
            original = originals[row.origin] if row.origin else None
            if original is not None:
                yield original.text


def shown_json(sight: Sight, row: StatusRow | None, originals: Originals, least: Visibility) -> bytes | None:
    """Return a status as JSON if its visibility is at least ``least``, else None.

    A repost or quote shows its original, null in the place of a hidden or deleted one. A plain repost shows nothing
    but its original, so it is hidden with it. Both texts must be known to ``sight``.
    """
    if row is None or sight.of(row.text) < least:
        return None
    if not row.origin:
        return row.json()
    original = originals[row.origin]
    if original is None:
        return row.json(b"null")
    if sight.of(original.text) >= least:
        return row.json(original.json())
    return None if row.is_plain_repost else row.json(b"null")


async def show(sight: Sight, ids: Sequence[bytes], least: Visibility) -> list[bytes | None]:
    """Return the statuses with these ids as JSON, None for one below the visibility ``least`` and for no status."""
    rows = await read_rows(sight.redis, ids)
    originals = await read_originals(sight.redis, ids, rows)
    await sight.learn(texts_of(rows, originals))
    return [shown_json(sight, row, originals, least) for row in rows]


async def require(sight: Sight, status_id: str) -> StatusRow:
    """Return the row of a status. Raises NotFound if the viewer may not see it even on request."""
    ids = [status_id.encode()]
    rows = await read_rows(sight.redis, ids)
    originals = await read_originals(sight.redis, ids, rows)
    await sight.learn(texts_of(rows, originals))
    if rows[0] is None or shown_json(sight, rows[0], originals, Visibility.ON_REQUEST) is None:
        raise not_found("status")
    return rows[0]
