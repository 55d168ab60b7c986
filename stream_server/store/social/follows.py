"""Follows: who follows whom, both ways, with both counters, in one step."""

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
"""What a verb does to the follower's timeline."""


OUTCOME_BY_REFUSAL = {"NOT_FOUND": "not_found", "ONESELF": "oneself", "BLOCKED": "blocked"}
"""Outcomes of a batch by the word with which the script refuses one id."""


class FollowOutcome(NamedTuple):
    """What became of one user of a batch.

    ``followed``, ``requested``, ``unfollowed``; ``not_found``, ``oneself``, ``blocked`` (by the source) where it cannot
    be; ``unavailable`` where the data store took some of the batch and not this one.
    """

    id: str
    outcome: str


class Follows:
    """The graph of one store."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def follow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """Begin to follow, as JSON, or ask to where the target is protected; put them on a list of one's own too.

        Already so changes nothing. Raises NotFound (also for who blocks the source), BadRequest for oneself and for
        whom one blocks, Forbidden ``not_yours`` for another's list.
        """
        answer = await self._scripts.write("follow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("merge", source, target, list_id, answer))
        return REQUESTED_JSON if answer.value.endswith(b" requested") else FOLLOWING_JSON

    async def unfollow(self, source: str, target: str, idempotency_key: IdempotencyKey, list_id: str = "") -> bytes:
        """Follow, or ask to, no longer, as JSON; take them off a list too. Raises as :meth:`follow` does."""
        answer = await self._scripts.write("unfollow", idempotency_key, source, target, list_id)
        await self._syndication.apply_changes(*_timeline_changes("remove", source, target, list_id, answer))
        return NOT_FOLLOWING_JSON

    async def change_many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], idempotency_key: IdempotencyKey
    ) -> list[FollowOutcome]:
        """Follow and unfollow many, in this order; each is a step of its own and has its own outcome.

        One round trip, and one before it for a client's key, which is for one batch only.

        Raises what concerns them all, as long as nothing was done: NotFound and Forbidden for ``source``, Unavailable,
        ``duplicate``; and OutcomeUnknown. What failed after something was done is told as that id's outcome.
        """
        if idempotency_key.ttl_ms == CLIENT_TTL_MS:
            await self._scripts.write("batch_claim_key", idempotency_key)
        wishes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [(verb, idempotency_key.for_part(i), (source, uid, "")) for i, (verb, uid) in enumerate(wishes)]
        answers = await self._scripts.write_each(writes)
        _raise_if_nothing_done(answers)
        await self._syndication.apply_changes(
            *(
                pair
                for (verb, uid), answer in zip(wishes, answers, strict=True)
                if isinstance(answer, WriteReply)
                for pair in _timeline_changes(TIMELINE_MODE_BY_VERB[verb], source, uid, "", answer)
            )
        )
        return [_make_outcome(verb, uid, answer) for (verb, uid), answer in zip(wishes, answers, strict=True)]

    async def list_following(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Whom a user follows, as JSON with ``since``, newest first; raises NotFound, InvalidCursor."""
        return await read_page(
            self._scripts, "users_page", keys.key_for("following", uid), page_request, viewer, "user", uid
        )

    async def list_followers(self, viewer: str, uid: str, page_request: PageRequest) -> Page:
        """Who follows a user, as :meth:`list_following`."""
        return await read_page(
            self._scripts, "users_page", keys.key_for("followers", uid), page_request, viewer, "user", uid
        )


def _timeline_changes(mode: str, source: str, target: str, list_id: str, reply: WriteReply) -> list[TimelineChange]:
    """The timelines that follow in the same call; a repetition was answered before, and its jobs are under way."""
    if reply.is_repeat:
        return []
    fence, list_fence, recent = reply.first_time_extra
    return [
        TimelineChange("home", source, target, mode, fence, recent),
        TimelineChange("list", list_id, target, mode, list_fence, recent),
    ]


def _raise_if_nothing_done(replies: Sequence[WriteReply | ResponseError]) -> None:
    """Raises what stopped the batch as a whole; what one id was refused for stops nothing."""
    if any(isinstance(answer, WriteReply) for answer in replies):
        return
    for answer in replies:
        if isinstance(answer, ResponseError) and (error := write_error_to_api_error(answer)).param != "id":
            raise error


def _make_outcome(verb: str, uid: str, reply: WriteReply | ResponseError) -> FollowOutcome:
    if isinstance(reply, WriteReply):
        return FollowOutcome(uid, "requested" if reply.value.endswith(b" requested") else f"{verb}ed")
    if write_error_to_api_error(reply).param != "id":
        return FollowOutcome(uid, "unavailable")
    return FollowOutcome(uid, OUTCOME_BY_REFUSAL[str(reply).partition(" ")[0]])
