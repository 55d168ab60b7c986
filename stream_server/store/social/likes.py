"""Likes: who likes what, counted on the status, told to its author."""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply


class Likes:
    """The likes of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def like(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> "LikeResult":
        """Like a status; already so changes nothing, and nobody is told.

        A repost without words is liked itself, not its original. Raises NotFound for what is not there or not to be
        seen, Forbidden ``not_yours`` in a group of which one is no member.
        """
        return _make_like_result(await self._scripts.write("like", idempotency_key, uid, status), liked=True)

    async def unlike(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> "LikeResult":
        """Like it no longer; one's own like can be taken back also when the status is not to be seen any more.

        Raises NotFound for what is not there, and for what is not liked and not to be seen.
        """
        return _make_like_result(await self._scripts.write("unlike", idempotency_key, uid, status), liked=False)

    async def has_liked(self, viewer: str, status: str, uid: str) -> bool:
        """Whether a user likes a status; raises NotFound where the viewer may not see the one or the other."""
        return bool(await self._scripts.call("status_has_reaction", keys.META, viewer, status, uid, "likes"))

    async def list_likers(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Who likes a status, as JSON with ``since``, newest first; raises NotFound, InvalidCursor."""
        return await read_page(
            self._scripts, "users_page", keys.key_for("likes", status), page_request, viewer, "status", status
        )


class LikeResult(NamedTuple):
    """How it stands after a write: whether the user likes it, and how many do."""

    is_liked: bool
    like_count: int


def _make_like_result(reply: WriteReply, *, liked: bool) -> LikeResult:
    """The count is the last word of the answer, so that a repetition tells the same."""
    return LikeResult(liked, int(reply.value.rpartition(b" ")[2]))
