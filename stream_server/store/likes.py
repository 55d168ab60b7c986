"""Likes: who likes what, counted on the status, told to its author."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.request import Request
from stream_server.store.scripts import Answer, Scripts


class Likes:
    """The likes of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def like(self, uid: str, status: str, request: Request) -> "Liked":
        """Like a status; already so changes nothing, and nobody is told.

        A repost without words is liked itself, not its original. Raises NotFound for what is not there or not to be
        seen, Forbidden ``not_yours`` in a group of which one is no member.
        """
        return _liked(await self._scripts.write("like", request, uid, status), liked=True)

    async def unlike(self, uid: str, status: str, request: Request) -> "Liked":
        """Like it no longer; one's own like can be taken back also when the status is not to be seen any more.

        Raises NotFound for what is not there, and for what is not liked and not to be seen.
        """
        return _liked(await self._scripts.write("unlike", request, uid, status), liked=False)

    async def has(self, viewer: str, status: str, uid: str) -> bool:
        """Whether a user likes a status; raises NotFound where the viewer may not see the one or the other."""
        return bool(await self._scripts.read("has", keys.META, viewer, status, uid, "likes"))

    async def page(self, viewer: str, status: str, piece: Piece) -> Page:
        """Who likes a status, as JSON with ``since``, newest first; raises NotFound, InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("likes", status), piece, viewer, "status", status)


class Liked(NamedTuple):
    """How it stands after a write: whether the user likes it, and how many do."""

    liked: bool
    likes: int


def _liked(answer: Answer, *, liked: bool) -> Liked:
    """The count is the last word of the answer, so that a repetition tells the same."""
    return Liked(liked, int(answer.value.rpartition(b" ")[2]))
