"""The people of a long run: authors at a pace, and clients that come and go, each time in another manner.

A client keeps its cursor between its visits, also if it leaves without a word. Each visit has a new token, comes from
another address and asks for words that no other visit asked for, so that whatever the server keeps of a visit shows.
"""

import asyncio
import json
import socket
import struct
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import aiohttp
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.end_to_end.api import mint
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.random_faults.clients import EXPECTED, Listener, Poller
from tests.end_to_end.random_faults.ledger import KINDS, Deed, Ledger
from tests.end_to_end.random_faults.oracle import OWN, Record
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.random_faults.writer import Writer

STAY_SECONDS = 40.0
"""Average length of a visit in seconds. Some clients leave at once."""

AWAY_SECONDS = 4.0
"""Longest pause in seconds between two visits, except for a few."""

TOKEN_SECONDS = 3600.0
"""Lifetime of a token."""

ADDRESSES = 5000
"""Addresses from which the visits come."""

FRIENDS = 4
"""Users whom an author follows and unfollows. They are few, so that the number of follows soon does not grow."""

KEPT = 100
"""Statuses of an author. As many of all authors are there at a time."""

OWN_WORDS = 8
"""Words of a visit that no post has: so many that the server soon keeps no more of them than it may."""

WORDS = [f"w{number}" for number in range(60)]
"""Words of the posts, as in ``judge.SAVED``."""

PHRASES = (
    "the evening train was late again and nobody told us why", "heute regnet es in der ganzen Stadt ohne Pause",
    "le petit marché du village ouvre tous les samedis matin", "mañana vamos a la playa con toda la familia",
    "今日はとても良い天気ですね", "вчера мы долго гуляли по старому городу",
)  # fmt: skip
"""Sentences in six languages."""

ALL = ",".join(KINDS)
"""What the authors of a long run do."""

KIND = ("lines", "lines, gzip", "events", "events, gzip", "socket", "poll")
UNKIND = ("slow", "silent", "reset", "vanished", "half a head")
"""What a visit is like. A quarter is unkind: it reads slowly or not at all, and leaves without a word."""


def filters_of(authors: list[str], readers: int) -> list[dict[str, str]]:
    """Return the parameters of all kinds of streams, in turn for the clients. Each reader uses some of them."""
    return [
        *({"firehose": "true", "partition": f"{n + 1}/10"} for n in range(10)),
        *({"track": f"{WORDS[n]},{WORDS[n + 20]} {WORDS[n + 40]}"} for n in range(14)),
        *({"follow": f"{authors[n]},{authors[-n - 1]}"} for n in range(8)),
        *({"follow": "@me", "kinds": ALL}, {OWN: "true", "kinds": ALL}) * readers,
        {"rules": "saved"}, {"rules": "saved"},
        {"firehose": "true", "kinds": ALL}, {"firehose": "true", "language": "fr"}, {"sample": "3"},
        {"sample": "2", "kinds": "post,delete,like,unlike"}, {"follow": f"{authors[0]},{authors[3]}", "kinds": ALL},
        {"track": "train,marché", "language": "fr,en"}, {"locations": "-123,37,-122,38", "track": "w1"},
        {"locations": "13,52,14,53", "language": "de"}, {"rule": "w14 -w15 OR w16 w17"},
        {"rule": '"the evening train" w1'},
    ]  # fmt: skip


class Guest(Listener, Poller):
    """One client with one cursor and one filter. With ``home`` set it only stays, so that it reaches the head."""

    home = False
    visited: ClassVar[Counter[str]] = Counter()

    def __init__(self, site: Site, record: Record, seed: int, long_away: float) -> None:
        super().__init__(site, record, seed)
        self.wrong: list[str] = []
        self._manner = ""
        self._address = 0
        self._socket: socket.socket
        self._long_away = long_away

    async def run(self) -> None:
        """Visit again and again."""
        while True:
            unkind = self.cursor and not self.home and self.chance.random() < 0.25
            self._manner = self.chance.choice(UNKIND if unkind else KIND)
            if OWN in self.record.params and self._manner == "poll":
                self._manner = "lines"  # the user's own stream is not for polls
            self._token = mint(self.record.uid, ttl=TOKEN_SECONDS)
            self._address = self.chance.randrange(ADDRESSES)
            self.visits += 1
            with suppress(*EXPECTED, WebSocketException):
                try:
                    async with asyncio.timeout(None if self.home else self.chance.expovariate(1 / STAY_SECONDS)):
                        await self._visit()
                except AssertionError as error:
                    self.wrong.append(f"{self.record.name}, {self._manner}: {error!r}")
            self.visited[self._manner] += 1
            long = self.cursor and not self.home and self.chance.random() < 0.002
            await asyncio.sleep(self._long_away if long else self.chance.uniform(0, AWAY_SECONDS))

    async def _visit(self) -> None:
        self.framing = "sse" if self._manner.startswith("events") else "ndjson"
        self.small = self._manner in {"slow", "silent"}
        if self._manner == "poll":
            await self.poll_on()
        elif self._manner == "socket":
            await self._listen_by_socket()
        elif self._manner == "half a head":
            async with await RawClient.connect(self.site.address(self.chance)) as client:
                await client.half_ask("/v1/stream", self._token)
                await asyncio.sleep(STAY_SECONDS)
        else:
            await super()._visit()

    async def _listen_by_socket(self) -> None:
        url = f"ws{self.site.address(self.chance).removeprefix('http')}{self._path}"
        compression = self.chance.choice([None, "deflate"])
        async with connect(url, additional_headers=self._headers, compression=compression, proxy=None) as one:
            async for text in one:
                self._hear(json.loads(text))

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await super()._ask(reader, writer)
        self._socket = writer.get_extra_info("socket")
        self._unpacked = zlib.decompressobj(wbits=31)
        if self._manner == "reset":
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def _plain(self, data: bytes) -> bytes:
        return self._unpacked.decompress(data) if "gzip" in self._manner else data

    async def _rest(self) -> None:
        """Be unkind now and then."""
        if self._manner == "slow":
            await asyncio.sleep(self.chance.uniform(0, 1))
        elif self._manner in {"silent", "vanished"} and self.chance.random() < 0.2:
            if self._manner == "vanished":
                RawClient(self._socket).vanish()
            await asyncio.Event().wait()

    def _query(self, **more: str) -> dict[str, str]:
        """Return the parameters of the request. Words that no post has make each visit's filter its own."""
        query = super()._query(**more)
        words = [f"nobody{self.chance.randrange(1 << 40)}says" for _ in range(OWN_WORDS)]
        if "track" in query:
            query["track"] = ",".join((query["track"], *words))
        if "rule" in query:
            query["rule"] = " OR ".join((query["rule"], *words))
        return query

    @property
    def _headers(self) -> dict[str, str]:
        own = {"X-Forwarded-For": f"10.0.{self._address // 250}.{self._address % 250 + 1}"}
        return super()._headers | own | ({"Accept-Encoding": "gzip"} if "gzip" in self._manner else {})


class Author(Writer):
    """A writer at a pace who has few statuses at a time: all but the newest are deleted, the oldest first."""

    keyed = 0.1
    seconds = 1.0
    _next_at = 0.0
    _number = 0
    _is_in_doubt = False

    def __init__(self, site: Site, ledger: Ledger, people: Sequence[str], which: int, seed: int) -> None:
        super().__init__(site, ledger, people, which, seed)
        self._others = self._others[:FRIENDS]

    async def _rest(self) -> None:
        """Keep the pace, and wait for no time that was missed."""
        self._next_at = max(time.monotonic(), self._next_at + self.seconds * self._chance.uniform(0.8, 1.2))
        await asyncio.sleep(self._next_at - time.monotonic())

    def _text(self) -> str:
        self._number += 1
        return f"{self._chance.choice(PHRASES)} {' '.join(self._chance.sample(WORDS, 3))} {self.uid}x{self._number}"

    async def _one(self, session: aiohttp.ClientSession) -> None:
        """Post, and delete the oldest status of many. Sometimes follow, like, or edit or delete a young status."""
        await self._post(session)
        if self._is_in_doubt:
            await self._look(session)
        while len(self._mine) > KEPT:
            await self._delete_at(session, 0)
        if self._chance.random() < 0.15:
            await self._chance.choice([self._edit, self._delete, self._follow, self._like])(session)

    async def _settled(self, session: aiohttp.ClientSession, deed: Deed, *request: Any, **more: Any) -> Any:
        answer = await super()._settled(session, deed, *request, **more)
        self._is_in_doubt |= deed.kind in {"post", "delete"} and not deed.written
        return answer

    async def _look(self, session: aiohttp.ClientSession) -> None:
        """Ask for the own statuses: some may be there of which no answer told, and others were not deleted."""
        headers, found, query = {"Authorization": f"Bearer {self._token}"}, list[str](), "count=100"
        while query:
            code, page = await self._sent(session, "GET", f"users/{self.uid}/statuses?{query}", headers, None)
            if code != 200:
                return  # a fault is under way
            found += [status["id"] for status in page["statuses"]]
            query = f"count=100&before={page['next']}" if page["next"] else ""
        self._mine, self._is_in_doubt = found[::-1], False
