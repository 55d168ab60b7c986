"""A feed with its hub on a real Redis, and a writer of the log that can also lose its end."""

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from redis.exceptions import WatchError

from filters.registry import Registry
from filters.rules.rule import Rule
from stream_server.events.position import LOG_START, Position
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import LinkHealth
from stream_server.feed.log_reader import LogReader
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.store import keys
from stream_server.store.redis.protocol import make_position
from stream_server.store.redis.stored_form import STORED_FORM
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE, eventually

LIMITS = HubLimits(
    buffer_bytes=100_000, heartbeat_seconds=3600.0, write_timeout_seconds=30.0,
    goodbye_seconds=1.0, ring_bytes=1 << 20, ring_seconds=36_000.0,
)  # fmt: skip


async def read_rule(text: str) -> Rule:
    return Rule.parse(text, Registry.from_entry_points())


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class LogWriter:
    """Writes the log as the scripts do, by a clock that is ``ahead_ms`` ahead, and publishes the entries or not."""

    def __init__(self, server: RedisProcess) -> None:
        self.client: Any = server.client()
        self.ahead_ms = 0
        self.texts = 0
        self._used: set[Position] = set()

    def close(self) -> None:
        self.client.close()

    def write(
        self, body: bytes | None = None, *, kind: str = "post", published: bool = True, position: Position | None = None
    ) -> Position:
        """Append an entry, by default a post with its own text, and publish it unless the message is lost."""
        body = self.new_post() if body is None else body
        while True:
            with self.client.pipeline() as step, suppress(WatchError):  # a server wrote an entry meanwhile
                step.watch(keys.META)
                at = position or self.next_position()
                step.multi()
                step.xadd(keys.LOG, {"n": at.n, "k": kind, "a": "public", "e": body}, id=at.entry_id)
                step.hset(keys.META, mapping={"ms": at.ms, "seq": at.seq, "n": at.n, "form": STORED_FORM})
                if published:
                    step.publish(f"events:{kind}", self.message(at, body, kind))
                step.execute()
                return at

    def next_position(self) -> Position:
        """Return the next position. One that was lost is not used again: no server could tell it from the lost one."""
        ms, seq, n = (int(one or 0) for one in self.client.hmget(keys.META, "ms", "seq", "n"))
        now = now_ms() + self.ahead_ms
        position = Position(now, 0, n + 1) if now > ms else Position(ms, seq + 1, n + 1)
        while position in self._used:
            position = position._replace(seq=position.seq + 1)
        self._used.add(position)
        return position

    def new_post(self) -> bytes:
        """Return the body of a new post and store its status, so that replays show it."""
        self.texts += 1
        self.client.hset(keys.key_for("status", str(self.texts)), "id", self.texts)
        status = {"id": str(self.texts), "uid": "7", "message": f"text {self.texts}"}
        return msgspec.json.encode({"wire": {"status": status}})

    def message(self, position: Position, body: bytes, kind: str = "post") -> bytes:
        """Return the published message of an entry."""
        return f"{position.entry_id} {position.n} {kind} public ".encode() + body

    def publish(self, position: Position, body: bytes) -> int:
        """Publish a message, whatever is on the log. Returns the number of its receivers."""
        return int(self.client.publish("events:post", self.message(position, body)))

    def positions(self) -> list[Position]:
        rows = self.client.xrange(keys.LOG)
        return [make_position(entry_id, fields[b"n"]) for entry_id, fields in rows if b"n" in fields]

    def bodies(self) -> list[bytes]:
        """Return the bodies of all entries on the log."""
        return [fields[b"e"] for _, fields in self.client.xrange(keys.LOG)]

    def posts(self) -> list[tuple[int, str]]:
        """Return number and text of each post on the log."""
        rows = self.client.xrange(keys.LOG)
        posts = [(int(row[b"n"]), msgspec.json.decode(row[b"e"])["wire"]) for _, row in rows if row[b"k"] == b"post"]
        return [(n, wire["status"]["message"]) for n, wire in posts]

    def lose(self, count: int, *, links: bool = True) -> list[Position]:
        """Remove the last entries as a power cut does, and by default cut the subscribers. Returns their positions."""
        positions = self.positions()
        kept, lost = positions[: len(positions) - count], positions[len(positions) - count :]
        last = kept[-1] if kept else LOG_START
        rows = self.client.xrange(keys.LOG)[: len(kept)]
        with self.client.pipeline() as step:
            step.delete(keys.LOG)  # and written again: XDEL leaves the ids of the lost entries used up
            for entry_id, fields in rows:
                step.xadd(keys.LOG, fields, id=entry_id)
            if kept:
                step.hset(keys.META, mapping={"ms": last.ms, "seq": last.seq, "n": last.n, "form": STORED_FORM})
            else:
                step.delete(keys.META)
            step.zremrangebyscore(keys.key_for("rollbacks"), f"({last.status_number}", "+inf")
            step.execute()
        if links:
            self.client.client_kill_filter(_type="pubsub")
        self._used.update(lost)  # servers wrote some of them: entries that record a loss
        return lost

    def recorded_rollbacks(self) -> list[tuple[str, str]]:
        """Return start and end of the rollbacks that the log records."""
        rows = self.client.xrange(keys.LOG)
        wires = [msgspec.json.decode(row[b"e"])["wire"] for _, row in rows if row.get(b"k") == b"rollback"]
        return [(wire["from"], wire["to"]) for wire in wires]


class Node:
    """The feed and the hub of one server process, without HTTP."""

    def __init__(self, url: str, canary_seconds: float = 0.1, limits: HubLimits = LIMITS, **store: Any) -> None:
        self.store = Store(
            url,
            verify_feed=self._recheck,
            **{"timeout_seconds": PATIENCE, **store},
        )
        self._canary_seconds = canary_seconds
        self._limits = limits
        self.jumps: list[tuple[Position, str, int | None]] = []
        self.questions: list[bytes] = []
        self.rechecks = 0

    async def open(self) -> None:
        with self.store.allow_slow_replies(PATIENCE):  # as the server starts
            await self.store.open()
        self.reader = LogReader(self.store.log)
        health = LinkHealth(random.Random(1))
        self.hub = Hub(
            self._limits, self.reader, await self.store.log.head(),
            now_ms=now_ms, lag_ms=health.lag_ms, read_relations=self.store.user_graphs.get_graph, parse_rule=read_rule,
        )  # fmt: skip
        self._note_jumps()
        self.feed = Feed(
            self.store.log, self.store.rollbacks, self.hub, self.store.user_graphs.get_restricted_accounts,
            last_written=lambda: self.store.last_written, link_health=health,
            on_log_readable=self.reader.mark_readable, canary_seconds=self._canary_seconds,
            open_signed=lambda message: message, on_question=self.questions.append,
        )  # fmt: skip
        self.task = asyncio.create_task(self.feed.run())
        await self.feed.wait_ready()

    async def _recheck(self) -> None:
        self.rechecks += 1
        await self.feed.detector.recheck()

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.hub.background_tasks.cancel_all()
        await self.store.close()

    def _note_jumps(self) -> None:
        jump = self.hub.move_head

        def noted(to: Position, reason: str, missed_count: int | None = None) -> None:
            self.jumps.append((to, reason, missed_count))
            jump(to, reason, missed_count)

        self.hub.move_head = noted  # type: ignore[method-assign]  # looks on

    def received(self) -> list[Position]:
        """Return the positions in the ring, in order."""
        return list(self.hub.ring.positions_newest_first())[::-1]

    async def expect_received(self, positions: Sequence[Position]) -> None:
        """Wait until exactly these entries are in the ring, in order."""
        last = positions[-1]
        await eventually(lambda: self.hub.head == last, what=f"{last.cursor} to arrive")
        assert self.received() == list(positions)


def record_checks(node: Node, monkeypatch: pytest.MonkeyPatch) -> list[Position]:
    """Record the position of the hub at each check that asks Redis from now on."""
    checks: list[Position] = []
    look_up = node.store.log.look_up_with_run_id

    async def recorded(position: Position) -> Any:
        found = await look_up(position)
        checks.append(position)
        return found

    monkeypatch.setattr(node.store.log, "look_up_with_run_id", recorded)
    return checks
