"""The follow graph: follows, and the requests to follow protected users.

One script changes both directions of a follow and the counters of both users.
"""

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.reads.users import show_users
from stream_server.store.redis.refusals import parse_refusal, write_error_to_api_error
from stream_server.store.redis.scripts import WriteReply
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import TimelineChange

FOLLOWING_JSON = b'{"following":true,"requested":false}'
REQUESTED_JSON = b'{"following":false,"requested":true}'
NOT_FOLLOWING_JSON = b'{"following":false,"requested":false}'

TIMELINE_MODE_BY_VERB = {"follow": "merge", "unfollow": "remove"}
OUTCOME_BY_REFUSAL = {"NOT_FOUND": "not_found", "ONESELF": "oneself", "BLOCKED": "blocked", "TOO_MANY": "too_many"}


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
        reply = await self._scripts.write("follow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("merge", source, target, list_id, reply))
        return REQUESTED_JSON if reply.value.endswith(b" requested") else FOLLOWING_JSON

    async def unfollow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """End a follow, or withdraw a follow request. Returns ``following`` and ``requested`` as JSON, both false.

        With ``list_id``, also removes the user from this list of the follower. Raises NotFound for an unknown user and
        for a user who blocks the follower, and Forbidden ``not_yours`` if the list belongs to another user.
        """
        reply = await self._scripts.write("unfollow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("remove", source, target, list_id, reply))
        return NOT_FOLLOWING_JSON

    async def change_many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], idempotency_key: IdempotencyKey
    ) -> list[FollowOutcome]:
        """Follow the users in ``follow``, then unfollow those in ``unfollow``, for the user ``source``.

        Each change is atomic and has its own outcome, and all changes share one round trip. If the client sent an
        idempotency key, another round trip stores the key first, so the client cannot use it for another batch. A
        batch that changes nothing gives its key back.

        If Redis refused all changes, raises the first error that does not concern a user in ``follow`` or
        ``unfollow``: NotFound or Forbidden for ``source``, Unavailable, or Conflict ``duplicate``. Raises
        OutcomeUnknown if the reply was lost.
        """
        if idempotency_key.is_clients:
            await self._scripts.write("batch_claim_key", idempotency_key)
        changes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [(verb, idempotency_key.for_part(i), (source, uid, "")) for i, (verb, uid) in enumerate(changes)]
        replies = await self._scripts.write_each(writes)
        if idempotency_key.is_clients and not any(isinstance(reply, WriteReply) and reply.is_kept for reply in replies):
            await self._redis.execute_write(("DEL", keys.key_for("request", idempotency_key.value)))
        _raise_if_all_refused(replies)
        timeline_changes: list[TimelineChange] = []
        for (verb, uid), reply in zip(changes, replies, strict=True):
            if isinstance(reply, WriteReply):
                timeline_changes += _timeline_changes(TIMELINE_MODE_BY_VERB[verb], source, uid, "", reply)
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
        reply = await self._scripts.write("follow_request_answer", idempotency_key, uid, requester, "approve")
        if not reply.is_repeat:
            fence, newest_ids = reply.first_time_extra
            await self._syndication.apply_changes(TimelineChange("home", requester, uid, "merge", fence, newest_ids))

    async def refuse(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Refuse a follow request. The requester may request again. Raises NotFound if the request does not exist."""
        await self._scripts.write("follow_request_answer", idempotency_key, uid, requester, "refuse")


def _timeline_changes(mode: str, source: str, target: str, list_id: str, reply: WriteReply) -> list[TimelineChange]:
    if reply.is_repeat:  # the first write has enqueued the jobs of the timelines
        return []
    fence, list_fence, newest_ids = reply.first_time_extra
    return [
        TimelineChange("home", source, target, mode, fence, newest_ids),
        TimelineChange("list", list_id, target, mode, list_fence, newest_ids),
    ]


def _raise_if_all_refused(replies: Sequence[WriteReply | ResponseError]) -> None:
    """If Redis refused all changes of a batch, raise the first refusal (if any) that is not about a target user."""
    if any(isinstance(reply, WriteReply) for reply in replies):
        return
    for reply in replies:
        if isinstance(reply, ResponseError) and (error := write_error_to_api_error(reply)).param != "id":
            raise error


def _make_outcome(verb: str, uid: str, reply: WriteReply | ResponseError) -> FollowOutcome:
    if isinstance(reply, WriteReply):
        return FollowOutcome(uid, "requested" if reply.value.endswith(b" requested") else f"{verb}ed")
    if write_error_to_api_error(reply).param != "id":
        return FollowOutcome(uid, "unavailable")
    return FollowOutcome(uid, OUTCOME_BY_REFUSAL[parse_refusal(reply)[0]])
