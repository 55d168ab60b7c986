"""Random histories of a log that loses its end, against an oracle: whoever trusts the gaps has the log in the end."""

import asyncio
import json
import random
from dataclasses import replace
from functools import partial

import pytest

from stream_server.events.position import LOG_START
from stream_server.feed.rollback_detector import RollbackDetector
from stream_server.store import keys
from tests.redis_process import RedisProcess
from tests.stream_server.feeding import LIMITS, Node, Pen
from tests.stream_server.returning import Returning
from tests.waiting import eventually

STEPS = 40
RING_BYTES = (1 << 20, 3000)
"""One worker remembers everything, the other a handful of entries: who is behind reads the log there."""

HOUR_MS = 3_600_000


class History:
    """Two workers on one Redis, clients that are live, blocked and away, and a chance that decides."""

    def __init__(self, server: RedisProcess, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pen = Pen(server)
        self.nodes = [Node(server.url, 0.05, replace(LIMITS, ring_bytes=size)) for size in RING_BYTES]
        self.clients = [Returning() for _ in range(6)]
        self.losses = 0
        self.backwards = 0

    async def open(self) -> None:
        """Everybody is there."""
        for node in self.nodes:
            await node.open()
        for client in self.clients:
            await client.come(self.chance.choice(self.nodes))

    async def close(self) -> None:
        """Nobody is."""
        for client in self.clients:
            client.leave()
        for node in self.nodes:
            await node.close()
        self.pen.close()

    async def step(self) -> None:
        """Something happens, perhaps before anybody has noticed what happened before."""
        chance, client = self.chance, self.chance.choice(self.clients)
        what = chance.choices(
            ("write", "lose", "clock", "cut", "leave", "come", "block", "unblock", "settle"),
            (8, 3, 2, 1, 2, 3, 1, 2, 2),
        )[0]
        if what == "write":
            for _ in range(chance.randint(1, 6)):
                self.pen.write(published=chance.random() < 0.8)
        elif what == "lose":
            self.losses += len(self.pen.lose(chance.randint(1, 8))) > 0
        elif what == "clock":
            self.backwards += self.pen.ahead_ms > 0
            self.pen.ahead_ms = 0 if self.pen.ahead_ms else HOUR_MS
        elif what == "cut":
            self.pen.client.client_kill_filter(_type="pubsub")
        elif what == "come" and not client.there:
            await client.come(chance.choice(self.nodes))
        elif what == "settle":
            await self.settle()
        elif what in ("leave", "block", "unblock"):
            getattr(client, what)()
        for _ in range(chance.randint(0, 5)):
            await asyncio.sleep(0)

    async def settle(self) -> None:
        """Every worker is where the log is, and has nothing that is not there."""
        for node in self.nodes:
            await eventually(partial(self._same, node), seconds=30, what="a worker to be where the log is")

    def _same(self, node: Node) -> bool:
        places, heard = self.pen.places(), node.heard()
        head = places[-1] if places else LOG_START
        return node.feed.is_ready and heard == places[len(places) - len(heard) :] and node.hub.head == head

    async def end(self) -> None:
        """All who are away come back, all who do not read do, and all that is on the log arrives."""
        self.pen.write()
        for client in self.clients:
            client.unblock()
            if not client.there:
                await client.come(self.chance.choice(self.nodes))
        await self.settle()
        last = self.pen.write()
        for client in self.clients:
            await client.hears(last)

    def posts(self) -> list[tuple[int, str]]:
        """The number and the words of every post that is on the log in the end."""
        rows = self.pen.client.xrange(keys.LOG)
        posts = [(int(row[b"n"]), json.loads(row[b"e"])["wire"]) for _, row in rows if row[b"k"] == b"post"]
        return [(n, wire["status"]["message"]) for n, wire in posts]


async def _played(server: RedisProcess, seed: int) -> History:
    """A history that was played to its end; what each client has been compared."""
    history = History(server, seed)
    await history.open()
    try:
        for _ in range(STEPS):
            await history.step()
        await history.end()
        posts = history.posts()
        for client in history.clients:
            assert client.kept == posts, f"seed {seed}: {client.name} has not what is on the log"
            assert set(client.gaps) <= {"rolled_back", "trimmed"}  # a page of the log knows numbers only, and counts
    finally:
        await history.close()
    return history


async def test_whoever_trusts_the_gaps_has_the_log_in_the_end(redis_server: RedisProcess, *, full: bool) -> None:
    """No post of the log is missed or told twice, no lost one is kept, by whoever was live, away, slow or elsewhere."""
    losses = backwards = ghosts = 0
    for seed in range(100 if full else 4):
        client = redis_server.client()
        client.flushall()
        client.close()
        played = await _played(redis_server, seed)
        losses += played.losses
        backwards += played.backwards
        ghosts += sum(one.ghosts for one in played.clients)
    assert losses >= 4
    assert backwards >= 2
    assert ghosts >= 4


async def test_whoever_goes_by_numbers_alone_misses_posts(
    redis_server: RedisProcess, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with a number that is not above the head taken for a duplicate, the oracle finds fault."""

    async def by_number(detector: RollbackDetector, *, check_all: bool) -> object:
        assert isinstance(check_all, bool)
        return await detector._log.head()

    assert redis_url == redis_server.url
    monkeypatch.setattr(RollbackDetector, "_inspect_log", by_number)
    history = History(redis_server, 0)
    await history.open()
    try:
        for _ in range(6):
            history.pen.write()
        await eventually(lambda: all(node.hub.head.n == 6 for node in history.nodes), what="all to be heard")
        history.pen.lose(4, links=False)
        for _ in range(6):
            history.pen.write()
        await eventually(lambda: all(node.hub.head.n == 8 for node in history.nodes), what="the numbers to be reached")
        last = history.pen.write()
        for client in history.clients:
            await client.hears(last)
        assert all(client.kept != history.posts() for client in history.clients)
        assert all(client.gaps == [] for client in history.clients)
    finally:
        await history.close()
