"""Random faults. Each fault waits for a proof that it happened before it is counted.

Two lanes cause faults at the same time: one at Redis and its links, the other at the servers. A server is started only
while Redis works, because a server that does not find Redis gives up.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.server import Server
from tests.processes import alive, children
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE, eventually

Fault = Callable[[], Awaitable[None]]


class Front:
    """A server and its own link to Redis. ``held`` is true while a fault is under way at either."""

    def __init__(self, server: Server, proxy: Proxy) -> None:
        self.server = server
        self.proxy = proxy
        self.held = asyncio.Lock()


REFUSALS = 4
"""Times that a link refuses connections until a writer gives up a write."""


class Effects(NamedTuple):
    """Effects on writers and clients. Some faults last until their effect shows.

    ``writes_given_up`` returns the number of writes that were given up, ``streams_from`` the open streams of a server.
    """

    writes_given_up: Callable[[], int]
    streams_from: Callable[[str], int]


class Faults:
    """Causes the faults of one world.

    Attributes:
        fired: Number of faults that were seen to happen, by name.
        rest: Shortest and longest pause in seconds between two faults of a lane.
        patience: How many times as long as usual an effect may take to show.
    """

    rest = (0.1, 0.8)
    patience = 1.0

    def __init__(
        self, redis: RedisProcess, fronts: Sequence[Front], several: Front, chance: random.Random, seen: Effects
    ) -> None:
        self.fired: Counter[str] = Counter()
        self._seen = seen
        self._redis = redis
        self.fronts = fronts
        self._several = several
        self._chance = chance
        self._whole = asyncio.Lock()
        self._of_redis: list[Fault] = [
            self.redis_killed, self.redis_stopped, self.redis_paused, self.subscribers_killed,
            self.link_cut, self.link_swallowed, self.link_delayed, self.link_refused,
        ]  # fmt: skip
        self._of_servers: list[Fault] = [self.server_killed, self.server_stopped, self.worker_killed]

    async def run(self, seconds: float) -> None:
        """Cause faults for ``seconds``, and until each has happened once. At the end all servers and links work."""
        end = time.monotonic() + seconds
        async with asyncio.TaskGroup() as lanes:
            lanes.create_task(self._lane(self._of_redis, end))
            lanes.create_task(self._lane(self._of_servers, end))

    @property
    def missing(self) -> list[str]:
        return [name(fault) for fault in (*self._of_redis, *self._of_servers) if not self.fired[name(fault)]]

    async def _lane(self, faults: Sequence[Fault], end: float) -> None:
        left: list[Fault] = []
        while time.monotonic() < end or left or not all(self.fired[name(fault)] for fault in faults):
            left = left or self._chance.sample(faults, len(faults))
            fault = left.pop()
            await fault()
            self.fired[name(fault)] += 1
            if time.monotonic() > end:
                left = [one for one in left if not self.fired[name(one)]]
            await self._pause(*self.rest)

    async def _pause(self, least: float, most: float) -> None:
        await asyncio.sleep(self._chance.uniform(least, most))  # the length of a fault or of a pause

    async def _until(self, check: Callable[[], object], *, seconds: float = PATIENCE, what: str = "") -> None:
        await eventually(check, seconds=seconds * self.patience, what=what)

    # Redis and the links to it.

    async def redis_killed(self) -> None:
        """Kill Redis and start it again on its data."""
        async with self._whole:
            process = self._redis.process
            assert process is not None
            self._redis.kill()
            await self._pause(0, 1)
            await asyncio.to_thread(self._redis.start, 10 * self.patience)
            assert process.returncode == -signal.SIGKILL

    async def redis_stopped(self) -> None:
        """Stop Redis by SIGSTOP, sometimes for longer than a write waits."""
        async with self._whole:
            assert self._redis.process is not None
            state = Path(f"/proc/{self._redis.process.pid}/stat")
            self._redis.pause()
            try:
                await self._until(
                    lambda: state.read_text().rpartition(")")[2].split()[0] == "T", what="a stopped Redis"
                )
                await self._pause(0.2, 3)
            finally:
                self._redis.resume()

    async def redis_paused(self) -> None:
        """Make all commands wait by CLIENT PAUSE."""
        async with self._whole:
            milliseconds = self._chance.randint(200, 1500)
            began = time.monotonic()
            with self._redis.client() as client:
                client.client_pause(milliseconds)
                await asyncio.to_thread(client.ping)
            assert time.monotonic() - began > milliseconds / 2000

    async def subscribers_killed(self) -> None:
        """Close all subscribed connections, as Redis does when an output buffer is full."""
        with self._redis.client() as client:

            def killed() -> Any:
                return client.client_kill_filter(_type="pubsub")

            await self._until(killed, what="a subscriber to kill")

    async def link_cut(self) -> None:
        async with self._link() as proxy:
            before = proxy.cuts
            await proxy.cut()
            assert proxy.cuts > before

    async def link_swallowed(self) -> None:
        """Swallow all answers without an error, and close the connections after a while."""
        async with self._link() as proxy:
            before = proxy.swallowed_bytes
            proxy.swallow()
            await self._until(lambda: proxy.swallowed_bytes > before, what="swallowed bytes")
            await self._pause(0.5, 3)
            proxy.swallow(False)

    async def link_delayed(self) -> None:
        async with self._link() as proxy:
            before = proxy.delayed_bytes
            proxy.delay(self._chance.uniform(0.05, 0.3))
            await self._until(lambda: proxy.delayed_bytes > before, what="delayed bytes")
            await self._pause(0.3, 1.5)
            proxy.delay(0)

    async def link_refused(self) -> None:
        """Close the connections and refuse new ones for a while, the first time until a writer gives up a write.

        If the other server was killed just before, each writer may have a write of unknown outcome, which none gives
        up. Only a working link ends that, so the fault begins again.
        """
        for _ in range(REFUSALS):
            async with self._link() as proxy, self._whole:
                refused = partial(_has_refused_since, proxy, proxy.refused)
                proxy.refuse()
                await proxy.cut()
                await self._until(refused, what="a refused connection")
                await self._pause(0.2, 1.5)
                with suppress(AssertionError):
                    await eventually(self._seen.writes_given_up, seconds=8, what="a writer to give up")
                proxy.refuse(False)
            if self._seen.writes_given_up():
                return
            await self._pause(1, 2)
        raise AssertionError(f"no writer gave up a write in {REFUSALS} times")

    @asynccontextmanager
    async def _link(self) -> AsyncIterator[Proxy]:
        """Yield the link of a server that no other fault touches meanwhile."""
        front = self._chance.choice([front for front in self.fronts if not front.held.locked()] or self.fronts)
        async with front.held:
            await self._until(lambda: front.proxy.open, what="a server that uses its link")
            yield front.proxy

    # The servers.

    async def server_killed(self) -> None:
        """Kill a server, which ends its workers too."""
        front = self._chance.choice(self.fronts)
        async with front.held:
            process = front.server.process
            assert process is not None
            workers = children(process.pid)
            front.server.kill()
            assert process.returncode == -signal.SIGKILL
            await self._until(lambda: not any(map(alive, workers)), what="its workers to end")
            await self._start(front.server)

    async def server_stopped(self) -> None:
        """Stop a server that has open streams, to which it must send a `goodbye`."""
        front = self._chance.choice(self.fronts)
        async with front.held:
            address = front.server.address
            await self._until(lambda: self._seen.streams_from(address), what="a stream to end")
            await asyncio.to_thread(front.server.stop, 20 * self.patience)
            await self._start(front.server)

    async def worker_killed(self) -> None:
        """Kill one of two workers and wait for its replacement."""
        server = self._several.server
        assert server.process is not None
        supervisor = server.process.pid
        before = set(children(supervisor))
        killed = self._chance.choice(sorted(before))
        os.kill(killed, signal.SIGKILL)
        await self._until(lambda: not alive(killed), what="the worker to end")
        await self._until(
            lambda: set(children(supervisor)) - before and killed not in children(supervisor),
            what="another worker",
        )  # fmt: skip

    async def _start(self, server: Server) -> None:
        """Start a server. If it gives up, because Redis did not answer in time, start it once more."""
        await self._pause(0, 1)
        async with self._whole:
            with suppress(TimeoutError):
                await asyncio.to_thread(server.start)
                return
            await asyncio.to_thread(server.start)


def _has_refused_since(proxy: Proxy, before: int) -> bool:
    return proxy.refused > before


def name(fault: Fault) -> str:
    return fault.__name__.replace("_", " ")
