"""Follows, blocks and mutes, the relationship of two users, and the users that they have in common.

One script changes both directions of a follow and the counters of both users. Protected users get requests. A block
hides two users from each other and ends their follows. A mute hides one user's statuses from the other, and the muted
user does not notice it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

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
from stream_server.store.redis.refusals import BAD_REQUEST_MESSAGES, parse_refusal, write_error_to_api_error
from stream_server.store.redis.scripts import ScriptCall, WriteReply
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import TimelineChange


class FollowOutcome(NamedTuple):
    """The result of following or unfollowing one user in a batch.

    Attributes:
        id: The user's id.
        outcome: ``followed``, ``requested`` or ``unfollowed`` after success. After a refusal, ``not_found``,
            ``oneself``, ``blocked`` (the follower blocks this user), ``too_many`` (the follower follows as many people
            as the server allows), or ``unavailable`` (Redis refused this change for another reason, such as full
            memory, but made other changes of the batch).
    """

    id: str
    outcome: str


class Follows(Noun):
    """Follows and unfollows users, and lists followers and followed users."""

    async def follow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """Follow a user, or request to follow a protected user. Returns ``following`` and ``requested`` as JSON.

        With ``list_id``, also adds the user to this list of the follower. Raises NotFound for an unknown user and for a
        user who blocks the follower. Raises BadRequest if users follow themselves or a user whom they block. Raises
        Forbidden ``not_yours`` if the list belongs to another user, and TooLarge if the user follows too many people.
        """
        reply = await self._scripts.write(
            "follow", idempotency_key, source_id=source, target_id=target, list_id=list_id
        )
        await self._syndication.apply_changes(*_timeline_changes("merge", source, target, list_id, reply))
        if reply.value.endswith(b" requested"):
            return b'{"following":false,"requested":true}'
        return b'{"following":true,"requested":false}'

    async def unfollow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """End a follow, or withdraw a follow request. Returns ``following`` and ``requested`` as JSON, both false.

        With ``list_id``, also removes the user from this list of the follower. Raises NotFound for an unknown user and
        for a user who blocks the follower, and Forbidden ``not_yours`` if the list belongs to another user.
        """
        reply = await self._scripts.write(
            "unfollow", idempotency_key, source_id=source, target_id=target, list_id=list_id
        )
        await self._syndication.apply_changes(*_timeline_changes("remove", source, target, list_id, reply))
        return b'{"following":false,"requested":false}'

    async def change_many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], idempotency_key: IdempotencyKey
    ) -> list[FollowOutcome]:
        """Follow the users in ``follow``, then unfollow those in ``unfollow``, for the user ``source``.

        Each change is a script of its own with its own outcome, because one script for the whole batch would block all
        of Redis while it runs. All changes share one round trip. If the client sent an
        idempotency key, another round trip stores the key first, so the client cannot use it for another batch. A
        batch that changes nothing gives its key back.

        If Redis refused all changes, raises the first error that does not concern a user in ``follow`` or
        ``unfollow``: NotFound or Forbidden for ``source``, Unavailable, or Conflict ``duplicate``. Raises
        OutcomeUnknown if the reply was lost.
        """
        if idempotency_key.is_clients:
            await self._scripts.write("batch_claim_key", idempotency_key)
        changes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [
            (ScriptCall(verb, {"source_id": source, "target_id": uid, "list_id": ""}), idempotency_key.for_part(i))
            for i, (verb, uid) in enumerate(changes)
        ]
        replies = await self._scripts.write_each(writes)
        if idempotency_key.is_clients and not any(isinstance(reply, WriteReply) and reply.is_kept for reply in replies):
            await self._redis.execute_write(("DEL", keys.key_for("request", idempotency_key.value)))
        if not any(isinstance(reply, WriteReply) for reply in replies):
            for reply in replies:
                if isinstance(reply, ResponseError) and (error := write_error_to_api_error(reply)).param != "id":
                    raise error
        timeline_changes: list[TimelineChange] = []
        for (verb, uid), reply in zip(changes, replies, strict=True):
            if isinstance(reply, WriteReply):
                timeline_changes += _timeline_changes("merge" if verb == "follow" else "remove", source, uid, "", reply)
        await self._syndication.apply_changes(*timeline_changes)
        return [_make_outcome(verb, uid, reply) for (verb, uid), reply in zip(changes, replies, strict=True)]

    async def list_following(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user follows, newest first. Each has ``since``, the time of the follow."""
        sight = self._sight(viewer)
        return await self._page("following", uid, page_request, show_users(sight), gate=sight.gate(uid))

    async def list_followers(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the followers of a user as JSON, newest follow first. Each has ``since``, the time of the follow."""
        sight = self._sight(viewer)
        return await self._page("followers", uid, page_request, show_users(sight), gate=sight.gate(uid))


class FollowRequests(Noun):
    """Approves, refuses and lists follow requests. An open request stays open if its receiver stops being protected."""

    async def list_received(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users who request to follow ``uid``, newest first. ``since`` is the request's time."""
        return await self._page("asks", uid, page_request, show_users(self._sight(uid)))

    async def list_sent(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom ``uid`` requests to follow, newest first. ``since`` is the request's time."""
        return await self._page("asked", uid, page_request, show_users(self._sight(uid)))

    async def approve(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Approve the follow request of the user ``requester``, who then follows the user ``uid``.

        The requester's home timeline gets the statuses of ``uid``. Raises NotFound if the request does not exist, for
        example because it was withdrawn or answered before.
        """
        reply = await self._scripts.write(
            "follow_request_answer", idempotency_key, source_id=uid, target_id=requester, answer="approve"
        )
        if not reply.is_repeat:
            first = reply.first_time
            change = TimelineChange("home", requester, uid, "merge", first["fence"], first["newest"])
            await self._syndication.apply_changes(change)

    async def refuse(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Refuse a follow request. The requester may request again. Raises NotFound if the request does not exist."""
        await self._scripts.write(
            "follow_request_answer", idempotency_key, source_id=uid, target_id=requester, answer="refuse"
        )


def _timeline_changes(mode: str, source: str, target: str, list_id: str, reply: WriteReply) -> list[TimelineChange]:
    if reply.is_repeat:  # the first write has enqueued the jobs of the timelines
        return []
    first = reply.first_time
    return [
        TimelineChange("home", source, target, mode, first["fence"], first["newest"]),
        TimelineChange("list", list_id, target, mode, first["list_fence"], first["newest"]),
    ]


def _make_outcome(verb: str, uid: str, reply: WriteReply | ResponseError) -> FollowOutcome:
    if isinstance(reply, WriteReply):
        return FollowOutcome(uid, "requested" if reply.value.endswith(b" requested") else f"{verb}ed")
    if write_error_to_api_error(reply).param != "id":
        return FollowOutcome(uid, "unavailable")
    by_refusal = {"NOT_FOUND": "not_found", "ONESELF": "oneself", "BLOCKED": "blocked", "TOO_MANY": "too_many"}
    return FollowOutcome(uid, by_refusal[parse_refusal(reply)[0]])


class Blocks(Noun):
    """Blocks and unblocks users, and lists the users whom a user blocks."""

    async def block(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Let ``uid`` block a user. The statuses of each disappear from the other's home timeline.

        Follows, follow requests and invitations in both directions end, and each leaves the groups of the other. Raises
        BadRequest if users block themselves. Raises NotFound for an unknown or suspended user, and for one who blocks
        ``uid`` already. So two users block each other only if an ingest says so.
        """
        reply = await self._scripts.write("block", idempotency_key, source_id=uid, target_id=blocked_uid)
        if reply.is_repeat:
            return
        first = reply.first_time
        await self._syndication.apply_changes(
            TimelineChange("home", uid, blocked_uid, "remove", first["fence"], first["newest"]),
            TimelineChange("home", blocked_uid, uid, "remove", first["fence_back"], first["newest_back"]),
        )

    async def unblock(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unblock a user, also one who is suspended or blocks ``uid``. Without a block, raises as :meth:`block`.

        Follows that ended with the block are not restored.
        """
        await self._scripts.write(
            "relation_change", idempotency_key, source_id=uid, target_id=blocked_uid, kind="unblock"
        )

    async def list_blocked(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user blocks, newest block first. Each has ``since``, the block's time."""
        return await self._page("blocks", uid, page_request, show_users(self._sight(uid)))


class Mutes(Noun):
    """Mutes and unmutes users, and lists the users whom a user mutes."""

    async def mute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute a user. Raises as :meth:`Blocks.block`."""
        await self._scripts.write("relation_change", idempotency_key, source_id=uid, target_id=muted_uid, kind="mute")

    async def unmute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unmute a user, also one who is suspended or blocks ``uid``. Without a mute, raises as :meth:`mute`."""
        await self._scripts.write("relation_change", idempotency_key, source_id=uid, target_id=muted_uid, kind="unmute")

    async def list_muted(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user mutes, newest mute first. Each has ``since``, the mute's time."""
        return await self._page("mutes", uid, page_request, show_users(self._sight(uid)))


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
            # Redis intersects a set of at most 4,096 members with another in a few milliseconds.
            is_large = min(await self._redis.execute(("ZCARD", key), ("ZCARD", second_key))) > 4096
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
        # To examine 16,384 members takes 64 questions to Redis, which one 2 ms away answers in time.
        return await fill_page(page_request, name, read, show, admit=admit, max_examined=16_384)
