"""Likes and favorites.

A like is public: the status counts it and its author gets a notification. A favorite is a private bookmark: it is not
counted and makes no log entry. :mod:`stream_server.store.timelines.timelines` lists both.
"""

from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts, WriteReply


class LikeResult(NamedTuple):
    """The state after a write: whether the user likes the status, and how many users do."""

    is_liked: bool
    like_count: int


class Likes:
    """Changes and reads likes."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def like(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> LikeResult:
        """Like a status. A repeated like changes nothing and sends no notification.

        A like of a plain repost counts for the repost, not for its original. Raises NotFound if the status is unknown
        or hidden from this user, Forbidden ``not_yours`` if it stands in a group of which the user is not a member.
        """
        return _make_like_result(await self._scripts.write("like", idempotency_key, uid, status), is_liked=True)

    async def unlike(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> LikeResult:
        """Take a like back, even if the status has been hidden from this user since.

        Raises NotFound if the status is unknown, and if the user neither likes it nor may see it.
        """
        return _make_like_result(await self._scripts.write("unlike", idempotency_key, uid, status), is_liked=False)

    async def has_liked(self, viewer: str, status: str, uid: str) -> bool:
        """Return whether a user likes a status. Raises NotFound if the viewer may not see the status or the user."""
        return bool(await self._scripts.call("status_has_reaction", keys.META, viewer, status, uid, "likes"))

    async def list_likers(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return the users who like a status, as JSON with ``since``, newest like first.

        Raises NotFound and InvalidCursor.
        """
        key = keys.key_for("likes", status)
        return await read_page(self._scripts, "users_page", key, page_request, viewer, "status", status)


class Favorites:
    """Changes and reads favorites."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def add(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Add a status to the user's favorites; adding it again changes nothing.

        Raises NotFound if the status is unknown or hidden from this user.
        """
        await self._scripts.write("favorite", idempotency_key, uid, status)

    async def remove(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Remove a status from the user's favorites, even if it has been deleted or hidden since.

        Raises NotFound if the status is not a favorite and the user may not see it.
        """
        await self._scripts.write("unfavorite", idempotency_key, uid, status)

    async def is_favorite(self, uid: str, status: str) -> bool:
        """Return whether a status is a favorite of this user.

        Raises NotFound if the user may not see the status, even if it is a favorite.
        """
        return bool(await self._scripts.call("status_has_reaction", keys.META, uid, status, uid, "favorites"))


def _make_like_result(reply: WriteReply, *, is_liked: bool) -> LikeResult:
    """Return the result of a write. The count stands in the kept reply, so a repeated write returns the same one."""
    return LikeResult(is_liked, int(reply.value.rpartition(b" ")[2]))
