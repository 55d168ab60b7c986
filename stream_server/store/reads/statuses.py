"""Statuses as reads show them."""

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

_HEAD = (
    b'{"id":"%b","uid":"%b","login":"%b","message":%b,"posted":"%b",%b,"lang":"%b","entities":%b,%b,"conversation":"%b"'
)
_JSON = b'%b,"likes":%b,"comments":%b,"reposts":%b}'
_WHOLE = _HEAD + _JSON.removeprefix(b"%b")

_USUAL_PLACE = b'"location":null,"place":null'
_USUAL_ENTITIES = b'{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}'
_USUAL_LINKS = b'"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null'
"""What most statuses have in their JSON. The row of a status has nothing in its place (``lua/status.lua``)."""

MAX_ROWS = 256
"""Most rows of one pipeline. Redis answers them in about half a millisecond, and others in between the next ones."""


Values = Sequence[bytes | None]
"""The fields of a status's hash as `_READ` reads them, all None if there is no such status.

The field ``row`` has values with the byte 1 between them, which JSON does not contain: login, message as JSON, time and
language. Then follow, unless all are usual: location and place, entities, links, conversation and foreign id.
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
        found += await redis.execute(*map(_READ.command, ids[at : at + MAX_ROWS]))
    return found


def row_command(status_id: bytes) -> Command:
    """Return the command whose reply :func:`parse_row` takes."""
    return _READ.command(status_id)


def parse_row(status_id: bytes, values: Values) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist."""
    row, author, likes, comments, reposts, group, origin = values
    if row is None or author is None or likes is None or comments is None or reposts is None:
        return None
    values = _head_values(status_id, author, row)
    is_plain_repost = origin is not None and values[3] == b'""'
    return StatusRow(
        _HEAD % values, author, likes, comments, reposts, group or b"", origin or b"", is_plain_repost, values[4],
        values[-1],
    )  # fmt: skip


def _head_values(status_id: bytes, author: bytes, row: bytes) -> tuple[bytes, ...]:
    """Return the values of `_HEAD` from the field ``row`` of a status."""
    login, message, posted, lang, *unusual = row.split(b"\1")
    if not unusual:
        return (status_id, author, login, message, posted, _USUAL_PLACE, lang, _USUAL_ENTITIES, _USUAL_LINKS, status_id)
    place, entities, links, conversation, foreign_id = unusual
    named = b'%b","foreign_id":"%b' % (status_id, foreign_id) if foreign_id else status_id
    return (
        named, author, login, message, posted, place or _USUAL_PLACE, lang, entities or _USUAL_ENTITIES,
        links or _USUAL_LINKS, conversation or status_id,
    )  # fmt: skip


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
    rows = {at: parse_row(ids[at], each) for at, each in enumerate(found) if each[5] is not None or each[6] is not None}
    originals = await read_originals(sight.redis, rows.values()) if rows else {}
    await learn(sight, rows.values(), originals, [author for _, author, *_ in found if author is not None])
    of = sight.of
    return [
        shown_json(sight, rows[at], originals, least) if at in rows
        else None if row is None or author is None or of(author) < least
        else _WHOLE % (*_head_values(status_id, author, row), likes, comments, reposts)
        for at, (status_id, (row, author, likes, comments, reposts, _, _)) in enumerate(zip(ids, found, strict=True))
    ]  # fmt: skip


async def require(sight: Sight, status_id: str) -> StatusRow:
    """Return the row of a status. Raises NotFound if the viewer may not see it even on request."""
    rows = await read_rows(sight.redis, [status_id.encode()])
    originals = await read_originals(sight.redis, rows)
    await learn(sight, rows, originals)
    if rows[0] is None or shown_json(sight, rows[0], originals, Visibility.ON_REQUEST) is None:
        raise not_found("status")
    return rows[0]
