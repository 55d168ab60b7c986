"""Open streams of all server processes: which process holds which stream of a user.

Redis has the id of each stream, its process, its scopes and when it was opened, and nothing else. The process describes
the rest, such as the filters, when somebody lists the streams (:meth:`OpenStreams.ask`).

A process that dies leaves its streams in the table. Its lease ends soon after. From then on they are not counted.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from stream_server.errors import ApiError
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.derived import DerivedRedis
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.scripts import ScriptRunner
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import Syndication

LEASE_MS = 35_000
"""Time in ms for which a process counts as alive after :meth:`OpenStreams.renew_lease`."""

ANSWER_SECONDS = 0.5
"""Longest time in seconds to wait for the other processes when somebody lists streams."""

ASK_CHANNEL = "streams:ask"
"""Redis channel on which a process asks the others about the streams of a user."""


class OpenStream(NamedTuple):
    """One open stream of the user ``uid``.

    Attributes:
        connection: Id of the stream, as in its `hello`.
        process: Id of the server process that holds the stream.
        opened_ms: When the stream was opened, in ms since 1970. Fractions keep the order within one millisecond.
        scopes: Scopes that the stream's filters need, separated by ``+``.
    """

    uid: str
    connection: str
    process: str
    opened_ms: float
    scopes: str = ""

    @property
    def member(self) -> str:
        """The stream as member of the user's sorted set."""
        return f"{self.connection} {self.process} {self.scopes}"


class StreamQuestion(msgspec.Struct):
    """A question of one process to the others: describe the streams of the user ``uid`` in the list ``answers``."""

    uid: str
    answers: str


class CensusQuestion(msgspec.Struct):
    """A question of one process to all others: which streams do you have. They describe them in the list ``answers``.

    No member has the name of one that `StreamQuestion` needs, because processes of older versions read that.

    Attributes:
        order: What the streams are ordered by, see `feed/stream_census.py`.
        count: The most streams to describe.
        answers: The list for the answers.
        before: The rank and the connection behind which the streams begin. None for the first ones.
        user: The id of the user whose streams are asked for. None for all streams.
        connection: The only stream that is asked for.
        sums: Whether the streams are added up by user, see `feed/stream_sums.py`.
    """

    order: str
    count: int
    answers: str
    before: tuple[float, str] | None = None
    user: str | None = None
    connection: str | None = None
    sums: bool = False


class RecordedStreams(NamedTuple):
    """The rows that :meth:`OpenStreams.record` has recorded.

    Attributes:
        counts: Number of streams of each user who opened one, also those of processes that have died.
        failed_users: Users of whom something is not recorded, because the server of their streams did not answer.
    """

    counts: dict[str, int]
    failed_users: set[str]


class OpenStreams(Noun):
    """Records and lists open streams, and sends commands to the process that holds a stream."""

    def __init__(
        self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication, derived: DerivedRedis
    ) -> None:
        super().__init__(redis, scripts, syndication)
        self._derived = derived

    async def record(self, opened: Sequence[OpenStream], closed: Iterable[OpenStream]) -> RecordedStreams:
        """Record opened and closed streams in one round trip. What failed may be recorded again."""
        members: dict[str, list[str]] = {}
        for one in opened:
            members.setdefault(one.uid, []).extend((repr(one.opened_ms), one.member))
        # Redis forgets a user's streams after two hours, unless a process records one of them again.
        commands: list[tuple[str, Command]] = [
            *((one.uid, ("ZREM", keys.open_streams(one.uid), one.member)) for one in closed),
            *((uid, ("ZADD", keys.open_streams(uid), *added)) for uid, added in members.items()),
            *((uid, ("EXPIRE", keys.open_streams(uid), 7200)) for uid in members),
            *((uid, ("ZCARD", keys.open_streams(uid))) for uid in members),
        ]
        replies = await self._derived.execute_each(*(command for _, command in commands)) if commands else []
        failed = {uid for (uid, _), reply in zip(commands, replies, strict=True) if isinstance(reply, ApiError)}
        counts = dict(zip(members, replies[len(replies) - len(members) :], strict=True))
        return RecordedStreams({uid: count for uid, count in counts.items() if uid not in failed}, failed)

    async def list_streams(self, uid: str, now_ms: int) -> list[OpenStream]:
        """Return the streams of a user in living processes, the oldest first. Forget those of dead processes.

        If the server with the leases does not answer, all processes count as alive.
        """
        key = keys.open_streams(uid)
        rows, alive = await self._derived.execute_each(
            ("ZRANGE", key, 0, -1, "WITHSCORES"), ("ZRANGEBYSCORE", keys.PROCESSES, now_ms, "+inf")
        )
        if isinstance(rows, ApiError):
            raise rows
        found = []
        for member, score in zip(rows[::2], rows[1::2], strict=True):
            connection, process, scopes = member.decode().split(" ")
            found.append(OpenStream(uid, connection, process, float(score), scopes))
        if isinstance(alive, ApiError):
            return found
        processes = {name.decode() for name in alive}
        dead = [one for one in found if one.process not in processes]
        if dead:
            await self._derived.execute(("ZREM", key, *(one.member for one in dead)))
        return [one for one in found if one.process in processes]

    async def renew_lease(self, process: str, now_ms: int) -> bool:
        """Let a process count as alive for :data:`LEASE_MS`. Forget the processes that died.

        Returns whether the process counted as alive until now. If not, others may have forgotten its streams.
        """
        ends, *_ = await self._derived.execute(
            ("ZSCORE", keys.PROCESSES, process),
            ("ZADD", keys.PROCESSES, now_ms + LEASE_MS, process),
            ("ZREMRANGEBYSCORE", keys.PROCESSES, "-inf", f"({now_ms - LEASE_MS}"),
        )
        return ends is not None and float(ends) >= now_ms

    async def end_lease(self, process: str) -> None:
        """Let a process count as dead at once, because it stops."""
        await self._derived.execute(("ZREM", keys.PROCESSES, process))

    async def send_command(self, uid: str, command: dict[str, object], idempotency_key: IdempotencyKey) -> None:
        """Send a command for a stream through the log: see `StreamCommand` in `events/entry.py`."""
        body = b'{"wire":%b}' % msgspec.json.encode({"uid": uid, **command})
        await self._scripts.write("stream_command", idempotency_key, body=body)

    async def end_by_operator(
        self, admin: str, uid: str, connection: str, code: str, idempotency_key: IdempotencyKey
    ) -> None:
        """Close a stream of any user through the log, and record in the audit log that ``admin`` did it."""
        body = b'{"wire":%b}' % msgspec.json.encode(
            {"uid": uid, "connection": connection, "action": "close", "code": code}
        )
        await self._scripts.write("stream_end", idempotency_key, admin=admin, uid=uid, connection=connection, body=body)

    async def living_processes(self, now_ms: int) -> set[str]:
        """Return the ids of the processes whose lease holds."""
        (alive,) = await self._derived.execute(("ZRANGEBYSCORE", keys.PROCESSES, now_ms, "+inf"))
        return {name.decode() for name in alive}

    async def ask(self, question: StreamQuestion | CensusQuestion) -> None:
        """Ask the other processes about streams. :meth:`read_answers` returns what they say."""
        await self._redis.execute(("PUBLISH", ASK_CHANNEL, ASK_PREFIX + msgspec.json.encode(question)))

    async def answer(self, question: StreamQuestion | CensusQuestion, described: Sequence[bytes]) -> None:
        """Answer a question with the JSON of each stream, or of all streams together."""
        key = keys.stream_answers(question.answers)
        await self._derived.execute(("RPUSH", key, *described), ("EXPIRE", key, 10))

    async def read_answers(self, question: StreamQuestion | CensusQuestion) -> list[bytes]:
        """Return what has come so far in answer to :meth:`ask`."""
        found: list[bytes]
        (found,) = await self._derived.execute(("LRANGE", keys.stream_answers(question.answers), 0, -1))
        return found


ASK_PREFIX = b"ask "
"""Beginning of a question on the bus. Entries of the log begin with a digit."""


def parse_question(message: bytes) -> StreamQuestion | CensusQuestion | None:
    """Return the question in a message of the bus, or None if the message has another form."""
    body = message.removeprefix(ASK_PREFIX)
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(body, type=StreamQuestion)
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(body, type=CensusQuestion)
    return None
