"""Blocks and mutes, the relationship of two users, and the users that they have in common.

A block hides two users from each other and ends their follows. A mute hides one user's statuses from the other, and the
muted user does not notice it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.errors import BadRequest
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import (
    ListPosition,
    Member,
    Members,
    Page,
    PageRequest,
    fill_page,
    pairs_of,
    read_members,
)
from stream_server.store.reads.sight import Sight, not_found
from stream_server.store.reads.users import show_users
from stream_server.store.redis.refusals import BAD_REQUEST_MESSAGES
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import TimelineChange


class Blocks(Noun):
    """Blocks and unblocks users, and lists the users whom a user blocks."""

    async def block(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Let ``uid`` block a user. The statuses of each disappear from the other's home timeline.

        Follows, follow requests and invitations in both directions end, and each leaves the groups of the other. Raises
        BadRequest if users block themselves. Raises NotFound for an unknown or suspended user, and for one who blocks
        ``uid`` already. So two users block each other only if an ingest says so.
        """
        reply = await self._scripts.write("block", idempotency_key, uid, blocked_uid)
        if reply.is_repeat:
            return
        fence, newest_ids, fence_back, newest_ids_back = reply.first_time_extra
        await self._syndication.apply_changes(
            TimelineChange("home", uid, blocked_uid, "remove", fence, newest_ids),
            TimelineChange("home", blocked_uid, uid, "remove", fence_back, newest_ids_back),
        )

    async def unblock(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unblock a user, also one who is suspended or blocks ``uid``. Without a block, raises as :meth:`block`.

        Follows that ended with the block are not restored.
        """
        await self._scripts.write("relation_change", idempotency_key, uid, blocked_uid, "unblock")

    async def list_blocked(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user blocks, newest block first. Each has ``since``, the block's time."""
        return await self._page("blocks", uid, page_request, show_users(self._sight(uid)))


class Mutes(Noun):
    """Mutes and unmutes users, and lists the users whom a user mutes."""

    async def mute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute a user. Raises as :meth:`Blocks.block`."""
        await self._scripts.write("relation_change", idempotency_key, uid, muted_uid, "mute")

    async def unmute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unmute a user, also one who is suspended or blocks ``uid``. Without a mute, raises as :meth:`mute`."""
        await self._scripts.write("relation_change", idempotency_key, uid, muted_uid, "unmute")

    async def list_muted(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user mutes, newest mute first. Each has ``since``, the mute's time."""
        return await self._page("mutes", uid, page_request, show_users(self._sight(uid)))


MAX_INTERSECTED = 4096
"""Most members of the smaller of two sets that Redis intersects as a whole, in a few milliseconds."""

MAX_COMMON_EXAMINED = 16_384
"""Most members of a large set that one page examines: 64 questions to Redis, which one 2 ms away answers in time."""


class Relationship(NamedTuple):
    """The relations of a first user to a second. The last four attributes are None for a viewer who is neither user.

    Attributes:
        following: Whether the first user follows the second.
        followed_by: Whether the second user follows the first.
        requested: Whether the first user requests to follow the second.
        requested_by: Whether the second user requests to follow the first.
        blocking: Whether the viewer, one of the two, blocks the other. It is never shown who blocks the viewer.
        muting: Whether the viewer, one of the two, mutes the other. It is never shown who mutes the viewer.
    """

    following: bool
    followed_by: bool
    requested: bool | None
    requested_by: bool | None
    blocking: bool | None
    muting: bool | None

    @property
    def is_mutual(self) -> bool:
        """Whether each of the two users follows the other."""
        return self.following and self.followed_by


class Relations(Noun):
    """Reads how two users relate, which users both follow, and which users follow both."""

    async def get_relationship(self, viewer: str, uid: str, other: str) -> Relationship:
        """Return how the user ``uid`` relates to the user ``other``.

        Raises NotFound if one of them is unknown or hidden from the viewer, and BadRequest if both are the same user.
        """
        await self._require_two(self._sight(viewer), uid, other)
        pairs = [("following", uid, other), ("following", other, uid)]
        if viewer in (uid, other):
            opposite = other if viewer == uid else uid
            pairs += [("asked", uid, other), ("asked", other, uid)]
            pairs += [("blocks", viewer, opposite), ("mutes", viewer, opposite)]
        scores = await self._redis.execute_at_once(*(("ZSCORE", keys.key_for(row, a), b) for row, a, b in pairs))
        return Relationship(*(score is not None for score in scores), *[None] * (6 - len(scores)))

    async def _require_two(self, sight: Sight, uid: str, other: str) -> None:
        """Raise NotFound if the viewer may not see one of two users, and BadRequest if both are the same."""
        sees_one, sees_other = await sight.sees(uid, other)
        if not sees_one:
            raise not_found("user id")
        if uid == other:
            raise BadRequest(BAD_REQUEST_MESSAGES["ONESELF"], param="other")
        if not sees_other:
            raise not_found("user other")

    async def list_common_following(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom both ``uid`` and ``other`` follow, newest follow by ``uid`` first.

        Each has ``since``, the time of that follow. If ``uid`` or ``other`` follows at most 4,096 users, the call takes
        a few milliseconds. Otherwise it examines up to 65,536 users whom ``uid`` follows. The page may then be short or
        even empty, and its cursor continues the search.
        Raises NotFound if one of the two users is unknown or hidden, and BadRequest if the two are the same.
        """
        return await self._list_common("following", viewer, uid, other, page_request)

    async def list_common_followers(self, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users who follow both ``uid`` and ``other``: first who followed ``uid`` last.

        ``since`` is the time at which a user followed ``uid``. Cost and errors are those of
        :meth:`list_common_following`.
        """
        return await self._list_common("followers", viewer, uid, other, page_request)

    async def _list_common(self, relation: str, viewer: str, uid: str, other: str, page_request: PageRequest) -> Page:
        key, second_key = keys.key_for(relation, uid), keys.key_for(relation, other)
        sight, both = self._sight(viewer), list[Member]()
        is_large = False

        async def admit() -> None:
            nonlocal is_large
            await self._require_two(sight, uid, other)
            is_large = min(await self._redis.execute(("ZCARD", key), ("ZCARD", second_key))) > MAX_INTERSECTED
            if not is_large:
                command = ("ZINTER", 2, key, second_key, "WEIGHTS", 1, 0, "WITHSCORES")
                both.extend(pairs_of((await self._redis.execute(command))[0]))

        async def read(after: ListPosition | None, most: int, down: bool) -> Members:  # noqa: FBT001 - `ReadMembers`
            if is_large:
                return (await read_members(self._redis, key, after, most, down=down))[0]
            ahead = both[::-1] if down else both
            if after is not None:
                ahead = after.behind(ahead, down=down)
            return Members(ahead[:most], has_more=len(ahead) > most)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            if not is_large:
                return await show_users(sight)(members)
            (scores,) = await self._redis.execute(("ZMSCORE", second_key, *(member for member, _ in members)))
            common = [pair for pair, score in zip(members, scores, strict=True) if score is not None]
            shown = dict(zip(common, await show_users(sight)(common), strict=True))
            return [shown.get(pair) for pair in members]

        name = f"common-{relation}:{uid}:{other}"
        return await fill_page(page_request, name, read, show, admit=admit, max_examined=MAX_COMMON_EXAMINED)
