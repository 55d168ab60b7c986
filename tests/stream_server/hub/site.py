"""Streams of a hub on real sockets: whoever connects has one at once, without HTTP around it."""

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from stream_server.hub.client import Client, SubscribeRequest
from stream_server.web.streaming.stream import attach_stream
from stream_server.web.streaming.stream_connection import StreamConnection
from stream_server.web.streaming.stream_plan import StreamPlan
from tests.end_to_end.faults.clients import RawClient
from tests.stream_server.hub.world import World
from tests.waiting import eventually

SEND_BUFFER_BYTES = 4096

FILES = Path("/proc/self/fd")
"""What this process has open, on Linux."""

FAR_FUTURE = 1e10
"""When tokens expire here (seconds since 1970): their timers would outlive every test."""


class Door(asyncio.Protocol):
    """A connection until it is a stream: that is as soon as it is there."""

    def __init__(self, site: "Site") -> None:
        self._site = site

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the stream, on the transport taken over."""
        taken = cast("asyncio.Transport", transport)  # uvloop's is not one by name
        taken.set_protocol(self._site.begin(taken))


class Site:
    """A hub behind a port. ``highest`` is the most bytes that anybody had unsent after something was written to them.

    ``asks`` makes what the next one who connects asks for, ``send_buffer_bytes`` is what the kernel takes for it;
    ``transports`` are those of all who came.
    """

    def __init__(self, world: World, asks: Callable[[], SubscribeRequest], send_buffer_bytes: int) -> None:
        self.world = world
        self.asks = asks
        self.highest = 0
        self.clients: list[RawClient] = []
        self.begun = 0
        self.address = ""
        self.send_buffer_bytes = send_buffer_bytes
        self.transports: list[asyncio.Transport] = []

    def begin(self, transport: asyncio.Transport) -> StreamConnection:
        """As the server does after the response's head."""
        connection = StreamConnection(
            transport,
            chunked=True,
            buffer_bytes=self.world.hub.limits.buffer_bytes,
            send_buffer_bytes=self.send_buffer_bytes,
        )
        connection.write = self._measured(transport)  # type: ignore[assignment]  # it is handed bytes only
        attach_stream(self.world.hub, StreamPlan(self.asks(), None), connection, FAR_FUTURE)
        self.begun += 1
        self.transports.append(transport)
        return connection

    async def empties(self, before: dict[str, int]) -> None:
        """Wait until the hub has let go of everybody, then until there is what there was ``before`` they came."""
        await eventually(lambda: not len(self.world.hub.registry), seconds=30, what="everybody to be gone")
        for client in self.clients:
            client.close()
        await settles(self.world, before)

    def _measured(self, transport: asyncio.Transport) -> Callable[[bytes], None]:
        def write(data: bytes) -> None:
            transport.write(data)
            self.highest = max(self.highest, transport.get_write_buffer_size())

        return write

    async def connect(self, count: int, receive_bytes: int = 4096) -> list[RawClient]:
        """So many clients, with streams, which read nothing by themselves."""
        before = self.begun
        clients = [await RawClient.connect(self.address, receive_bytes=receive_bytes) for _ in range(count)]
        self.clients += clients
        await eventually(lambda: self.begun == before + count, what="streams")
        return clients


def left(world: World) -> dict[str, int]:
    """What there is of anybody, timers of tokens included: they would keep their member in memory."""
    gc.collect()
    hub = world.hub
    return {
        "people": len(hub.registry),
        "live": hub.count_live_clients(),
        "groups": len(hub.live.groups()),
        "index": len(hub.index),
        "viewers": len(hub.viewer_cache),
        "errands": len(hub.background_tasks),
        "members": sum(isinstance(one, Client) for one in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "files": len(list(FILES.iterdir())) if FILES.exists() else 0,
    }


async def settles(world: World, before: dict[str, int]) -> None:
    """Wait until there is what there was before; says what there is otherwise."""
    try:
        await eventually(lambda: left(world) == before)
    except AssertionError:
        raise AssertionError(f"{left(world)} is left, {before} was there") from None


@asynccontextmanager
async def site(
    world: World, asks: Callable[[], SubscribeRequest], send_buffer_bytes: int = SEND_BUFFER_BYTES
) -> AsyncIterator[Site]:
    """A site on a free port of this machine."""
    made = Site(world, asks, send_buffer_bytes)
    server = await asyncio.get_running_loop().create_server(lambda: Door(made), "127.0.0.1", 0, family=socket.AF_INET)
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        for client in made.clients:
            client.close()
