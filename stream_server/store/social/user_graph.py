"""The parts of the graph that streams keep in memory.

One atomic step reads each part together with the head of the log, so a stream can apply all later entries to it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.positions import make_position
from stream_server.store.redis.scripts import Scripts


class UserGraph(NamedTuple):
    """The relations of one user at a position of the log: ids with the time of each start, in ms since 1970.

    Attributes:
        following: Users whom the user follows.
        blocks: Users whom the user blocks.
        blockers: Users who block the user.
        mutes: Users whom the user mutes.
        groups: Groups of which the user is a member.
        head: Newest entry of the log that the sets include.
    """

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    head: Position


class RestrictedAccounts(NamedTuple):
    """The ids of all protected and all suspended users when ``head`` was the newest entry of the log."""

    protected: frozenset[str]
    suspended: frozenset[str]
    head: Position


class UserGraphs:
    """Reads the graph for streams."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def get_graph(self, uid: str) -> UserGraph:
        """Return the relations of a user; they are empty for an unknown user. Raises Unavailable.

        Redis does nothing else for one or two milliseconds per thousand users. The number of followed or blocking users
        is not bounded.
        """
        *relations, entry_id, n = await self._scripts.call("user_graph", keys.META, uid)
        following, blocks, blockers, mutes, groups = map(_start_times_by_id, relations)
        return UserGraph(following, blocks, blockers, mutes, groups, make_position(entry_id, n))

    async def get_restricted_accounts(self) -> RestrictedAccounts:
        """Return all protected and all suspended users. Raises Unavailable.

        Workers call this when they start and when they may have missed entries. The duration grows with the sets.
        """
        protected, suspended, entry_id, n = await self._scripts.call("restricted_accounts", keys.META)
        return RestrictedAccounts(_to_id_set(protected), _to_id_set(suspended), make_position(entry_id, n))


def _start_times_by_id(pairs: Sequence[bytes]) -> dict[str, int]:
    """Return Redis's flat list of members and scores as a map from id to start time (ms)."""
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}


def _to_id_set(members: Sequence[bytes]) -> frozenset[str]:
    """Return the members of a Redis set as ids."""
    return frozenset(member.decode() for member in members)
