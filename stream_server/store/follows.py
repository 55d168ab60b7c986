"""Follows: who follows whom, both ways, with both counters, in one step."""

from collections.abc import Sequence
from typing import NamedTuple

from redis.exceptions import ResponseError

from stream_server.errors import BadRequest
from stream_server.events import Position, iso
from stream_server.store import keys
from stream_server.store.page import read_page
from stream_server.store.position import at
from stream_server.store.refusals import refused
from stream_server.store.request import Request
from stream_server.store.scripts import Answer, Scripts
from stream_server.store.users import Users

FOLLOWING = b'{"following":true,"requested":false}'
NOT_FOLLOWING = b'{"following":false,"requested":false}'


class Outcome(NamedTuple):
    """What became of one user of a batch: ``followed``, ``unfollowed``, ``not_found`` or ``oneself``."""

    id: str
    outcome: str


class Viewer(NamedTuple):
    """Whom a user follows, and the head of the log at that very moment."""

    following: set[str]
    head: Position


class People(NamedTuple):
    """Users as JSON, newest first, each with ``since``; ``next`` is for ``before``, ``prev`` for ``after``."""

    users: list[bytes]
    next: str | None
    prev: str | None


class Follows:
    """The graph of one store."""

    def __init__(self, scripts: Scripts, users: Users) -> None:
        self._scripts = scripts
        self._users = users

    async def follow(self, source: str, target: str, request: Request) -> bytes:
        """Begin to follow, as JSON; already so changes nothing. Raises NotFound, or BadRequest for oneself."""
        await self._scripts.write("follow", request, source, target)
        return FOLLOWING

    async def unfollow(self, source: str, target: str, request: Request) -> bytes:
        """Follow no longer, as JSON; already so changes nothing. Raises as :meth:`follow` does."""
        await self._scripts.write("unfollow", request, source, target)
        return NOT_FOLLOWING

    async def many(
        self, source: str, follow: Sequence[str], unfollow: Sequence[str], request: Request
    ) -> list[Outcome]:
        """Follow and unfollow many, in this order and one round trip; each has its own outcome.

        Raises what concerns them all: NotFound for ``source``, Unavailable, OutcomeUnknown, ``duplicate``.
        """
        wishes = [("follow", uid) for uid in follow] + [("unfollow", uid) for uid in unfollow]
        writes = [(verb, request.part(i), (source, uid)) for i, (verb, uid) in enumerate(wishes)]
        answers = await self._scripts.write_each(writes)
        return [_outcome(verb, uid, answer) for (verb, uid), answer in zip(wishes, answers, strict=True)]

    async def following(self, uid: str) -> Viewer:
        """Whom a user follows, and the position of the log up to which that is true."""
        ids, entry_id, n = await self._scripts.read("viewer", keys.META, uid)
        return Viewer({member.decode() for member in ids}, at(entry_id, n))

    async def followed(self, uid: str, count: int, before: str | None = None, after: str | None = None) -> People:
        """Whom a user follows, newest first; raises NotFound, InvalidCursor."""
        return await self._people(keys.following(uid), uid, count, before, after)

    async def followers(self, uid: str, count: int, before: str | None = None, after: str | None = None) -> People:
        """Who follows a user, newest first; raises NotFound, InvalidCursor."""
        return await self._people(keys.followers(uid), uid, count, before, after)

    async def _people(self, key: str, uid: str, count: int, before: str | None, after: str | None) -> People:
        page = await read_page(self._scripts, key, uid, count, before, after)
        users = await self._users.many([member.uid for member in page.members])
        since = [b',"since":"%b"}' % iso(member.since_ms).encode() for member in page.members]
        return People([user[:-1] + end for user, end in zip(users, since, strict=True)], page.next, page.prev)


def _outcome(verb: str, uid: str, answer: Answer | ResponseError) -> Outcome:
    if isinstance(answer, Answer):
        return Outcome(uid, f"{verb}ed")
    error = refused(answer)
    if error.param != "id":
        raise error
    return Outcome(uid, "oneself" if isinstance(error, BadRequest) else "not_found")
