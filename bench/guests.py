"""Clients that connect, stay for a while and leave in different ways, one after another until the time is over."""

import asyncio
import random
import socket
import struct
from collections import Counter

from bench import mix

MANNERS = ("close", "reset", "half a head", "stop reading", "poll")
"""Ways to behave: close normally, reset, send only half of a request, stop reading, or long-poll without waiting for
it.
"""

STAY_SECONDS = 5.0
"""Average length of a visit in seconds. Some clients leave at once."""

SMALL_BUFFER = 4096
"""Receive buffer, in bytes, of a client that stops reading."""


class Guests:
    """Runs a number of clients at the same time.

    Attributes:
        visits: Number of visits by behaviour.
        refused: Number of visits that failed to connect.
    """

    def __init__(self, port: int, tokens: list[str], authors: list[str], seed: int) -> None:
        self.visits: Counter[str] = Counter()
        self.refused = 0
        self._address = ("127.0.0.1", port)
        self._tokens = tokens
        self._authors = authors
        self._chance = random.Random(seed)

    async def run(self, count: int, seconds: float) -> None:
        """Keep ``count`` clients busy for ``seconds``."""
        end = asyncio.get_running_loop().time() + seconds
        await asyncio.gather(*(self._one(end) for _ in range(count)))

    async def _one(self, end: float) -> None:
        clock = asyncio.get_running_loop().time
        while clock() < end:
            manner = self._chance.choice(MANNERS)
            try:
                await self._visit(manner, min(self._chance.expovariate(1 / STAY_SECONDS), end - clock()))
                self.visits[manner] += 1
            except OSError:
                self.refused += 1
                await asyncio.sleep(0.2)

    async def _visit(self, manner: str, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as connection:
            connection.setblocking(False)
            if manner == "stop reading":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
            await loop.sock_connect(connection, self._address)
            await loop.sock_sendall(connection, self._request(manner))
            if manner in {"close", "reset", "poll"}:
                await self._read(connection, seconds)
            else:
                await asyncio.sleep(seconds)
            if manner in {"reset", "stop reading"}:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def _read(self, connection: socket.socket, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                while await loop.sock_recv(connection, 65_536):
                    pass
        except TimeoutError:
            pass  # the visit is over

    def _request(self, manner: str) -> bytes:
        number = self._chance.randrange(10**6)
        endpoint = "events" if manner == "poll" else "stream"
        head = (
            f"GET /v1/{endpoint}?{mix.asker(number).query(number, self._authors)} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {self._chance.choice(self._tokens)}\r\n"
        )
        return head.encode() + (b"X-Unfini" if manner == "half a head" else b"\r\n")
