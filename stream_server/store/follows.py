"""Follows: who follows whom, both ways, with both counters, in one step."""

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk
from stream_server.store.refusals import refused_write
from stream_server.store.request import CLIENT_TTL_MS, Request
from stream_server.store.scripts import Answer, Scripts
from stream_server.store.syndication import Pair, Syndication

FOLLOWING = b'{"following":true,"requested":false}'
REQUESTED = b'{"following":false,"requested":true}'
NOT_FOLLOWING = b'{"following":false,"requested":false}'


MODES = {"follow": "merge", "unfollow": "remove"}
"""What a verb does to the follower's timeline."""


REFUSED = {"NOT_FOUND": "not_found", "ONESELF": "oneself", "BLOCKED": "blocked"}
"""Outcomes of a batch by the word with which the script refuses one id."""


class Outcome(NamedTuple):
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

    async def follow(self, source: str, target: str, request: Request, list_id: str = "") -> bytes:
        """Begin to follow, as JSON, or ask to where the target is protected; put them on a list of one's own too.

        Already so changes nothing. Raises NotFound (also for who blocks the source), BadRequest for oneself and for
        whom one blocks, Forbidden ``not_yours`` for another's list.
        """
        answer = await self._scripts.write("follow", request, source, target, list_id)
        await self._syndication.pair(*_pairs("merge", source, target, list_id, answer))
        return REQUESTED if answer.value.endswith(b" requested") else FOLLOWING

    async def unfollow(self, source: str, target: str, request: Request, list_id: str = "") -> bytes:
        """Follow, or ask to, no longer, as JSON; take them off a list too. Raises as :meth:`follow` does."""
        answer = await self._scripts.write("unfollow", request, source, target, list_id)
        await self._syndication.pair(*_pairs("remove", source, target, list_id, answer))
        return NOT_FOLLOWING

    async def many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], request: Request
    ) -> list[Outcome]:
        """Follow and unfollow many, in this order; each is a step of its own and has its own outcome.

        One round trip, and one before it for a client's key, which is for one batch only.

        Raises what concerns them all, as long as nothing was done: NotFound and Forbidden for ``source``, Unavailable,
        ``duplicate``; and OutcomeUnknown. What failed after something was done is told as that id's outcome.
        """
        if request.ttl_ms == CLIENT_TTL_MS:
            await self._scripts.write("batch", request)
        wishes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [(verb, request.part(i), (source, uid, "")) for i, (verb, uid) in enumerate(wishes)]
        answers = await self._scripts.write_each(writes)
        _refuse_if_nothing_was_done(answers)
        await self._syndication.pair(
            *(
                pair
                for (verb, uid), answer in zip(wishes, answers, strict=True)
                if isinstance(answer, Answer)
                for pair in _pairs(MODES[verb], source, uid, "", answer)
            )
        )
        return [_outcome(verb, uid, answer) for (verb, uid), answer in zip(wishes, answers, strict=True)]

    async def followed(self, viewer: str, uid: str, piece: Piece) -> Page:
        """Whom a user follows, as JSON with ``since``, newest first; raises NotFound, InvalidCursor."""
        return await walk(self._scripts, "people", keys.named("following", uid), piece, viewer, "user", uid)

    async def followers(self, viewer: str, uid: str, piece: Piece) -> Page:
        """Who follows a user, as :meth:`followed`."""
        return await walk(self._scripts, "people", keys.named("followers", uid), piece, viewer, "user", uid)


def _pairs(mode: str, source: str, target: str, list_id: str, answer: Answer) -> list[Pair]:
    """The timelines that follow in the same call; a repetition was answered before, and its jobs are under way."""
    if answer.again:
        return []
    fence, list_fence, recent = answer.extra
    return [
        Pair("home", source, target, mode, fence, recent),
        Pair("list", list_id, target, mode, list_fence, recent),
    ]


def _refuse_if_nothing_was_done(answers: Sequence[Answer | ResponseError]) -> None:
    """Raises what stopped the batch as a whole; what one id was refused for stops nothing."""
    if any(isinstance(answer, Answer) for answer in answers):
        return
    for answer in answers:
        if isinstance(answer, ResponseError) and (error := refused_write(answer)).param != "id":
            raise error


def _outcome(verb: str, uid: str, answer: Answer | ResponseError) -> Outcome:
    if isinstance(answer, Answer):
        return Outcome(uid, "requested" if answer.value.endswith(b" requested") else f"{verb}ed")
    if refused_write(answer).param != "id":
        return Outcome(uid, "unavailable")
    return Outcome(uid, REFUSED[str(answer).partition(" ")[0]])
