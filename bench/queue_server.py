"""The server for comparison: an ordinary aiohttp event stream, with a queue for each client and awaited writes.

    python -m bench.queue_server --socket REDIS_SOCKET

It listens to the same Redis channel, sends the same bytes, and finds the matches of a ``track`` by testing client by
client. It has no tokens, cursors, heartbeats or replay.
"""

import argparse
import asyncio
import json
from collections.abc import AsyncIterator

import uvloop
from aiohttp import web
from redis.asyncio import Redis

from bench.serving import serve_forever

QUEUED_AT_MOST = 1000
"""Most events that wait for one client."""

SOCKET: web.AppKey[str] = web.AppKey("socket")
"""Path of Redis' Unix socket."""


class Clients:
    """All clients: the queue of each, and the words it waits for. An empty set means every event."""

    def __init__(self) -> None:
        self.queues: dict[asyncio.Queue[bytes], set[str]] = {}

    def publish(self, message: bytes) -> None:
        """Queue the event for every client that wants it. A full queue loses it."""
        wire = json.loads(message.split(b" ", 4)[4])["wire"]
        data = b"data: " + json.dumps(wire, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
        text_words = set(wire["status"]["message"].lower().split())
        for queue, words in self.queues.items():
            if (not words or words & text_words) and not queue.full():
                queue.put_nowait(data)


CLIENTS = web.AppKey("clients", Clients)
"""The clients of the app."""


async def stream(request: web.Request) -> web.StreamResponse:
    """Serve one client until it disconnects."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    queue: asyncio.Queue[bytes] = asyncio.Queue(QUEUED_AT_MOST)
    queues = request.app[CLIENTS].queues
    queues[queue] = set(filter(None, request.query.get("track", "").split(",")))
    try:
        while True:
            await response.write(await queue.get())
    finally:
        del queues[queue]


async def hear(app: web.Application) -> AsyncIterator[None]:
    """Listen to Redis while the server runs."""
    pubsub = Redis(unix_socket_path=app[SOCKET]).pubsub(ignore_subscribe_messages=True)
    await pubsub.subscribe("events:post")

    async def listen() -> None:
        async for message in pubsub.listen():
            app[CLIENTS].publish(message["data"])

    task = asyncio.create_task(listen())
    yield
    task.cancel()


async def serve(redis_socket: str) -> None:
    """Serve until the process ends."""
    app = web.Application()
    app[SOCKET], app[CLIENTS] = redis_socket, Clients()
    app.cleanup_ctx.append(hear)
    app.router.add_get("/sub", stream)
    await serve_forever(app)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--socket", required=True, help="Redis' unix socket")
    uvloop.run(serve(parser.parse_args().socket))
