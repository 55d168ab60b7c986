"""Random histories of a log that loses its end, compared with what clients have that apply the gaps."""

import asyncio
import random
from dataclasses import replace
from functools import partial

import pytest

from stream_server.events.position import LOG_START
from tests.redis_process import RedisProcess
from tests.stream_server.feed.node import LIMITS, LogWriter, Node
from tests.stream_server.feed.returning_client import ReturningClient
from tests.tiers import quick
from tests.waiting import eventually

STEPS = 40
RING_BYTES = (1 << 20, 3000)
"""One worker remembers everything, the other a handful of entries: who is behind reads the log there."""

HOUR_MS = 3_600_000


class RandomHistory:
    """Two nodes on one Redis, and clients that are live, blocked and away, at random."""

    def __init__(self, server: RedisProcess, seed: int) -> None:
        self.chance = random.Random(seed)
        self.pen = LogWriter(server)
        self.nodes = [Node(server.url, 0.05, replace(LIMITS, ring_bytes=size)) for size in RING_BYTES]
        self.clients = [ReturningClient() for _ in range(6)]
        self.losses = 0
        self.backwards = 0

    async def open(self) -> None:
        for node in self.nodes:
            await node.open()
        for client in self.clients:
            await client.connect(self.chance.choice(self.nodes))

    async def close(self) -> None:
        for client in self.clients:
            client.disconnect()
        for node in self.nodes:
            await node.close()
        self.pen.close()

    async def step(self) -> None:
        """Do one random thing, perhaps before the nodes have noticed the last one."""
        chance, client = self.chance, self.chance.choice(self.clients)
        what = chance.choices(
            ("write", "lose", "clock", "cut", "disconnect", "connect", "block", "unblock", "settle"),
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
        elif what == "connect" and not client.is_connected:
            await client.connect(chance.choice(self.nodes))
        elif what == "settle":
            await self.settle()
        elif what in ("disconnect", "block", "unblock"):
            getattr(client, what)()
        for _ in range(chance.randint(0, 5)):
            await asyncio.sleep(0)  # a random number of iterations between two moves

    async def settle(self) -> None:
        """Wait until every node has exactly what is on the log."""
        for node in self.nodes:
            await eventually(partial(self._same, node), what="a worker to be where the log is")

    def _same(self, node: Node) -> bool:
        positions, received = self.pen.positions(), node.received()
        head = positions[-1] if positions else LOG_START
        return node.feed.is_ready and received == positions[len(positions) - len(received) :] and node.hub.head == head

    async def end(self) -> None:
        """Connect and unblock all clients, and wait until they have all of the log."""
        self.pen.write()
        for client in self.clients:
            client.unblock()
            if not client.is_connected:
                await client.connect(self.chance.choice(self.nodes))
        await self.settle()
        last = self.pen.write()
        for client in self.clients:
            await client.expect_cursor(last)


async def _play(server: RedisProcess, seed: int) -> RandomHistory:
    """Play a history to its end, and compare the posts of each client with the log."""
    history = RandomHistory(server, seed)
    await history.open()
    try:
        for _ in range(STEPS):
            await history.step()
        await history.end()
        posts = history.pen.posts()
        for client in history.clients:
            assert client.kept == posts, f"seed {seed}: {client.name} has not what is on the log"
            assert set(client.gaps) <= {"rolled_back", "trimmed"}  # a page of the log knows numbers only, and counts
    finally:
        await history.close()
    return history


@pytest.mark.timeout(900)  # a hundred histories take more than a second each on a busy machine
async def test_a_client_that_applies_the_gaps_has_the_log_in_the_end(redis_server: RedisProcess, *, full: bool) -> None:
    losses = backwards = ghosts = 0
    for seed in range(100 if full else 2 if quick() else 4):
        client = redis_server.client()
        client.flushall()
        client.close()
        played = await _play(redis_server, seed)
        losses += played.losses
        backwards += played.backwards
        ghosts += sum(one.ghosts for one in played.clients)
    assert losses >= 4
    assert backwards >= 2
    assert ghosts >= 4
