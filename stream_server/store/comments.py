"""Comments: short words under a status, in order, seen by whoever sees the status and the one who wrote them."""

import msgspec

from filters.entities import extract
from stream_server.errors import NotFound
from stream_server.events import Position
from stream_server.store import keys
from stream_server.store.draft import mention_arguments
from stream_server.store.link import Link
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts, position_of


class _Wire(msgspec.Struct):
    comment: msgspec.Raw


class _Body(msgspec.Struct):
    """As much of a ``comment`` entry as its answer is."""

    wire: _Wire


class Comments:
    """The comments of one store."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def create(self, uid: str, status: str, message: str, request: Request) -> bytes:
        """A new comment as JSON, the same bytes as on the log.

        Raises NotFound for a status that is not there or not to be seen, Forbidden ``not_yours`` in a group of which
        one is no member.
        """
        arguments = (message, msgspec.json.encode(message), *mention_arguments(extract(message)))
        answer = await self._scripts.write("comment", request, uid, status, *arguments)
        if answer.again:
            return await self._answered(uid, position_of(answer))
        json: bytes = answer.extra[0]
        return json

    async def delete(self, uid: str, comment: str, request: Request) -> None:
        """Take back a comment: one's own, or one under a status of one's own that one sees.

        Raises NotFound for what is not there or not to be seen, else Forbidden ``not_yours``.
        """
        await self._scripts.write("uncomment", request, uid, comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """A comment as JSON; raises NotFound where there is none, or none for this viewer."""
        found: bytes | None = await self._scripts.read("comment_card", keys.META, viewer, comment)
        if found is None:
            raise NotFound("there is no such comment")
        return found

    async def page(self, viewer: str, status: str, piece: Piece) -> Page:
        """The comments under a status as JSON, oldest first, without those of people whom the viewer mutes.

        Raises NotFound for a status that is not there or not to be seen, InvalidCursor.
        """
        key = keys.named("comments", status)
        return await walk(self._scripts, "comments", key, piece, viewer, status, oldest_first=True)

    async def _answered(self, uid: str, position: Position) -> bytes:
        """The answer that was given before: it stands on the log; where that was trimmed, the comment as it is."""
        (entries,) = await self._link.ask(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
        if entries:
            return bytes(msgspec.json.decode(entries[0][1][7], type=_Body).wire.comment)
        return await self.get(uid, str(position.status_number))
