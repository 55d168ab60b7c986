"""Clients that return with their last cursor after any failure: live, slow, leaving and polling ones."""

import asyncio
import random
import socket
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp

from tests.end_to_end.api import mint
from tests.end_to_end.consumer import MEDIA, number
from tests.end_to_end.random_faults.oracle import OWN, History, Record, Told
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.sse import EventStream, Lines
from tests.waiting import eventually

SMALL_BYTES = 4096
"""The receive buffer of a slow client. It is small, so the server soon has to wait for the client."""

LONGEST_RETRY_SECONDS = 0.3
"""The longest wait before a reconnect. The run is short."""

LONGEST_PAUSE_SECONDS = 8.0
"""The longest pause of a slow client, where no posts are written."""


class Cut(Exception):
    """Raised if the connection ended or was refused. The client then returns."""


EXPECTED = (Cut, aiohttp.ClientError, TimeoutError, OSError, asyncio.IncompleteReadError)
"""Exceptions that end a visit. The client keeps the messages that it read before."""


class Client:
    """A client that visits again and again.

    Attributes:
        cursor: Position at which its next visit begins.
        streams_from: Address of the server whose stream it reads now, else empty.
    """

    def __init__(self, site: Site, record: Record, seed: int) -> None:
        self.record = record
        self.streams_from = ""
        self.cursor = record.start
        self.visits = 0
        self.site = site
        self.chance = random.Random(seed)
        self._token = mint(record.uid)

    @property
    def reached(self) -> int:
        return number(self.cursor) if self.cursor else -1

    def complaints(self, history: History) -> list[str]:
        """Return what the oracle finds wrong in the messages of all visits."""
        return history.complaints(self.record)

    async def run(self) -> None:
        while True:
            self.visits += 1
            with suppress(*EXPECTED):
                await self._visit()
            await asyncio.sleep(self.chance.uniform(0, LONGEST_RETRY_SECONDS))  # the retry interval of the client

    async def _visit(self) -> None:
        raise AssertionError(f"{type(self)} says itself how it visits")

    def _hear(self, message: dict[str, Any]) -> None:
        if not self.record.start:
            self.record.start = str(message["cursor"])
        self.record.told.append(Told(message, time.monotonic()))
        self.cursor = str(message["cursor"])

    def _query(self, **more: str) -> dict[str, str]:
        since = {"since": self.cursor} if self.cursor else {}
        return {name: value for name, value in self.record.params.items() if name != OWN} | since | more

    @property
    def _path(self) -> str:
        return f"{'/v1/stream/user' if OWN in self.record.params else '/v1/stream'}?{urlencode(self._query())}"

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}


class Listener(Client):
    """An open stream on its own socket. It leaves after ``most`` chunks; with None it never leaves."""

    framing = "ndjson"
    small = False
    most: int | None = None

    async def _visit(self) -> None:
        address = self.site.address(self.chance)
        reader, writer = await self._connected(address)
        try:
            await self._ask(reader, writer)
            self.streams_from = address
            await self._read(reader)
        finally:
            self.streams_from = ""
            writer.close()

    async def _connected(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        where = urlsplit(address)
        assert where.hostname is not None
        one = socket.socket()
        one.setblocking(False)
        if self.small:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BYTES)
        try:
            await asyncio.get_running_loop().sock_connect(one, (where.hostname, where.port))
            return await asyncio.open_connection(sock=one, limit=SMALL_BYTES if self.small else 1 << 16)
        except BaseException:  # also when it is cancelled
            one.close()
            raise

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        headers = {"Host": "localhost", "Accept": MEDIA[self.framing], **self._headers}
        lines = [f"GET {self._path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split(" ", 2)[1])
        self.site.answers[status] += 1
        if status != 200:
            assert status == 503, head + (await reader.read(1000)).decode()
            raise Cut

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Read chunk by chunk. A chunk that is cut off is ignored."""
        parser = EventStream() if self.framing == "sse" else Lines()
        left = self.most
        while size := int(await reader.readline() or b"0", 16):
            for message in parser.feed(self._plain((await reader.readexactly(size + 2))[:-2])):
                self.site.codes[message.get("code", "")] += 1
                self._hear(message)
            left = None if left is None else left - 1
            if left == 0:
                return
            await self._rest()

    def _plain(self, data: bytes) -> bytes:
        """Return the data of a chunk as it was before it was compressed."""
        return data

    async def _rest(self) -> None:
        """Do what this kind of client does between two messages."""


class Sse(Listener):
    framing = "sse"


class Slow(Listener):
    """A stream that pauses now and then, until many posts were written, so also where they are written slowly.

    Between two pauses it goes live, because only live clients are warned.
    """

    small = True
    _next_pause_at = 0.0

    async def _rest(self) -> None:
        if time.monotonic() > self._next_pause_at:
            enough = len(self.site.posted) + self.chance.randint(10, 200)
            with suppress(AssertionError):
                await eventually(lambda: len(self.site.posted) >= enough, seconds=LONGEST_PAUSE_SECONDS)
            self._next_pause_at = time.monotonic() + self.chance.uniform(1.0, 4.0)

    @property
    def warned(self) -> int:
        return sum(told.kind == "warning" for told in self.record.told)


class Leaving(Sse):
    """A stream that leaves after some messages and returns to any server."""

    async def _visit(self) -> None:
        self.most = self.chance.randint(1, 40)
        await super()._visit()


class Poller(Client):
    """A client that polls again and again."""

    async def _visit(self) -> None:
        await self.poll_on()

    async def poll_on(self) -> None:
        """Poll until something fails."""
        async with self.site.session() as session:
            while True:
                await self._poll(session)

    async def _poll(self, session: aiohttp.ClientSession) -> None:
        query = self._query(wait="0.5", limit=str(self.chance.randint(1, 30)))
        url = f"{self.site.address(self.chance)}/v1/events"
        async with session.get(url, params=query, headers=self._headers) as response:
            self.site.answers[response.status] += 1
            assert response.status in (200, 503), await response.text()
            if response.status == 503:
                raise Cut
            page = await response.json()
        for message in page["events"]:
            self._hear(message)
        self._hear({"kind": "heartbeat", "cursor": page["cursor"]})
