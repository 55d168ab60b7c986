"""Follow a stream of Server-Sent Events, with only aiohttp.

    python sse_consumer.py http://127.0.0.1:8000 $TOKEN track=coffee

Each message carries an `id`, the cursor from which to resume. After a break, send the last one as `Last-Event-ID`, and
no event is lost between two connections.
"""

import asyncio
import json
import sys
from contextlib import suppress
from typing import Any

import aiohttp


async def consume(url: str, token: str, parameters: dict[str, str]) -> None:
    """Print each post, and reconnect without end."""
    headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
    # No total timeout, because a stream has no end. Heartbeats come every 15 s, so 45 s of silence mean a dead line.
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=45)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        while True:
            try:
                await read(session, f"{url}/v1/stream", parameters, headers)
            except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError) as error:
                print(f"connection lost: {error}", file=sys.stderr)
            await asyncio.sleep(2)


async def read(session: aiohttp.ClientSession, url: str, parameters: dict[str, str], headers: dict[str, str]) -> None:
    """Read one connection to its end. Store the last cursor in ``headers`` for the next connection."""
    async with session.get(url, params=parameters, headers=headers) as response:
        if response.status in {429, 502, 503}:
            return  # the server is busy or restarting: try again
        if response.status != 200:
            sys.exit(f"refused: {response.status} {await response.text()}")
        data, cursor = "", ""
        async for raw in response.content:
            line = raw.decode().rstrip("\r\n")
            name, _, value = line.partition(": ")
            if name == "data":
                data = value  # this server sends one data line for each message; other servers may send several
            elif name == "id":
                cursor = value
            elif not line:  # an empty line ends the message
                if data:
                    show(json.loads(data))
                if cursor:
                    headers["Last-Event-ID"] = cursor
                data, cursor = "", ""


def show(message: dict[str, Any]) -> None:
    """Print the part of one message that interests people."""
    if message["kind"] == "post":
        print(f"@{message['status']['login']}: {message['status']['message']}", flush=True)
    elif message["kind"] == "gap":
        print(f"lost: {message['reason']}", file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} URL TOKEN NAME=VALUE …")
    server, jwt, *rest = sys.argv[1:]
    with suppress(KeyboardInterrupt):
        asyncio.run(consume(server, jwt, dict(pair.split("=", 1) for pair in rest)))
