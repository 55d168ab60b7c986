"""Statuses as reads show them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.reads.sight import Sight, Text, not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command

_STATUS = keys.key_for("status").encode()
_FIELDS = ("row", "uid", "likes", "comments", "reposts", "group", "origin")

NO_WHERE = b'"location":null,"place":null'
NO_ENTITIES = b'{"mentions":[],"hashtags":[],"cashtags":[],"urls":[]}'
NO_LINKS = b'"in_reply_to":null,"in_reply_to_uid":null,"origin":null,"media":[],"meta":null,"group":null'
"""The usual members of a status, in whose place its row has nothing (``lua/status.lua``)."""

MAX_ROWS = 200
"""Most rows of one pipeline. Redis answers them in about half a millisecond, and others in between the next ones."""


class StatusRow(NamedTuple):
    """A status as its hash has it.

    Attributes:
        head: Its JSON up to its original and its counters.
        group: Empty for none.
        origin: Id of the status that it reposts or quotes, empty for none.
        posted: Time in ISO 8601.
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

    @property
    def text(self) -> Text:
        """Author and group, which decide who sees it."""
        return Text(self.author, self.group)

    def json(self, original: bytes | None = None) -> bytes:
        """Return the status as JSON. ``original`` is the JSON of what it reposts or quotes, None for none."""
        shown = self.head if original is None else b'%b,"original":%b' % (self.head, original)
        return b'%b,"likes":%b,"comments":%b,"reposts":%b}' % (shown, self.likes, self.comments, self.reposts)


async def read_rows(redis: RedisClient, ids: Sequence[bytes]) -> list[StatusRow | None]:
    """Return the rows of statuses in the order of ``ids``, None for one that does not exist."""
    rows: list[StatusRow | None] = []
    for at in range(0, len(ids), MAX_ROWS):
        some = ids[at : at + MAX_ROWS]
        rows += map(parse_row, some, await redis.execute(*map(row_command, some)))
    return rows


def row_command(status_id: bytes) -> Command:
    """Return the command whose reply :func:`parse_row` takes."""
    return ("HMGET", _STATUS + status_id, *_FIELDS)


def parse_row(status_id: bytes, values: Sequence[bytes | None]) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist.

    The field ``row`` has nine values with the byte 1 between them, which JSON does not contain. ``lua/status.lua``
    writes it, and makes the same JSON of it.
    """
    row, author, likes, comments, reposts, group, origin = values
    if row is None or author is None or likes is None or comments is None or reposts is None:
        return None
    login, message, posted, where, lang, entities, links, conversation, foreign_id = row.split(b"\1")
    named = b'%b","foreign_id":"%b' % (status_id, foreign_id) if foreign_id else status_id
    head = (
        b'{"id":"%b","uid":"%b","login":"%b","message":%b,"posted":"%b",%b,"lang":"%b","entities":%b,%b,"conversation":"%b"'
        % (named, author, login, message, posted, where or NO_WHERE, lang, entities or NO_ENTITIES, links or NO_LINKS,
           conversation or status_id)
    )  # fmt: skip
    is_plain_repost = origin is not None and message == b'""'
    return StatusRow(
        head, author, likes, comments, reposts, group or b"", origin or b"", is_plain_repost, posted,
        conversation or status_id,
    )  # fmt: skip


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
