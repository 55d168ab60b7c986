"""Statuses: post, read, delete."""

from collections.abc import Sequence

import msgspec

from filters.entities import extract
from filters.tokens import fold
from stream_server.detection import Detector
from stream_server.errors import NotFound
from stream_server.events import Position
from stream_server.sight import Sight
from stream_server.store import keys
from stream_server.store.draft import Draft, mention_arguments
from stream_server.store.link import Link
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts, position_of
from stream_server.store.syndication import Syndication


class _Wire(msgspec.Struct):
    status: msgspec.Raw


class _Body(msgspec.Struct):
    """A post's entry, as far as its answer goes."""

    wire: _Wire


class Statuses:
    """The statuses of one store."""

    def __init__(self, link: Link, scripts: Scripts, syndication: Syndication, language: Detector) -> None:
        self._link = link
        self._scripts = scripts
        self._syndication = syndication
        self._language = language

    async def create(self, uid: str, draft: Draft, request: Request) -> bytes:
        """A new status as JSON, the same bytes as on the log; it is in the first timelines by then.

        Raises NotFound for an author, a group, a replied-to or a reposted status that does not exist or is not to be
        seen, Forbidden ``not_yours`` in a group where the author may not post, BadRequest for what is protected or
        belongs elsewhere. A repost of a repost is one of its original; a status with words of its own is an
        original, also when it quotes.
        """
        answer = await self._scripts.write("post", request, uid, *_arguments(draft, self._language))
        if answer.again:
            return await self._answered(uid, position_of(answer))
        status: bytes
        status, fence, people, lists = answer.extra
        if fence:
            await self._syndication.spread(uid, str(position_of(answer).status_number), fence, people, lists)
        return status

    async def get(self, viewer: str, status_id: str) -> bytes:
        """A status as JSON; raises NotFound where there is none, or none for this viewer."""
        found = await self.many(viewer, [status_id])
        if not found:
            raise NotFound("there is no such status")
        return found[0]

    async def many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Those of these statuses that the viewer may see, as JSON, in this order, in one round trip."""
        if not ids:
            return []
        flat, _, _ = await self._scripts.read("show", keys.META, viewer, int(Sight.QUIET), "", len(ids), 0, *ids)
        shown: list[bytes] = flat[1::2]
        return shown

    async def delete(self, uid: str, status_id: str, request: Request) -> None:
        """Take back a status of one's own; raises NotFound, or Forbidden ``not_yours``."""
        answer = await self._scripts.write("delete", request, uid, status_id)
        if not answer.again:
            await self._syndication.clean(uid, status_id, *answer.extra)

    async def _answered(self, uid: str, position: Position) -> bytes:
        """The answer that was given before: it stands on the log; where that was trimmed, the status as it is."""
        (entries,) = await self._link.ask(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
        if entries:
            return bytes(msgspec.json.decode(entries[0][1][7], type=_Body).wire.status)
        return await self.get(uid, str(position.status_number))


def _arguments(draft: Draft, language: Detector) -> list[str | bytes | int]:
    """What ``lua/post.lua`` takes, in its order."""
    found = extract(draft.message)
    tags = dict.fromkeys(fold(tag.text) for tag in found.hashtags)
    fields = draft.fields()
    return [
        draft.in_reply_to or "",
        draft.origin or "",
        draft.group or "",
        draft.message_json(),
        draft.lang or language(draft.message, found),
        draft.where(),
        draft.more(),
        "".join(f"{tag} " for tag in tags),
        *mention_arguments(found),
        *(item for pair in fields.items() for item in pair),
    ]
