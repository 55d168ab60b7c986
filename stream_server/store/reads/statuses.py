"""Statuses as reads show them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.reads.sight import Sight, not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.packing import KeyRead

_STATUS = keys.key_for("status").encode()
_READ = KeyRead(b"HMGET", _STATUS, b"row", b"uid", b"likes", b"comments", b"reposts", b"group", b"origin")

_HEAD = b'{"id":"%b","uid":"%b","login":"%b%b"'
_JSON = b'%b,"likes":%b,"comments":%b,"reposts":%b}'
_WHOLE = _HEAD + _JSON.removeprefix(b"%b")

_USUAL_LINKS = b'"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null'
_TEXTS = (
    (b"\1", b'","message":'),
    (b"\2", b',"posted":"'),
    (b"\3", b'","location":null,"place":null,"lang":"'),
    (b"\4", b'",'),
    (b"\5", b',"lang":"'),
    (b"\6", b'","entities":{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]},'),
    (b"\7", b'","entities":'),
    (b"\x08", b","),
    (b"\x0e", _USUAL_LINKS + b',"conversation":"'),
    (b"\x0f", b',"conversation":"'),
)
"""The bytes that stand for texts in rows of statuses. ``lua/status.lua`` says what a row is."""

_FOREIGN = re.compile(rb'","uid":"([0-9]+)","login":"([^"\x10]*)\x10')
"""The foreign id of a row, which comes before the author in JSON."""

_FIRST_OF_JSON = ord(" ")
"""The lowest byte of JSON. A row that ends with a lower one has no conversation: the status is the first of its own."""

_TIME_LENGTH = len("2000-01-01T00:00:00.000Z")

_BETWEEN = b"\0"
"""Stands between rows that are expanded together."""

MAX_ROWS = 256
"""Most rows of one pipeline. Redis answers them in about half a millisecond, and others in between the next ones."""


Values = Sequence[bytes | None]
"""The fields of a status's hash as `_READ` reads them, all None if there is no such status.

The field ``row`` is JSON in which one byte stands for each text of `_TEXTS`.
"""


class StatusRow(NamedTuple):
    """A status as its hash has it.

    Attributes:
        head: Its JSON up to its original and its counters.
        group: Id of its group, empty for none.
        origin: Id of the status that it reposts or quotes, empty for none.
        posted: Its time in ISO 8601.
        conversation: Id of the first status of its conversation.
    """

    head: bytes
    author: bytes
    likes: bytes
    comments: bytes
    reposts: bytes
    group: bytes
    origin: bytes
    is_plain_repost: bool
    posted: bytes
    conversation: bytes

    def json(self, original: bytes | None = None) -> bytes:
        """Return the status as JSON. ``original`` is the JSON of the status that it reposts or quotes, or None."""
        shown = self.head if original is None else b'%b,"original":%b' % (self.head, original)
        return _JSON % (shown, self.likes, self.comments, self.reposts)


async def read_rows(redis: RedisClient, ids: Sequence[bytes]) -> list[StatusRow | None]:
    """Return the rows of statuses in the order of ``ids``, None for one that does not exist."""
    return [*map(parse_row, ids, await _read_values(redis, ids))]


async def _read_values(redis: RedisClient, ids: Sequence[bytes]) -> list[Values]:
    found: list[Values] = []
    for at in range(0, len(ids), MAX_ROWS):
        found += await redis.execute(*_READ.commands(ids[at : at + MAX_ROWS]))
    return found


def row_command(status_id: bytes) -> Command:
    """Return the command whose reply :func:`parse_row` takes."""
    return _READ.command(status_id)


def parse_row(status_id: bytes, values: Values) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist."""
    row, author, likes, comments, reposts, group, origin = values
    if row is None or author is None or likes is None or comments is None or reposts is None:
        return None
    message, _, end = row.partition(b"\1")[2].partition(b"\2")
    names_itself = row[-1] < _FIRST_OF_JSON
    head = _expand(_HEAD % (status_id, author, row, status_id if names_itself else b""))
    return StatusRow(
        head, author, likes, comments, reposts, group or b"", origin or b"",
        origin is not None and message == b'""', end[:_TIME_LENGTH],
        status_id if names_itself else row.rpartition(b"\x0f")[2],
    )  # fmt: skip


def _expand(rows: bytes) -> bytes:
    """Return the JSON of rows, which may be many together: to search in all of them costs little more than in one."""
    for short, text in _TEXTS:
        rows = rows.replace(short, text)
    return _FOREIGN.sub(rb'","foreign_id":"\2","uid":"\1","login":"', rows) if b"\x10" in rows else rows


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

    Most statuses are in no group and have no original. They need no `StatusRow`, and their JSON is made together.
    """
    if not ids:
        return []
    found = await _read_values(sight.redis, ids)
    _, authors, *_, groups, origins = zip(*found, strict=True)
    known = {author for author in authors if author is not None}
    rows: dict[int, StatusRow | None] = {}
    originals: Originals = {}
    if any(groups) or any(origins):
        rows = {at: parse_row(ids[at], found[at]) for at, of in enumerate(zip(groups, origins, strict=True)) if any(of)}
        originals = await read_originals(sight.redis, rows.values())
        await learn(sight, rows.values(), originals, known)
    else:
        await sight.learn(known)
    seen = sight.authors_seen(least)
    usual = [
        _WHOLE % (status_id, author, row, status_id if row[-1] < _FIRST_OF_JSON else b"", likes, comments, reposts)
        for status_id, (row, author, likes, comments, reposts, group, origin) in zip(ids, found, strict=True)
        if author in seen and row and not group and not origin
    ]
    shown: list[bytes | None] = [*_expand(_BETWEEN.join(usual)).split(_BETWEEN)]
    if len(usual) == len(ids):
        return shown
    rest = iter(shown)
    return [
        shown_json(sight, rows[at], originals, least) if at in rows
        else next(rest) if row and author in seen
        else None
        for at, (row, author, *_) in enumerate(found)
    ]  # fmt: skip


async def require(sight: Sight, status_id: str) -> StatusRow:
    """Return the row of a status. Raises NotFound if the viewer may not see it even on request."""
    rows = await read_rows(sight.redis, [status_id.encode()])
    originals = await read_originals(sight.redis, rows)
    await learn(sight, rows, originals)
    if rows[0] is None or shown_json(sight, rows[0], originals, Visibility.ON_REQUEST) is None:
        raise not_found("status")
    return rows[0]
