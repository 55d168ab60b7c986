"""The parts of the follow graph that streams keep in memory.

A small part is read in one atomic step together with the head of the log. A large part is read in pages, while it
changes, between two reads of the head. Entries of the log say what a relation is after them, whatever it was before. So
whoever applies the entries behind the first head in their order has the exact part from the second head on.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.admission import ReadAdmission
from stream_server.store.redis.batched_reads import BatchedReads
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.replies import make_position
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import Syndication

RELATIONS = ("following", "blocks", "blockers", "mutes", "groups", "ended")
"""The relations of a graph, in the order of its members: their rows in `store/keys.py`. Those that ended are read last,
so that none is missing from both."""

MAX_STEP_RELATIONS = 750
"""Most relations that one step reads for several users together. It holds Redis for about a millisecond."""

PAGE_MEMBERS = 250
"""Number of members in one page of a large relation. It holds Redis for about half a millisecond."""

MAX_LARGE_READS = 2
"""Most large graphs that a process reads at the same time."""


class UserGraph(NamedTuple):
    """A user's relations up to ``head`` of the log. Each dict maps an id to the start of the relation in ms.

    ``blockers`` are the users who block the user, ``groups`` the groups that have the user as member. ``ended`` has
    the follows and memberships that ended last: it maps the id of the other user or group and their start to their end.
    Who reads the relations must apply the log's entries after ``applied_from``. Then they include all entries up to
    ``head`` and none after it. The two positions are equal if the relations were read in one step.
    """

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    ended: dict[tuple[str, int], int]
    applied_from: Position
    head: Position


class RestrictedAccounts(NamedTuple):
    """The ids of all protected and all suspended users. The two positions are as in `UserGraph`."""

    protected: frozenset[str]
    suspended: frozenset[str]
    applied_from: Position
    head: Position


class UserGraphs(Noun):
    """Reads a user's follows, blocks, mutes and groups, and the restricted accounts, for the users' streams."""

    def __init__(self, redis: RedisClient, scripts: Scripts, syndication: Syndication) -> None:
        super().__init__(redis, scripts, syndication)
        self._graphs = BatchedReads(self._read_graphs)
        self._large_admission = ReadAdmission(MAX_LARGE_READS)
        self._large_reads: set[asyncio.Task[UserGraph]] = set()

    def get_graph(self, uid: str) -> "asyncio.Future[UserGraph]":
        """Return a user's follows, blocks, mutes and groups. The users of several calls share a round trip.

        All are empty for an unknown user. A cancelled future cancels nothing else. More than `MAX_STEP_RELATIONS`
        relations are read in pages, for which no other user waits.
        """
        return self._graphs.ask(uid)

    async def _read_graphs(self, uids: Sequence[str]) -> "list[UserGraph | asyncio.Future[UserGraph]]":
        """Return the graph of each user, or its future if it is large. A graph that finds no room is read next."""
        found: list[UserGraph | asyncio.Future[UserGraph]] = []
        while len(found) < len(uids):
            graphs, head = await self._read_step(uids[len(found) :])
            found += graphs or [self._start_large_read(uids[len(found)], head)]
        return found

    async def _read_step(self, uids: Sequence[str]) -> tuple[list[UserGraph], Position]:
        """Return the graphs of the first users that fit into one step, perhaps none, and the log's head then."""
        reply = await self._scripts.call("user_graphs", keys.META, MAX_STEP_RELATIONS, *uids)
        *relations, entry_id, n = reply
        head = make_position(entry_id, n)
        parts = [_times_by_id(pairs) if pairs else {} for pairs in relations]
        size = len(RELATIONS)
        return [_make_graph(parts[at : at + size], head, head) for at in range(0, len(parts), size)], head

    def _start_large_read(self, uid: str, head: Position) -> "asyncio.Task[UserGraph]":
        read = asyncio.get_running_loop().create_task(self._read_large_graph(uid, head))
        self._large_reads.add(read)
        read.add_done_callback(self._large_reads.discard)
        return read

    async def _read_large_graph(self, uid: str, applied_from: Position) -> UserGraph:
        """Read a graph in pages. The log's head was ``applied_from`` before that."""
        async with self._large_admission.slot(0):
            relations = [await self._read_in_pages(keys.key_for(name, uid)) for name in RELATIONS]
            head = (await self._read_step(()))[1]
            return _make_graph(relations, applied_from, head)

    async def _read_in_pages(self, key: str) -> dict[str, int]:
        """Return the members of a sorted set with their scores. What is not changed meanwhile is surely among them.

        Each page begins behind the last (score, member) of the page before, whether that member is still there or not.
        """
        members: dict[str, int] = {}
        score, member = b"", b""
        while True:
            pairs = await self._scripts.call("relation_page", keys.META, key, score, member, PAGE_MEMBERS)
            members |= _times_by_id(pairs)
            if len(pairs) < 2 * PAGE_MEMBERS:
                return members
            member, score = pairs[-2:]

    async def get_restricted_accounts(self) -> RestrictedAccounts:
        """Return the ids of all protected and all suspended users, read in pages. The time grows with their number.

        A server process calls this when it starts and when it may have missed log entries.
        """
        applied_from = (await self._read_step(()))[1]
        protected, cursor = set[str](), b"0"
        while True:
            ((cursor, members),) = await self._redis.execute(
                ("SSCAN", keys.key_for("protected"), cursor, "COUNT", PAGE_MEMBERS)
            )
            protected.update(map(bytes.decode, members))
            if cursor == b"0":
                break
        suspended = await self._read_in_pages(keys.key_for("suspended"))
        head = (await self._read_step(()))[1]
        return RestrictedAccounts(frozenset(protected), frozenset(suspended), applied_from, head)


def _make_graph(relations: Sequence[dict[str, int]], applied_from: Position, head: Position) -> UserGraph:
    """Make a graph of `RELATIONS`, each as Redis has it: members with their scores."""
    following, blocks, blockers, mutes, groups, ends = relations
    ended = {}
    for member, end_ms in ends.items():
        other, _, begin_ms = member.partition("-")
        ended[other, int(begin_ms)] = end_ms
    return UserGraph(following, blocks, blockers, mutes, groups, ended, applied_from, head)


def _times_by_id(pairs: Sequence[bytes]) -> dict[str, int]:
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}
