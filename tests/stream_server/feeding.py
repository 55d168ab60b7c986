"""A feed with its hub on a real Redis, a hand that writes that Redis' log, and a way to take the log's end away."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from filters.registry import Registry
from filters.rules.rule import Rule
from stream_server.events.position import LOG_START, Position
from stream_server.feed.feed import Feed
from stream_server.feed.link_health import LinkHealth
from stream_server.feed.log_reader import LogReader
from stream_server.hub.hub import Hub
from stream_server.hub.limits import HubLimits
from stream_server.store import keys
from stream_server.store.redis.positions import make_position
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE, eventually

LIMITS = HubLimits(
    buffer_bytes=100_000, heartbeat_seconds=3600.0, write_timeout_seconds=30.0,
    goodbye_seconds=1.0, ring_bytes=1 << 20, ring_seconds=36_000.0,
)  # fmt: skip


def read_rule(text: str) -> Rule:
    """The rule that a text says."""
    return Rule.parse(text, Registry.from_entry_points())


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


class Pen:
    """Writes the log as the scripts do, by a clock that is ``ahead_ms`` of the real one, with or without telling."""

    def __init__(self, server: RedisProcess) -> None:
        self.client: Any = server.client()
        self.ahead_ms = 0
        self.texts = 0
        self._used: set[str] = set()

    def close(self) -> None:
        """Put it down."""
        self.client.close()

    def write(self, body: bytes | None = None, *, kind: str = "post", published: bool = True) -> Position:
        """Put an entry on the log, a post of its own words if none is given, and publish it unless that is lost."""
        position, body = self.next(), self.post() if body is None else body
        fields: dict[Any, Any] = {"n": position.n, "k": kind, "a": "public", "e": body}
        with self.client.pipeline() as step:
            step.xadd(keys.LOG, fields, id=position.entry_id)
            step.hset(keys.META, mapping={"ms": position.ms, "seq": position.seq, "n": position.n})
            if published:
                step.publish(f"events:{kind}", self.message(position, body, kind))
            step.execute()
        return position

    def next(self) -> Position:
        """Where the next entry stands; a place that was lost is not taken again, since no Redis starts in no time."""
        ms, seq, n = (int(one or 0) for one in self.client.hmget(keys.META, "ms", "seq", "n"))
        now = now_ms() + self.ahead_ms
        place = Position(now, 0, n + 1) if now > ms else Position(ms, seq + 1, n + 1)
        while place.entry_id in self._used:
            place = place._replace(seq=place.seq + 1)
        self._used.add(place.entry_id)
        return place

    def post(self) -> bytes:
        """A post that no other is like; it is there, so replays show it."""
        self.texts += 1
        self.client.hset(keys.key_for("status", str(self.texts)), "id", self.texts)
        status = {"id": str(self.texts), "uid": "7", "message": f"text {self.texts}"}
        return msgspec.json.encode({"wire": {"status": status}})

    def message(self, position: Position, body: bytes, kind: str = "post") -> bytes:
        """What is published of an entry."""
        return f"{position.entry_id} {position.n} {kind} public ".encode() + body

    def publish(self, position: Position, body: bytes) -> int:
        """Say it on the channel, whatever is on the log; answers how many heard it."""
        return int(self.client.publish("events:post", self.message(position, body)))

    def places(self) -> list[Position]:
        """Where the entries on the log stand, in order."""
        return [
            make_position(entry_id, fields[b"n"]) for entry_id, fields in self.client.xrange(keys.LOG) if b"n" in fields
        ]

    def bodies(self) -> list[bytes]:
        """What the entries on the log say."""
        return [fields[b"e"] for _, fields in self.client.xrange(keys.LOG)]

    def lose(self, count: int, *, links: bool = True) -> list[Position]:
        """Take the last entries away, and all that Redis knew of them, as a power cut does; the links end, too.

        Gives what was taken.
        """
        places = self.places()
        kept, lost = places[: len(places) - count], places[len(places) - count :]
        last = kept[-1] if kept else LOG_START
        with self.client.pipeline() as step:
            if kept:
                step.xdel(keys.LOG, *(place.entry_id for place in lost))
                step.execute_command("XSETID", keys.LOG, last.entry_id)
                step.hset(keys.META, mapping={"ms": last.ms, "seq": last.seq, "n": last.n})
            else:
                step.delete(keys.LOG, keys.META)
            step.zremrangebyscore(keys.ROLLBACKS, f"({last.status_number}", "+inf")
            step.execute()
        if links:
            self.client.client_kill_filter(_type="pubsub")
        return lost

    def told(self) -> list[tuple[str, str]]:
        """From where to where the log says that it lost something, in order."""
        rows = self.client.xrange(keys.LOG)
        wires = [msgspec.json.decode(row[b"e"])["wire"] for _, row in rows if row.get(b"k") == b"rollback"]
        return [(wire["from"], wire["to"]) for wire in wires]


class Node:
    """One worker's feed and hub, without HTTP."""

    def __init__(self, url: str, canary_seconds: float = 0.1, limits: HubLimits = LIMITS, **store: Any) -> None:
        self.store = Store(
            url,
            verify_feed=lambda: self.feed.detector.recheck(),  # noqa: PLW0108 - the feed is made later
            **{"timeout_seconds": PATIENCE, **store},
        )
        self._canary_seconds = canary_seconds
        self._limits = limits
        self.jumps: list[tuple[Position, str, int | None]] = []

    async def open(self) -> None:
        """Start to listen."""
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
        )  # fmt: skip
        self.task = asyncio.create_task(self.feed.run())
        await self.feed.wait_ready()

    async def close(self) -> None:
        """End it."""
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

    def heard(self) -> list[Position]:
        """The entries that the hub remembers, in order."""
        return list(self.hub.ring.positions_newest_first())[::-1]

    async def hears(self, places: Sequence[Position]) -> None:
        """Wait until these entries have arrived, once each and in order, and no others."""
        last = places[-1]
        await eventually(lambda: self.hub.head == last, seconds=30, what=f"{last.cursor} to be heard")
        assert self.heard() == list(places)
