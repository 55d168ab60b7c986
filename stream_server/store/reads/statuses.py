"""Statuses as reads show them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.reads.sight import REMOVED_READ, Sight, StatusesRead, not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import KeyRead
from stream_server.store.status_row import Mark

_STATUS = keys.key_for("status").encode()
_READ = KeyRead(b"HMGET", _STATUS, b"row", b"uid", b"likes", b"comments", b"reposts")

_FACTS_READ = KeyRead(b"HMGET", _STATUS, b"uid", b"group", b"origin")

_SHORT = b'{"id":"%b","uid":"%b","login":"%b%b"%b,"likes":%b,"comments":%b,"reposts":%b}'

_LOGIN_END, _MESSAGE_END = Mark.LOGIN_END.byte, Mark.MESSAGE_END.byte

_TEXTS = tuple((mark.byte, mark.text) for mark in Mark if mark is not Mark.FOREIGN_ID_END)
"""The marks in rows of statuses, and their texts.

A row is nearly the JSON that a page shows, so the thirty rows of a page are expanded together, by replacing bytes. That
takes 17 µs. To make the JSON of thirty rows from separate values took 44 µs.
"""

_LINKS = re.compile(
    rb'[%b%b]"in_reply_to":[^,]*,"in_reply_to_uid":[^,]*,"origin":(?:null|"([0-9]+)"),'
    rb'.*"group":(?:null|"([0-9]+)")(?=%b)' % (Mark.NO_ENTITIES.byte, Mark.ENTITIES_END.byte, Mark.CONTEXT_END.byte),
    re.DOTALL,
)
"""Finds what a row refers to. Its groups are the ids of the origin and of the group, None for null."""

_LINKED = Mark.CONTEXT_END.byte
"""The byte behind these links. A row without it refers to nothing."""

_NAMED = Mark.FOREIGN_ID_END.byte
_FOREIGN = re.compile(rb'","uid":"([0-9]+)","login":"([^"%b]*)%b' % (_NAMED, _NAMED))
"""The foreign id of a row, which comes before the author in JSON."""

_WORDLESS = _LOGIN_END + b'""' + _MESSAGE_END
"""The message of a repost without a text of its own."""

_FIRST_OF_JSON = ord(" ")
"""The lowest byte of JSON. A row that ends with a lower one has no conversation: the status is the first of its own."""

MAX_ROWS = 256
"""Most rows of one pipeline. Redis answers them in about half a millisecond, and others in between the next ones."""


Values = Sequence[bytes | None]
"""The fields of a status's hash as `_READ` reads them, all None if there is no such status.

The field ``row`` is JSON in which one byte stands for each text of `_TEXTS`.
"""


class StatusRow(NamedTuple):
    """A status as its hash has it. ``text`` is its field ``row``."""

    id: bytes
    text: bytes
    author: bytes
    likes: bytes
    comments: bytes
    reposts: bytes
    origin: bytes
    """Id of the status that it reposts or quotes, empty for none."""
    group: bytes
    """Id of its group, empty for none."""

    @property
    def is_plain_repost(self) -> bool:
        """Whether the status reposts another one and has no text of its own."""
        return bool(self.origin) and _WORDLESS in self.text

    @property
    def posted(self) -> bytes:
        """The time of posting in ISO 8601."""
        return self.text.partition(_MESSAGE_END)[2][: len("2000-01-01T00:00:00.000Z")]

    @property
    def conversation(self) -> bytes:
        """Id of the first status of the conversation in which this status stands."""
        return self.id if self.text[-1] < _FIRST_OF_JSON else self.text.rpartition(_LINKED)[2]

    def short_json(self, original: bytes | None = None) -> bytes:
        """Return the status in the short form, of which :func:`expand` makes JSON.

        ``original`` is the status that it reposts or quotes, in the same form, or ``null``. None leaves it out.
        """
        names_itself = self.id if self.text[-1] < _FIRST_OF_JSON else b""
        shown = b"" if original is None else b',"original":' + original
        return _SHORT % (
            self.id, self.author, self.text, names_itself, shown, self.likes, self.comments, self.reposts
        )  # fmt: skip


def expand(json: bytes) -> bytes:
    """Return ``json`` with each row of a status in it expanded to plain JSON: each byte of `_TEXTS` becomes its text.

    It costs little more for a whole page than for one status. JSON without rows stays as it is.
    """
    if _LOGIN_END not in json:  # each row has it
        return json
    for short, text in _TEXTS:
        json = json.replace(short, text)
    return _FOREIGN.sub(rb'","foreign_id":"\2","uid":"\1","login":"', json) if _NAMED in json else json


async def read_rows(redis: RedisClient, ids: Sequence[bytes]) -> list[StatusRow | None]:
    """Return the rows of statuses in the order of ``ids``, None for one that does not exist."""
    found: list[Values] = []
    for at in range(0, len(ids), MAX_ROWS):
        found += await redis.execute(*_READ.commands(ids[at : at + MAX_ROWS]))
    return [*map(parse_row, ids, found)]


def row_command(status_id: bytes) -> Command:
    """Return the command whose reply :func:`parse_row` takes."""
    return _READ.command(status_id)


def parse_row(status_id: bytes, values: Values) -> StatusRow | None:
    """Return the row of a status from the reply to :func:`row_command`, None for a status that does not exist."""
    text, author, likes, comments, reposts = values
    if text is None or author is None or likes is None or comments is None or reposts is None:
        return None
    links = _LINKS.search(text) if _LINKED in text else None
    origin, group = links.groups(b"") if links else (b"", b"")
    return StatusRow(status_id, text, author, likes, comments, reposts, origin, group)


NO_TEXTS: Mapping[bytes, bytes] = {}

Originals = Mapping[bytes, StatusRow | None]
"""The rows of reposted and quoted statuses by id, None for one that does not exist."""


async def read_originals(redis: RedisClient, rows: Iterable[StatusRow | None]) -> Originals:
    """Return the statuses that others repost or quote."""
    origins = [*{row.origin for row in rows if row is not None and row.origin}]
    return dict(zip(origins, await read_rows(redis, origins), strict=True))


async def learn(
    sight: Sight, rows: Iterable[StatusRow | None], originals: Originals, others: Mapping[bytes, bytes] = NO_TEXTS,
    users: Iterable[bytes] = (),
) -> None:  # fmt: skip
    """Read the facts that decide whether the viewer may see some texts, and let ``sight`` know them.

    The texts are the statuses ``rows``, the ``originals`` that these repost or quote, and ``others``: the authors of
    further texts, such as comments, by the Redis key of the text. ``users`` are ids of further users.
    """
    found = [row for row in (*rows, *originals.values()) if row is not None]
    authors = {*users, *others.values(), *(row.author for row in found)}
    texts = others.keys() | {_STATUS + row.id for row in found} if found else others
    await sight.learn(authors, [(row.author, row.group) for row in found if row.group], texts)


def shown_json(sight: Sight, row: StatusRow | None, originals: Originals, least: Visibility) -> bytes | None:
    """Return a status as :func:`expand` takes it if its visibility is at least ``least``, else None.

    A repost or quote shows its original, null in the place of a hidden or deleted one. A plain repost shows nothing
    but its original, so it is hidden with it. Both texts must be known to ``sight``.
    """
    if row is None or _STATUS + row.id in sight.gone or sight.of(row.author, row.group) < least:
        return None
    if not row.origin:
        return row.short_json()
    original = originals[row.origin]
    if original is None or _STATUS + original.id in sight.gone:
        return row.short_json(b"null")
    if sight.of(original.author, original.group) >= least:
        return row.short_json(original.short_json())
    return None if row.is_plain_repost else row.short_json(b"null")


async def show(sight: Sight, ids: Sequence[bytes], least: Visibility) -> list[bytes | None]:
    """Return the statuses with these ids as :func:`expand` takes them.

    None stands for an unknown status, and for one that the viewer sees less than ``least`` says. Most statuses refer to
    nothing. For these no `StatusRow` is made.
    """
    found, removed = list[Values](), list[Values]()
    for at in range(0, len(ids), MAX_ROWS):
        before, *values = await sight.redis.execute(REMOVED_READ, *_READ.commands(ids[at : at + MAX_ROWS]))
        removed.append(before)
        found += values
    linked = {at: parse_row(ids[at], each) for at, each in enumerate(found) if each[0] and _LINKED in each[0]}
    originals = await read_originals(sight.redis, linked.values()) if linked else {}
    rows = [row for row in (*linked.values(), *originals.values()) if row is not None]
    authors = {each[1] for each in found if each[1]}.union([row.author for row in rows])
    there = [each for each, values in zip(ids, found, strict=True) if values[0]]
    newest = _STATUS + max(there, key=int, default=b"")  # an original is older than what refers to it
    texts = [_STATUS + each for each in (*there, *originals)]
    read = StatusesRead(removed[0], newest) if texts else None
    await sight.learn(authors, [(row.author, row.group) for row in rows if row.group], texts, read)
    seen, gone = sight.authors_seen(least), sight.gone
    return [
        shown_json(sight, linked[at], originals, least)
        if at in linked
        else _SHORT % (
            ids[at], author, text, ids[at] if text[-1] < _FIRST_OF_JSON else b"", b"", likes, comments, reposts
        )
        if text and author in seen and (not gone or _STATUS + ids[at] not in gone)
        else None
        for at, (text, author, likes, comments, reposts) in enumerate(found)
    ]  # fmt: skip


async def judge(sight: Sight, ids: Sequence[bytes], least: Visibility) -> list[bytes | None]:
    """Return the ids of the statuses that :func:`show` shows, and None for the others.

    Only texts of reposts and quotes are read. Others may be large, and a page with a high number skips thousands.
    """
    found = await sight.redis.execute(*_FACTS_READ.commands(ids))
    referring = [each for each, (_, _, origin) in zip(ids, found, strict=True) if origin]
    shown = dict(zip(referring, await show(sight, referring, least) if referring else (), strict=True))
    known = [(author, group or b"") for author, group, _ in found if author]
    await sight.learn([author for author, _ in known], [pair for pair in known if pair[1]])
    return [
        each if (shown[each] if origin else author and sight.of(author, group or b"") >= least) else None
        for each, (author, group, origin) in zip(ids, found, strict=True)
    ]


class Found(NamedTuple):
    """A status whose comments, likes or reposts are read, with the status that it reposts or quotes."""

    row: StatusRow | None
    originals: Originals

    async def require(
        self, sight: Sight, others: Mapping[bytes, bytes] = NO_TEXTS, users: Iterable[bytes] = ()
    ) -> StatusRow:
        """Read the facts about this status, ``others`` and ``users`` (see :func:`learn`). Return the status's row.

        Raises NotFound if the viewer may not see the status even on request.
        """
        await learn(sight, [self.row], self.originals, others, users)
        if self.row is None or shown_json(sight, self.row, self.originals, Visibility.ON_REQUEST) is None:
            raise not_found("status")
        return self.row


async def find(redis: RedisClient, status_id: bytes) -> Found:
    """Return a status and the status that it reposts or quotes, without a check of what the viewer may see."""
    (row,) = await read_rows(redis, [status_id])
    return Found(row, await read_originals(redis, [row]))


async def require(sight: Sight, status_id: str) -> StatusRow:
    """Return the row of a status. Raises NotFound if the viewer may not see it even on request."""
    found = await find(sight.redis, status_id.encode())
    return await found.require(sight)
