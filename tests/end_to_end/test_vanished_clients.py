"""Clients that vanish in every possible way: each is removed in time and costs no other client anything."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import cache

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.process_metrics import ProcessMetrics
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.extended, pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="needs Linux' TCP")]

FLAGS = (
    "--heartbeat-seconds", "0.5", "--write-timeout-seconds", "2", "--limits", "off",
    "--client-buffer-bytes", "16384",
)  # fmt: skip

PATIENT_SECONDS = 2 * PATIENCE
"""The longest wait until vanished clients are dropped. An idle machine needs seconds."""

LONG = "many words " * 25

POSTS = 100
"""About 100 KB for each reader: more than the buffers of the server and of both kernels."""

OF_A_KIND = 20

KEPT = 3
"""Connections that the tests keep or have just closed: far fewer than the clients of a kind."""

SMALL_BYTES = 4096
"""A small receive buffer, which fills soon."""

GROWTH_BYTES = 24 * 2**20
"""Allowed growth of a process by a second thousand clients, since an allocator does not return memory at once."""


class Scene:
    """A server with a log, its author, and clients that vanish."""

    def __init__(self, server: Server, api: Api, workers: int) -> None:
        self.server = server
        self.api = api
        self.workers = workers
        self.token = mint(api.admin)
        self.uid = ""
        self.start = ""

    async def metrics(self) -> ProcessMetrics:
        return await ProcessMetrics.of(self.server, self.workers)

    async def post(self, count: int) -> list[tuple[str, str]]:
        """Post large texts. Return what every reader must receive."""
        return [("post", (await self.api.post(self.uid, f"{n} {LONG}"[:280]))["id"]) for n in range(count)]

    async def open(self, path: str, *, small: bool = False) -> RawClient:
        client = await RawClient.connect(self.server.address, receive_bytes=SMALL_BYTES if small else 0)
        await client.ask(path, self.token)
        return client

    async def live(self, *, small: bool = False) -> RawClient:
        client = await self.open(f"/v1/stream?follow={self.uid}", small=small)
        await client.read_until(b'"hello"')
        return client

    async def replaying(self) -> RawClient:
        """Open a replay from the beginning, and read only its `hello`."""
        client = await self.open(f"/v1/stream?follow={self.uid}&since={self.start}", small=True)
        await client.read_until(b'"hello"')
        return client

    async def polling(self) -> RawClient:
        return await self.open("/v1/events?track=unheard&wait=60")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], Server]]:
    """Return what starts a server with so many workers, once. Each test leaves it as it was."""
    with ExitStack() as stack:

        @cache
        def start(workers: int) -> Server:
            flags = (*FLAGS, "--workers", str(workers))
            return stack.enter_context(Server(tmp_path_factory.mktemp("server"), *flags))

        yield start


@pytest.fixture
async def scene(servers: Callable[[int], Server], workers: int) -> AsyncIterator[Scene]:
    server = servers(workers)
    async with Api(server) as api:
        made = Scene(server, api, workers)
        made.start, made.uid = await api.head(), await api.user()
        await asyncio.gather(*(made.post(POSTS // 10) for _ in range(10)))
        yield made


async def vanished(client: Awaitable[RawClient]) -> RawClient:
    found = await client
    found.vanish()
    return found


async def dripping(client: Awaitable[RawClient]) -> RawClient:
    """The client reads one byte a second, so it would need days."""
    found = await client
    found.drip(1.0)
    return found


KINDS: dict[str, Callable[[Scene], Awaitable[RawClient]]] = {
    "half_open_live": lambda scene: vanished(scene.live()),
    "half_open_replaying": lambda scene: vanished(scene.replaying()),
    "half_open_polling": Scene.polling,
    "never_reading_live": lambda scene: scene.live(small=True),
    "never_reading_replaying": Scene.replaying,
    "one_byte_a_second": lambda scene: dripping(scene.live(small=True)),
    "reset_live": Scene.live,
    "reset_polling": Scene.polling,
    "half_closed": Scene.live,
}


THEN: dict[str, Callable[[RawClient], object]] = {
    "half_open_polling": RawClient.vanish,  # while the poll waits and the server writes nothing
    "reset_live": RawClient.reset,
    "reset_polling": RawClient.reset,
    "half_closed": lambda client: client.socket.shutdown(socket.SHUT_WR),
}
"""The actions of kinds that vanish after they were counted. The other kinds misbehave from the beginning."""


@asynccontextmanager
async def neighbours(scene: Scene) -> AsyncIterator[list[Consumer]]:
    """Open streams that read everything, in both framings."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                await scene.api.stream({"follow": scene.uid}, framing=("sse", "ndjson")[n % 2])
            )
            for n in range(2 * scene.workers)
        ]


async def settled(scene: Scene, like: ProcessMetrics) -> None:
    """Wait until streams, tasks and descriptors are as before, except for a few kept connections."""

    async def so() -> bool:
        now = await scene.metrics()
        return now.streams == like.streams and max(now.tasks - like.tasks, now.descriptors - like.descriptors) <= KEPT

    try:
        await eventually(so, seconds=PATIENT_SECONDS)
    except AssertionError:
        raise AssertionError(f"{await scene.metrics()} is not {like}") from None


async def vanish(scene: Scene, stack: AsyncExitStack, *kinds: str, of_a_kind: int) -> None:
    """Let clients of each kind vanish while users post. Check that the others receive all posts."""
    async with neighbours(scene) as reading:
        before = await scene.metrics()
        assert before.streams == len(reading)
        clients = {}
        for kind in kinds:
            clients[kind] = [await stack.enter_async_context(await KINDS[kind](scene)) for _ in range(of_a_kind)]
        # The server may have dropped some by now, so not all are counted at the same time.
        await eventually(lambda: counted_in(scene, before.streams + of_a_kind // 2), what="streams to be counted")
        for kind in kinds:
            for client in clients[kind] if kind in THEN else []:
                THEN[kind](client)
        told = await scene.post(POSTS)
        for one in reading:
            await one.until(lambda c: len(c.events) >= len(told))
            assert one.received == told
            assert {m["kind"] for m in one.messages} <= {"hello", "heartbeat", "post"}
        await settled(scene, before)


async def counted_in(scene: Scene, many: int) -> bool:
    return (await scene.metrics()).streams >= many


@pytest.mark.parametrize("workers", [2])
async def test_vanished_clients_of_all_kinds_are_dropped_by_two_workers(scene: Scene) -> None:
    """The same holds for all kinds together."""
    async with AsyncExitStack() as stack:
        await vanish(scene, stack, *KINDS, of_a_kind=OF_A_KIND // 2)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("workers", [1])
async def test_a_thousand_vanished_clients_leave_no_memory_behind(scene: Scene) -> None:
    """A thousand clients of all kinds vanish twice. The second thousand fits into the memory of the first one."""
    of_a_kind = 1000 // len(KINDS) + 1
    grown = []
    for _ in range(2):
        async with AsyncExitStack() as stack:
            await vanish(scene, stack, *KINDS, of_a_kind=of_a_kind)
        grown.append((await scene.metrics()).memory)
    assert grown[1] - grown[0] < GROWTH_BYTES, grown
