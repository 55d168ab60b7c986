"""The follow graph: follows, and the requests to follow protected users.

One script changes both directions of a follow and the counters of both users.
"""

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.store import keys
from stream_server.store.idempotency import CLIENT_TTL_MS, IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.refusals import write_error_to_api_error
from stream_server.store.redis.scripts import Scripts, WriteReply
from stream_server.store.timelines.syndication import Syndication, TimelineChange

FOLLOWING_JSON = b'{"following":true,"requested":false}'
REQUESTED_JSON = b'{"following":false,"requested":true}'
NOT_FOLLOWING_JSON = b'{"following":false,"requested":false}'

TIMELINE_MODE_BY_VERB = {"follow": "merge", "unfollow": "remove"}
"""What each verb does to the follower's timeline: merge the author's statuses into it, or remove them."""

OUTCOME_BY_REFUSAL = {"NOT_FOUND": "not_found", "ONESELF": "oneself", "BLOCKED": "blocked"}
"""Outcome of one user in a batch, by the first word of the script's refusal."""


class FollowOutcome(NamedTuple):
    """The result of a batch for one of its users.

    Attributes:
        id: The user's id.
        outcome: ``followed``, ``requested`` or ``unfollowed``; ``not_found``, ``oneself`` or ``blocked`` (the source
            blocks this user) if the script refused; ``unavailable`` if Redis executed only other parts of the batch.
    """

    id: str
    outcome: str


class Follows:
    """Changes and lists follows."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def follow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """Follow a user, or request it if the user is protected. Returns the new state as JSON.

        With ``list_id``, also adds the user to this list of the source. A repeated follow changes nothing.

        Raises NotFound for an unknown user and for a user who blocks the source. Raises BadRequest for the source
        itself and for a user whom the source blocks, Forbidden ``not_yours`` for another user's list.
        """
        reply = await self._scripts.write("follow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("merge", source, target, list_id, reply))
        return REQUESTED_JSON if reply.value.endswith(b" requested") else FOLLOWING_JSON

    async def unfollow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """End a follow, or withdraw the request. Returns the new state as JSON.

        With ``list_id``, also removes the user from this list of the source. Raises the errors of :meth:`follow`.
        """
        reply = await self._scripts.write("unfollow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("remove", source, target, list_id, reply))
        return NOT_FOLLOWING_JSON

    async def change_many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], idempotency_key: IdempotencyKey
    ) -> list[FollowOutcome]:
        """Follow and unfollow many users, in this order. Each change is an atomic step with an outcome of its own.

        The batch takes one round trip. If the client sent the idempotency key, one more round trip claims that key,
        because the key must not be used for a longer batch.

        If no change was made, raises the error that stopped the batch: NotFound or Forbidden for ``source``,
        Unavailable, or Conflict ``duplicate``. A later failure of one change is that user's outcome. Raises
        OutcomeUnknown if the reply was lost.
        """
        if idempotency_key.ttl_ms == CLIENT_TTL_MS:
            await self._scripts.write("batch_claim_key", idempotency_key)
        changes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [(verb, idempotency_key.for_part(i), (source, uid, "")) for i, (verb, uid) in enumerate(changes)]
        replies = await self._scripts.write_each(writes)
        _raise_if_all_refused(replies)
        await self._syndication.apply_changes(
            *(
                timeline_change
                for (verb, uid), reply in zip(changes, replies, strict=True)
                if isinstance(reply, WriteReply)
                for timeline_change in _timeline_changes(TIMELINE_MODE_BY_VERB[verb], source, uid, "", reply)
            )
        )
        return [_make_outcome(verb, uid, reply) for (verb, uid), reply in zip(changes, replies, strict=True)]

    async def list_following(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the users whom a user follows, as JSON with ``since``, newest follow first.

        Raises NotFound and InvalidCursor.
        """
        key = keys.key_for("following", uid)
        return await read_page(self._scripts, "users_page", key, page_request, viewer, "user", uid)

    async def list_followers(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Return the followers of a user, in the form of :meth:`list_following`."""
        key = keys.key_for("followers", uid)
        return await read_page(self._scripts, "users_page", key, page_request, viewer, "user", uid)


class FollowRequests:
    """Approves, refuses and lists follow requests.

    A request remains when its receiver stops being protected. ``Follows.unfollow`` withdraws a request.
    """

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def list_received(self, uid: str, page_request: PageRequest) -> Page:
        """Return the users who request to follow this user, as JSON with ``since``, newest first.

        Raises InvalidCursor.
        """
        return await read_page(self._scripts, "users_page", keys.key_for("asks", uid), page_request, uid, "", "")

    async def list_sent(self, uid: str, page_request: PageRequest) -> Page:
        """Return the users whom this user requests to follow, in the form of :meth:`list_received`."""
        return await read_page(self._scripts, "users_page", keys.key_for("asked", uid), page_request, uid, "", "")

    async def approve(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Approve a request. The requester follows the user from now on, and their home timeline is filled.

        Raises NotFound if there is no such request, also if it was withdrawn or answered before.
        """
        reply = await self._scripts.write("follow_request_approve", idempotency_key, uid, requester)
        if not reply.is_repeat:
            fence, newest_ids = reply.first_time_extra
            await self._syndication.apply_changes(TimelineChange("home", requester, uid, "merge", fence, newest_ids))

    async def refuse(self, uid: str, requester: str, idempotency_key: IdempotencyKey) -> None:
        """Refuse a request. The requester may request again. Raises NotFound as :meth:`approve` does."""
        await self._scripts.write("follow_request_refuse", idempotency_key, uid, requester)


def _timeline_changes(mode: str, source: str, target: str, list_id: str, reply: WriteReply) -> list[TimelineChange]:
    """Return the changes of the home and the list timeline that a follow or unfollow causes.

    A repeated write causes none, because the first one enqueued their jobs.
    """
    if reply.is_repeat:
        return []
    fence, list_fence, newest_ids = reply.first_time_extra
    return [
        TimelineChange("home", source, target, mode, fence, newest_ids),
        TimelineChange("list", list_id, target, mode, list_fence, newest_ids),
    ]


def _raise_if_all_refused(replies: Sequence[WriteReply | ResponseError]) -> None:
    """Raise the first error that concerns the whole batch, if Redis executed no part of it.

    An error that names the parameter ``id`` concerns one user only and is not raised.
    """
    if any(isinstance(reply, WriteReply) for reply in replies):
        return
    for reply in replies:
        if isinstance(reply, ResponseError) and (error := write_error_to_api_error(reply)).param != "id":
            raise error


def _make_outcome(verb: str, uid: str, reply: WriteReply | ResponseError) -> FollowOutcome:
    """Return the outcome of one user of a batch from the script's reply or refusal."""
    if isinstance(reply, WriteReply):
        return FollowOutcome(uid, "requested" if reply.value.endswith(b" requested") else f"{verb}ed")
    if write_error_to_api_error(reply).param != "id":
        return FollowOutcome(uid, "unavailable")
    return FollowOutcome(uid, OUTCOME_BY_REFUSAL[str(reply).partition(" ")[0]])
