"""Likes and favorites.

A like is public: the status counts it and its author gets a notification. A favorite is a private bookmark: it is not
counted and makes no log entry. :mod:`stream_server.store.timelines.timelines` lists both.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import statuses, users
from stream_server.store.redis.scripts import WriteReply
from stream_server.store.social.noun import Noun


class LikeResult(NamedTuple):
    """The state after a like or unlike: whether the user likes the status, and how many users like it."""

    is_liked: bool
    like_count: int


class Likes(Noun):
    """Likes and unlikes statuses, and lists the users who like a status."""

    async def like(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> LikeResult:
        """Like a status. A like of a plain repost counts for the repost, not for the reposted status.

        Raises NotFound if the status is hidden from the user. Raises Forbidden ``not_yours`` if the status is in a
        group of users and the user is not a member.
        """
        reply = await self._scripts.write("like", idempotency_key, uid=uid, id=status)
        return _make_like_result(reply, is_liked=True)

    async def unlike(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> LikeResult:
        """Remove a like, also from a hidden status. Raises NotFound for a hidden status that the user does not like."""
        reply = await self._scripts.write("unlike", idempotency_key, uid=uid, id=status)
        return _make_like_result(reply, is_liked=False)

    async def has_liked(self, uid: str, status: str) -> bool:
        """Return whether a user likes a status. Raises NotFound if the user may not see the status."""
        await statuses.require(self._sight(uid), status)
        (when,) = await self._redis.execute(("ZSCORE", keys.key_for("likes", status), uid))
        return when is not None

    async def list_likers(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users who like a status, newest like first. Each has ``since``, the like's time."""
        sight, found = self._sight(viewer), list[statuses.Found]()

        async def admit() -> None:
            found.append(await statuses.find(self._redis, status.encode()))
            await found[0].require(sight)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            likers = [liker for liker, _ in members]
            rows = await users.read_rows(sight, likers, all_users=True)
            group = (await found[0].require(sight, users=likers)).group
            return [
                row.public_json(when) if row is not None and sight.of(liker, group) else None
                for row, (liker, when) in zip(rows, members, strict=True)
            ]

        return await self._page("likes", status, page_request, show, admit=admit)


class Favorites(Noun):
    """Adds, removes and checks a user's favorites, which are private bookmarks of statuses."""

    async def add(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Add a status to the user's private favorites. Raises NotFound if the status is hidden from the user."""
        await self._scripts.write("favorite", idempotency_key, uid=uid, id=status)

    async def remove(self, uid: str, status: str, idempotency_key: IdempotencyKey) -> None:
        """Remove a status from the user's favorites, even if the status has been deleted or hidden since.

        Raises NotFound if the status is not a favorite and the user may not see it.
        """
        await self._scripts.write("unfavorite", idempotency_key, uid=uid, id=status)

    async def is_favorite(self, uid: str, status: str) -> bool:
        """Return whether a status is a favorite of the user. Raises NotFound if the user may not see the status."""
        await statuses.require(self._sight(uid), status)
        (when,) = await self._redis.execute(("ZSCORE", keys.key_for("favorites", uid), status))
        return when is not None


def _make_like_result(reply: WriteReply, *, is_liked: bool) -> LikeResult:
    # The count stands in the kept reply, so a repeated write returns the same one.
    return LikeResult(is_liked, int(reply.value.rpartition(b" ")[2]))
