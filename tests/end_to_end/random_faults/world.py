"""A Redis, two servers with their own links to it, and writers and clients of all kinds."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.api import Api
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.random_faults.clients import Client, Leaving, Listener, Poller, Slow, Sse
from tests.end_to_end.random_faults.faults import Effects, Faults, Front
from tests.end_to_end.random_faults.ledger import KINDS, Ledger, read_log
from tests.end_to_end.random_faults.oracle import History, Record
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.random_faults.writer import Writer
from tests.end_to_end.server import Server
from tests.redis_process import RedisProcess, private_redis
from tests.waiting import eventually

FLAGS = (
    "--canary-seconds", "0.3", "--heartbeat-seconds", "0.3", "--redis-timeout-seconds", "1", "--limits", "off",
    "--client-buffer-bytes", "8192", "--retry-spread-seconds", "0.5",
    "--write-timeout-seconds", "15",
)  # fmt: skip
"""Short intervals, and small buffers, so that slow clients get warnings. The last release has these options too."""

HOOKS = ("--webhook-networks", "127.0.0.1", "--webhook-timeout-seconds", "1")
"""Webhooks may go to this machine."""

WRITERS = 8
ALL = ",".join(KINDS)
HEALED_SECONDS = 60.0
"""The most time for all clients to reach the head after the last fault. They need a second or two."""


class People(NamedTuple):
    """Ids of the writers, and of a reader who follows some of them and writes nothing."""

    writers: list[str]
    reader: str
    followed: list[str]


class World:
    """Servers, writers and clients of one test, and the oracle's verdict."""

    def __init__(
        self, redis: RedisProcess, servers: Sequence[Server], people: People, lives: asyncio.TaskGroup, seed: int
    ) -> None:
        self.redis = redis
        self.chance = random.Random(seed)
        self.site = Site(servers)
        self.ledger = Ledger()
        self.people = people
        self.clients: list[Client] = []
        self.writers = [Writer(self.site, self.ledger, people.writers, at, seed + at) for at in range(WRITERS)]
        self._lives = lives
        self._tasks: list[asyncio.Task[None]] = []
        self._writing: list[asyncio.Task[None]] = []

    @property
    def warned(self) -> int:
        """Number of warnings that slow clients received."""
        return sum(client.warned for client in self.clients if isinstance(client, Slow))

    @property
    def effects(self) -> Effects:
        def streams_from(address: str) -> int:
            return sum(client.streams_from == address and not isinstance(client, Slow) for client in self.clients)

        return Effects(lambda: self.ledger.count("given up"), streams_from)

    def add(self, kind: type[Client], since: str = "", *, site: Site | None = None, **params: str) -> Client:
        """Add a client, which stays until the end. With ``site`` it uses only the servers of this site."""
        asked = f"{kind.__name__} {params} {len(self.clients)}"
        record = Record(asked, params, self.people.reader, self.people.followed, since)
        client = kind(site or self.site, record, self.chance.randrange(1 << 30))
        self.clients.append(client)
        self.start(client)
        return client

    def start(self, client: Client) -> "asyncio.Task[None]":
        """Let a client run until the end, or until its task is cancelled. It is judged by who started it."""
        task = self._lives.create_task(client.run(), name=client.record.name)
        self._tasks.append(task)
        return task

    async def begun(self) -> None:
        await self._until(lambda: [client for client in self.clients if not client.cursor], "begin")

    def write(self) -> None:
        self._writing = [self._lives.create_task(writer.run(), name="writer") for writer in self.writers]

    async def finish(self, *who: Client) -> None:
        """Let the writers finish, and wait until every client (or each of ``who``) has reached the head."""
        for writer in self.writers:
            writer.stop()
        await asyncio.wait_for(asyncio.gather(*self._writing), HEALED_SECONDS)
        with self.redis.client() as client:
            head = read_log(client).last
        await self._until(lambda: [one for one in who or self.clients if one.reached < head], f"reach {head}")

    def complaints(self, *, rolled_back: bool = False) -> list[str]:
        """Return what the oracle finds wrong in the log and in every client's messages."""
        with self.redis.client() as client:
            log = read_log(client)
        history = self.history = History(log, self.ledger, rolled_back=rolled_back)
        said = self.ledger.complaints(log.entries)
        return said + [wrong for client in self.clients for wrong in client.complaints(history)]

    def end(self) -> None:
        for task in [*self._tasks, *self._writing]:
            task.cancel()

    async def _until(self, waiting: Callable[[], list[Client]], what: str) -> None:
        try:
            await eventually(lambda: not waiting(), seconds=HEALED_SECONDS, what=what)
        except AssertionError as error:
            told = [(one.record.name, one.cursor, one.visits, one.record.told[-2:]) for one in waiting()]
            raise AssertionError(f"{error}: {told}") from None


@asynccontextmanager
async def world(folder: Path, seed: int, *flags: str) -> AsyncIterator[tuple[World, Faults]]:
    """Start two servers with their own links, one of them with two workers. The first server also gets ``flags``."""
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(private_redis())
        fronts = []
        for name, more in (("one", flags), ("two", ("--workers", "2"))):
            proxy = await stack.enter_async_context(Proxy(redis.socket))
            server = Server(folder / name, "--redis", proxy.url, *FLAGS, *HOOKS, *more)
            fronts.append(Front(server, proxy))
            await asyncio.to_thread(server.start)
            stack.callback(kill_left, server)
        made = await stack.enter_async_context(populated(redis, [front.server for front in fronts], seed))
        yield made, Faults(redis, fronts, fronts[-1], random.Random(seed), made.effects)


@asynccontextmanager
async def populated(redis: RedisProcess, servers: Sequence[Server], seed: int) -> AsyncIterator[World]:
    """Create users at these servers. A failed writer or client ends the test at once."""
    people = await populate(servers[0])
    async with asyncio.TaskGroup() as lives:
        made = World(redis, servers, people, lives, seed)
        try:
            yield made
        finally:
            made.end()


def kill_left(server: Server) -> None:
    if server.process is not None and server.process.poll() is None:
        server.kill()


async def populate(server: Server) -> People:
    async with Api(server) as api:
        logins = ["w" + uuid.uuid4().hex[:10] for _ in range(WRITERS + 1)]
        ids = list((await api.users(logins)).values())
        writers, reader = ids[:-1], ids[-1]
        for followed in writers[:2]:
            await api.follow(reader, followed)
        return People(writers, reader, writers[:2])


def add_clients(world: World, kinds: str = ALL) -> None:
    """Add clients of all sorts. Those that want more than posts and deletes ask for ``kinds``."""
    authors = world.people.writers
    world.add(Sse, firehose="true", kinds=kinds)
    world.add(Listener, firehose="true")
    world.add(Slow, firehose="true", kinds=kinds)
    world.add(Slow, firehose="true", kinds=kinds)
    world.add(Leaving, firehose="true", kinds=kinds)
    world.add(Poller, firehose="true", kinds=kinds)
    world.add(Listener, track="storm,night gull")
    world.add(Leaving, track="ferry")
    world.add(Sse, follow=f"{authors[0]},{authors[3]}", kinds=kinds)
    world.add(Leaving, follow="@me", kinds=kinds)
    world.add(Poller, follow="@me", track="harbour")
    world.add(Sse, sample="30", kinds="post,delete,like,unlike")
    world.add(Poller, locations="-123,37,-122,38")
    world.add(Listener, rule="storm -calm OR gull night")
    world.add(Listener, own="true", kinds=kinds)
    world.add(Slow, own="true", kinds=kinds)
