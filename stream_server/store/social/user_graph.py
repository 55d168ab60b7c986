"""What streams keep of the graph in memory, each read in one step with the head of the log at that moment."""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.positions import make_position
from stream_server.store.redis.scripts import Scripts


class UserGraph(NamedTuple):
    """The graph around a user, ids with when each relation began (ms since 1970), true at ``head``."""

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    head: Position


class RestrictedAccounts(NamedTuple):
    """Who is protected and who is suspended at ``head``."""

    protected: frozenset[str]
    suspended: frozenset[str]
    head: Position


class UserGraphs:
    """Reads viewers of one store."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get_graph(self, uid: str) -> UserGraph:
        """The graph around a user, empty for one who does not exist; raises Unavailable.

        One step as long as these sets: a millisecond or two a thousand people. Nothing bounds whom somebody follows, or
        who blocks them.
        """
        *relations, entry_id, n = await self._scripts.call("user_graph", keys.META, uid)
        following, blocks, blockers, mutes, groups = map(_start_times_by_id, relations)
        return UserGraph(following, blocks, blockers, mutes, groups, make_position(entry_id, n))

    async def get_restricted_accounts(self) -> RestrictedAccounts:
        """Everybody who is protected or suspended; raises Unavailable.

        One step as long as these sets, read when a worker starts and when it may have missed something.
        """
        protected, suspended, entry_id, n = await self._scripts.call("restricted_accounts", keys.META)
        return RestrictedAccounts(_to_id_set(protected), _to_id_set(suspended), make_position(entry_id, n))


def _start_times_by_id(pairs: Sequence[bytes]) -> dict[str, int]:
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}


def _to_id_set(members: Sequence[bytes]) -> frozenset[str]:
    return frozenset(member.decode() for member in members)
