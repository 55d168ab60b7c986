"""The parts of the follow graph that streams keep in memory.

One atomic step reads each part together with the head of the log, so a stream can apply all later entries to it.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.batched_reads import BatchedReads
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replies import make_position
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import Syndication


class UserGraph(NamedTuple):
    """A user's relations at the position ``head`` of the log. Each dict maps an id to the start of the relation in ms.

    ``blockers`` are the users who block the user, ``groups`` the groups that have the user as member. The relations
    include all log entries up to ``head`` and none after it.
    """

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    head: Position


class RestrictedAccounts(NamedTuple):
    """The ids of all protected and all suspended users. ``head`` is the log's last position at the same moment."""

    protected: frozenset[str]
    suspended: frozenset[str]
    head: Position


class UserGraphs(Noun):
    """Reads a user's follows, blocks, mutes and groups, and the restricted accounts, for the users' streams."""

    def __init__(self, redis: RedisClient, scripts: Scripts, syndication: Syndication) -> None:
        super().__init__(redis, scripts, syndication)
        self._graphs = BatchedReads(self.get_graphs)

    def get_graph(self, uid: str) -> "asyncio.Future[UserGraph]":
        """Return a user's follows, blocks, mutes and groups. The users of several calls share a round trip.

        All are empty for an unknown user. A cancelled future cancels nothing else.
        """
        return self._graphs.ask(uid)

    async def get_graphs(self, uids: Sequence[str]) -> list[UserGraph]:
        """Return the graph of each user, all at the same position of the log.

        This occupies Redis for one or two milliseconds per thousand relations, and nothing limits their number.
        """
        *relations, entry_id, n = await self._scripts.call("user_graphs", keys.META, *uids)
        head = make_position(entry_id, n)
        parts = iter([_start_times_by_id(pairs) if pairs else {} for pairs in relations])
        return [UserGraph(*graph, head) for graph in zip(parts, parts, parts, parts, parts, strict=True)]

    async def get_restricted_accounts(self) -> RestrictedAccounts:
        """Return the ids of all protected and all suspended users. The time that this takes grows with their number.

        A server process calls this when it starts and when it may have missed log entries.
        """
        protected, suspended, entry_id, n = await self._scripts.call("restricted_accounts", keys.META)
        return RestrictedAccounts(_to_id_set(protected), _to_id_set(suspended), make_position(entry_id, n))


def _start_times_by_id(pairs: Sequence[bytes]) -> dict[str, int]:
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}


def _to_id_set(members: Sequence[bytes]) -> frozenset[str]:
    return frozenset(member.decode() for member in members)
