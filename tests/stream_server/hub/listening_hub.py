"""A hub behind real sockets: each connection becomes a stream at once, without HTTP."""

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
from tests.listening import stop_listening
from tests.stream_server.hub.world import World
from tests.waiting import eventually

SEND_BUFFER_BYTES = 4096

FILES = Path("/proc/self/fd")
"""The folder of the open files of this process, on Linux."""

FAR_FUTURE = 1e10
"""Expiry of the tokens of these tests, in seconds since 1970: later than the end of every test."""


class StreamOnConnect(asyncio.Protocol):
    def __init__(self, listening_hub: "ListeningHub") -> None:
        self._site = listening_hub

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        taken = cast("asyncio.Transport", transport)  # uvloop's is not one by name
        stream = self._site.start_stream(taken)
        taken.set_protocol(stream)  # as `Connection.detach` does
        stream.resume_writing()


class ListeningHub:
    def __init__(self, world: World, next_request: Callable[[], SubscribeRequest], send_buffer_bytes: int) -> None:
        self.world = world
        self.next_request = next_request
        self.max_unsent_bytes = 0
        self.clients: list[RawClient] = []
        self.started = 0
        self.address = ""
        self.send_buffer_bytes = send_buffer_bytes
        self.transports: list[asyncio.Transport] = []

    def start_stream(self, transport: asyncio.Transport) -> StreamConnection:
        """Start a stream, as the server does after the head of the response."""
        if self.send_buffer_bytes:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.send_buffer_bytes)
        hub = self.world.hub
        connection = StreamConnection(
            transport, chunked=True, buffer_bytes=hub.limits.buffer_bytes, departures=hub.departures
        )
        connection.write = self._measured(transport)  # type: ignore[assignment]  # it is handed bytes only
        attach_stream(hub, StreamPlan(self.next_request(), ()), connection, lambda: None)
        self.started += 1
        self.transports.append(transport)
        return connection

    async def until_empty(self, before: dict[str, int]) -> None:
        """Wait until the hub has no clients and only the resources from ``before``."""
        await eventually(lambda: not len(self.world.hub.registry), what="everybody to be gone")
        for client in self.clients:
            client.close()
        await until_resources(self.world, before)

    def _measured(self, transport: asyncio.Transport) -> Callable[[bytes], None]:
        def write(data: bytes) -> None:
            transport.write(data)
            self.max_unsent_bytes = max(self.max_unsent_bytes, transport.get_write_buffer_size())

        return write

    async def connect(self, count: int, receive_bytes: int = 4096) -> list[RawClient]:
        """Connect clients that read nothing by themselves, and wait until their streams have started."""
        before = self.started
        clients = [await RawClient.connect(self.address, receive_bytes=receive_bytes) for _ in range(count)]
        self.clients += clients
        await eventually(lambda: self.started == before + count, what="streams")
        return clients


def resources(world: World) -> dict[str, int]:
    """Count what clients use, including objects that only a timer keeps in memory."""
    gc.collect()
    hub = world.hub
    return {
        "registered": len(hub.registry),
        "live": hub.live.count,
        "groups": len(hub.live.groups()),
        "index": len(hub.live.index),
        "viewers": len(hub.viewer_cache) - len(hub.viewer_cache._kept),
        "background tasks": len(hub.background_tasks),
        "clients": sum(isinstance(one, Client) for one in gc.get_objects()),
        "tasks": len(asyncio.all_tasks()),
        "files": len(list(FILES.iterdir())) if FILES.exists() else 0,
    }


async def until_resources(world: World, before: dict[str, int]) -> None:
    """Wait until the resources are those from before."""
    try:
        await eventually(lambda: resources(world) == before)  # each look collects all garbage
    except AssertionError:
        raise AssertionError(f"{resources(world)} is left, {before} was there") from None


@asynccontextmanager
async def listening_hub(
    world: World, next_request: Callable[[], SubscribeRequest], send_buffer_bytes: int = SEND_BUFFER_BYTES
) -> AsyncIterator[ListeningHub]:
    made = ListeningHub(world, next_request, send_buffer_bytes)
    server = await asyncio.get_running_loop().create_server(
        lambda: StreamOnConnect(made), "127.0.0.1", 0, family=socket.AF_INET
    )
    made.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        await stop_listening(server)
        for client in made.clients:
            client.close()
