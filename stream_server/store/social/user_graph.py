"""The parts of the follow graph that streams keep in memory.

A part is read between two reads of the head of the log, a large one in pages. It may change meanwhile. Entries of the
log say what a relation is after them, whatever it was before. So a viewer who applies the entries behind the first head
in their order has the exact part from the second head on.
"""

import asyncio
from collections.abc import Iterator, Sequence
from math import inf
from operator import itemgetter
from typing import NamedTuple

from stream_server.errors import ApiError
from stream_server.events.position import Position
from stream_server.runtime.fair_queue import FairQueue
from stream_server.store import keys
from stream_server.store.redis.batched_reads import BatchedReads
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import READ_NEWEST_ENTRY
from stream_server.store.redis.protocol import KeyRead, newest_position
from stream_server.store.redis.scripts import ScriptRunner
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import Syndication

RELATIONS = ("following", "blocks", "blockers", "mutes", "groups", "ended")
"""The relations of a graph, in the order of its members: their rows in `store/keys.py`. Those that ended are read last,
so that none is missing from both."""

MAX_STEP_RELATIONS = 750
"""Most relations that one pipeline reads for several users together. It holds Redis for about a millisecond."""

PAGE_MEMBERS = 250
"""Number of members in one page of a large relation. It holds Redis for about half a millisecond."""

_SIZE_READS = [KeyRead(b"ZCARD", keys.key_for(name).encode()) for name in RELATIONS]
_SET_READS = [
    KeyRead(b"ZRANGE", keys.key_for(name).encode(), b"0", b"%d" % MAX_STEP_RELATIONS, b"WITHSCORES")
    for name in RELATIONS
]


class UserGraph(NamedTuple):
    """A user's relations up to ``head`` of the log. Each dict maps an id to the start of the relation in ms.

    ``blockers`` are the users who block the user, ``groups`` the groups that have the user as member. ``ended`` has
    the follows and memberships that ended last: it maps the id of the other user or group and their start to their end.
    Who reads the relations must apply the log's entries after ``applied_from``. Then they include all entries up to
    ``head`` and none after it.
    """

    following: dict[str, int]
    blocks: dict[str, int]
    blockers: dict[str, int]
    mutes: dict[str, int]
    groups: dict[str, int]
    ended: dict[tuple[str, int], int]
    applied_from: Position
    head: Position


class RestrictedAccountsSnapshot(NamedTuple):
    """The ids of all protected, suspended and deleted users. The two positions are as in `UserGraph`.

    A deleted user is suspended, too, and stays ``gone`` as long as an entry of the log may show the user.
    """

    protected: frozenset[str]
    suspended: frozenset[str]
    gone: frozenset[str]
    applied_from: Position
    head: Position


class UserGraphs(Noun):
    """Reads a user's follows, blocks, mutes and groups, and the restricted accounts, for the users' streams."""

    def __init__(self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication) -> None:
        super().__init__(redis, scripts, syndication)
        self._graphs = BatchedReads(self._read_graphs)
        # A process reads two large graphs at the same time.
        self._large_queue = FairQueue(2, "too many streams are being opened; try again")
        self._large_reads: set[asyncio.Task[UserGraph]] = set()

    def get_graph(self, uid: str) -> "asyncio.Future[UserGraph]":
        """Return a user's follows, blocks, mutes and groups. The users of several calls share a round trip.

        All are empty for an unknown user. A cancelled future cancels nothing else. More than `MAX_STEP_RELATIONS`
        relations are read in pages, for which no other user waits.
        """
        return self._graphs.ask(uid)

    async def _read_graphs(self, uids: Sequence[str]) -> "list[UserGraph | asyncio.Future[UserGraph]]":
        """Return the graph of each user. A large graph is still being read: its future stands in its place."""
        names = [uid.encode() for uid in uids]
        commands = [command for read in _SIZE_READS for command in read.commands(names)]
        newest, *replies, later = await self._redis.execute_each(READ_NEWEST_ENTRY, *commands, READ_NEWEST_ENTRY)
        for failed in (newest, later):
            if isinstance(failed, ApiError):
                raise failed
        applied_from, counted_at = newest_position(newest), newest_position(later)
        # An error counts as a large graph, whose read fails for its user only.
        counts = [inf if isinstance(count, ApiError) else count for count in replies]
        sizes = [sum(counts[at :: len(uids)]) for at in range(len(uids))]
        found: list[UserGraph | asyncio.Future[UserGraph]] = []
        while len(found) < len(uids):
            begin, room = len(found), float(MAX_STEP_RELATIONS)
            if sizes[begin] > room:
                large_read = asyncio.get_running_loop().create_task(self._read_large_graph(uids[begin], applied_from))
                self._large_reads.add(large_read)
                large_read.add_done_callback(self._large_reads.discard)
                found.append(large_read)
                continue
            end = begin  # of the users whose relations are so few that one pipeline reads them together
            while end < len(uids) and sizes[end] <= room:
                room -= sizes[end]
                end += 1
            found += await self._read_step(names[begin:end], sizes[begin:end], applied_from, counted_at)
        return found

    async def _read_step(
        self, names: Sequence[bytes], sizes: Sequence[float], applied_from: Position, head: Position
    ) -> list[UserGraph]:
        """Return the graph of each user. ``names`` are their ids, and ``sizes`` the numbers of their relations.

        These were counted while the head of the log went from ``applied_from`` to ``head``. Users without a relation
        are not read again: the log tells which relations they got since.
        """
        reads = [read.command(name) for name, size in zip(names, sizes, strict=True) if size for read in _SET_READS]
        parts: Iterator[dict[str, int]] = iter(())
        if reads:
            *sets, newest = await self._redis.execute(*reads, READ_NEWEST_ENTRY)
            parts, head = map(_times_by_id, sets), newest_position(newest)
        return [_make_graph([next(parts) if size else {} for _ in RELATIONS], applied_from, head) for size in sizes]

    async def _read_head(self) -> Position:
        return newest_position((await self._redis.execute(READ_NEWEST_ENTRY))[0])

    async def _read_large_graph(self, uid: str, applied_from: Position) -> UserGraph:
        """Read a graph in pages, because it is large. ``applied_from`` was the head of the log before that."""
        async with self._large_queue.slot():
            relations = [await self._scan_set("ZSCAN", keys.key_for(name, uid)) for name in RELATIONS]
            return _make_graph([*map(_times_by_id, relations)], applied_from, await self._read_head())

    async def _scan_set(self, command: str, key: str) -> list[bytes]:
        """Read a large set in pages: return its members or, for ZSCAN, members and scores in turn.

        A member that is in the set the whole time is surely among them. One that comes or goes meanwhile may be.
        """
        found, cursor = list[bytes](), b"0"
        while True:
            ((cursor, page),) = await self._redis.execute((command, key, cursor, "COUNT", PAGE_MEMBERS))
            found += page
            if cursor == b"0":
                return found

    async def get_restricted_accounts(self) -> RestrictedAccountsSnapshot:
        """Return the ids of all protected, suspended and gone users, read in pages. The time grows with their number.

        A server process calls this when it starts and when it may have missed log entries.
        """
        applied_from = await self._read_head()
        protected = await self._scan_set("SSCAN", keys.key_for("protected"))
        suspended = _as_ids((await self._scan_set("ZSCAN", keys.key_for("suspended")))[::2])
        gone = _as_ids((await self._scan_set("ZSCAN", keys.key_for("gone")))[::2])
        return RestrictedAccountsSnapshot(
            _as_ids(protected), suspended | gone, gone, applied_from, await self._read_head()
        )


def _as_ids(members: Sequence[bytes]) -> frozenset[str]:
    return frozenset(map(bytes.decode, members))


def _make_graph(relations: Sequence[dict[str, int]], applied_from: Position, head: Position) -> UserGraph:
    """Make a graph from the replies of Redis: for each of `RELATIONS` in order, the members with their scores."""
    following, blocks, blockers, mutes, groups, ends = relations
    ended = {}
    for member, end_ms in sorted(ends.items(), key=itemgetter(1)):  # a viewer forgets the first first
        other, _, begin_ms = member.partition("-")
        ended[other, int(begin_ms)] = end_ms
    return UserGraph(following, blocks, blockers, mutes, groups, ended, applied_from, head)


def _times_by_id(pairs: Sequence[bytes]) -> dict[str, int]:
    return {member.decode(): int(score) for member, score in zip(pairs[::2], pairs[1::2], strict=True)}
