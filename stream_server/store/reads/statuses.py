"""Statuses as reads show them. The hash of a status keeps its JSON up to the counters."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.reads.sight import Sight, not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.packing import HashRead

_STATUS = keys.key_for("status").encode()
_FIELDS = (b"plain", b"likes", b"comments", b"reposts", b"rest")
_READS = {head: HashRead(_STATUS, head.encode(), *_FIELDS) for head in ("head", "posted")}

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


_JSON = b'%b,"likes":%b,"comments":%b,"reposts":%b}'

Values = Sequence[bytes | None]
"""The values of a status's hash as Redis returns them: ``head`` and `_FIELDS`, all None if there is no such status."""


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

    def json(self, original: bytes | None = None) -> bytes:
        """Return the status as JSON. ``original`` is the JSON of what it reposts or quotes, None for none."""
        shown = self.head if original is None else b'%b,"original":%b' % (self.head, original)
        return _JSON % (shown, self.likes, self.comments, self.reposts)


async def read_rows(redis: RedisClient, ids: Sequence[bytes], head: str = "head") -> list[StatusRow | None]:
    """Return the rows of statuses in the order of ``ids``, None for one that does not exist.

    The field ``head`` (``head`` or ``posted``) is read as the row's ``head``.
    """
    return [parse_row(values) for values in await _read_values(redis, ids, head)]


async def _read_values(redis: RedisClient, ids: Sequence[bytes], head: str = "head") -> list[Values]:
    found: list[Values] = []
    for at in range(0, len(ids), MAX_ROWS):
        found += await redis.execute(*map(_READS[head].command, ids[at : at + MAX_ROWS]))
    return found


def row_command(status_id: bytes) -> Command:
    """Return the command whose reply :func:`parse_row` takes."""
    return _READS["head"].command(status_id)


def parse_row(values: Values) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist."""
    head, author, likes, comments, reposts, rest = values
    if head is None or likes is None or comments is None or reposts is None:
        return None
    if rest is None:
        return StatusRow(_unpacked(head), author or b"", likes, comments, reposts)
    uid, group, origin, wordless = rest.split(b" ")
    return StatusRow(_unpacked(head), uid, likes, comments, reposts, group, origin, wordless == b"1")


def _unpacked(head: bytes) -> bytes:
    return head if head[0] >= 32 else _PACKED_BYTE.sub(lambda found: _PACKED_WORDS[found[0]], head)


Originals = Mapping[bytes, StatusRow | None]
"""The rows of reposted and quoted statuses by id, None for one that does not exist."""


async def read_originals(redis: RedisClient, rows: Iterable[StatusRow | None]) -> Originals:
    """Return the statuses that others repost or quote."""
    origins = [*{row.origin for row in rows if row is not None and row.origin}]
    return dict(zip(origins, await read_rows(redis, origins), strict=True))


async def learn(
    sight: Sight, rows: Iterable[StatusRow | None], originals: Originals, authors: Iterable[bytes] = ()
) -> None:
    """Read the facts that decide about statuses and about what they repost or quote, and about further authors."""
    texts = [row for row in (*rows, *originals.values()) if row is not None]
    uids = {*authors, *(row.author for row in texts)}
    await sight.learn(uids, [(row.author, row.group) for row in texts if row.group])


def shown_json(sight: Sight, row: StatusRow | None, originals: Originals, least: Visibility) -> bytes | None:
    """Return a status as JSON if its visibility is at least ``least``, else None.

    A repost or quote shows its original, null in the place of a hidden or deleted one. A plain repost shows nothing
    but its original, so it is hidden with it. Both texts must be known to ``sight``.
    """
    if row is None or sight.of(row.author, row.group) < least:
        return None
    if not row.origin:
        return row.json()
    original = originals[row.origin]
    if original is None:
        return row.json(b"null")
    if sight.of(original.author, original.group) >= least:
        return row.json(original.json())
    return None if row.is_plain_repost else row.json(b"null")


async def show(sight: Sight, ids: Sequence[bytes], least: Visibility) -> list[bytes | None]:
    """Return the statuses with these ids as JSON, None for one below the visibility ``least`` and for no status.

    Most statuses are in no group and have no original. They need no `StatusRow`, whose making costs as much as reading.
    """
    found = await _read_values(sight.redis, ids)
    rows = {at: parse_row(values) for at, values in enumerate(found) if values[-1] is not None}
    originals = await read_originals(sight.redis, rows.values()) if rows else {}
    await learn(sight, rows.values(), originals, [author for _, author, *_ in found if author is not None])
    of = sight.of
    return [
        shown_json(sight, rows[at], originals, least) if at in rows
        else None if head is None or author is None or of(author) < least
        else _JSON % (_unpacked(head), likes, comments, reposts)
        for at, (head, author, likes, comments, reposts, _) in enumerate(found)
    ]  # fmt: skip


async def require(sight: Sight, status_id: str) -> StatusRow:
    """Return the row of a status. Raises NotFound if the viewer may not see it even on request."""
    rows = await read_rows(sight.redis, [status_id.encode()])
    originals = await read_originals(sight.redis, rows)
    await learn(sight, rows, originals)
    if rows[0] is None or shown_json(sight, rows[0], originals, Visibility.ON_REQUEST) is None:
        raise not_found("status")
    return rows[0]
