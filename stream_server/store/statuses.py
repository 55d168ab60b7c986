"""Statuses: post, read, delete."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from filters.entities import Entities, extract
from stream_server.errors import NotFound
from stream_server.events import Position
from stream_server.store import keys, status_json
from stream_server.store.draft import Draft, entities_json
from stream_server.store.link import Command, Link
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts, position_of
from stream_server.store.status_json import FIELDS, Kept, kept

WIRE = b'{"wire":{"status":'
"""How the JSON of a post's entry begins; the status follows, then two braces."""


class _Known(NamedTuple):
    """What was looked up for a draft: mentioned users, who is replied to, and what is really reposted."""

    ids: dict[str, str]
    in_reply_to_uid: bytes | None
    origin: str | None
    original: Kept | None


class Statuses:
    """The statuses of one store."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def create(self, uid: str, draft: Draft, request: Request) -> bytes:
        """A new status as JSON, the same bytes as on the log.

        Raises NotFound for an author, a replied-to or a reposted status that does not exist. A repost of a
        repost is one of its original; a status with words of its own is an original, also when it quotes.
        """
        found = extract(draft.message)
        known = await self._look_up(draft, found)
        fields = _fields(draft, found, known)
        original = b"" if known.original is None else status_json.head(known.original)
        answer = await self._scripts.write(
            "post", request, uid, draft.in_reply_to or "", known.origin or "",
            status_json.words(fields), status_json.rest(fields), original, *_flat(fields),
        )  # fmt: skip
        if answer.again:
            return await self._answered(position_of(answer))
        status: bytes = answer.extra[0]
        return status

    async def get(self, status_id: str) -> bytes:
        """A status as JSON; raises NotFound."""
        found = await self.many([status_id])
        if not found:
            raise NotFound("there is no such status")
        return found[0]

    async def many(self, ids: Sequence[str]) -> list[bytes]:
        """Those of these statuses that exist, as JSON, in this order; originals are fetched together too."""
        statuses = [status for status in await self._read(ids) if status is not None]
        origins = list({status["origin"].decode() for status in statuses if "origin" in status})
        originals = dict(zip(origins, await self._read(origins), strict=True))
        return [status_json.whole(status, _embedded(status, originals)) for status in statuses]

    async def delete(self, uid: str, status_id: str, request: Request) -> None:
        """Take back a status of one's own; raises NotFound, or Forbidden ``not_yours``.

        It is read before the script, which cannot encode JSON; what is read of it never changes.
        """
        (status,) = await self._read([status_id])
        facts = b"" if status is None else status_json.as_posted(status)
        await self._scripts.write("delete", request, uid, status_id, facts)

    async def _read(self, ids: Sequence[str]) -> list[Kept | None]:
        if not ids:
            return []
        return [kept(row) for row in await self._link.ask(*(_fields_of(status_id) for status_id in ids))]

    async def _look_up(self, draft: Draft, found: Entities) -> _Known:
        """All that the draft points to, in one round trip, or none; the script decides what is missing."""
        logins = list(dict.fromkeys(mention.login.lower() for mention in found.mentions))
        asked: dict[str, Command] = {}
        if logins:
            asked["logins"] = ("HMGET", keys.LOGINS, *logins)
        if draft.in_reply_to is not None:
            asked["in_reply_to"] = ("HGET", keys.status(draft.in_reply_to), "uid")
        if draft.origin is not None:
            asked["origin"] = _fields_of(draft.origin)
        told: dict[str, Any] = dict(zip(asked, await self._link.ask(*asked.values()), strict=True)) if asked else {}
        uids = told.get("logins", [])
        ids = {login: uid.decode() for login, uid in zip(logins, uids, strict=True) if uid is not None}
        original = await self._original(kept(told["origin"])) if "origin" in told else None
        origin = draft.origin if original is None else original["id"].decode()
        return _Known(ids, told.get("in_reply_to"), origin, original)

    async def _original(self, status: Kept | None) -> Kept | None:
        """What a status shows: itself, or for a repost without words its original, if that is still there."""
        if status is None or "origin" not in status or status["message"]:
            return status
        return (await self._read([status["origin"].decode()]))[0]

    async def _answered(self, position: Position) -> bytes:
        """The answer that was given before: it stands on the log; where that was trimmed, the status as it is."""
        (entries,) = await self._link.ask(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
        if entries:
            body: bytes = entries[0][1][7]
            return body[len(WIRE) : -2]
        return await self.get(str(position.status_number))


def _fields_of(status_id: str) -> Command:
    return ("HMGET", keys.status(status_id), *FIELDS)


def _fields(draft: Draft, found: Entities, known: _Known) -> dict[str, bytes]:
    fields = draft.fields(entities_json(found, known.ids))
    if known.in_reply_to_uid is not None:
        fields["in_reply_to_uid"] = known.in_reply_to_uid
    if known.origin is not None:
        fields["origin"] = known.origin.encode()
    if known.original is not None and not draft.message:
        # A repost speaks the language of what it repeats: `language` goes by it, and the wire must say the same.
        fields["lang"] = known.original["lang"]
    return fields


def _flat(fields: dict[str, bytes]) -> list[str | bytes]:
    return [item for pair in fields.items() for item in pair]


def _embedded(status: Kept, originals: dict[str, Kept | None]) -> bytes | None:
    original = originals.get(status["origin"].decode()) if "origin" in status else None
    return None if original is None else status_json.head(original) + status_json.counters(original)
