"""Programs that share one subscription and keep nothing: they come, go and die at any moment, also before they ack.

Each part of the subscription is judged as a stream that never ended: nothing is missing, and the order is that of the
log. Below a cursor that Redis had when a program connected, nothing comes again.
"""

import asyncio
import random
from dataclasses import dataclass
from hashlib import blake2b
from time import monotonic
from typing import Any

import aiohttp

from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.clients import Cut, Listener
from tests.end_to_end.random_faults.ledger import Logged, who_and_what
from tests.end_to_end.random_faults.oracle import CONTROL, Record, Told
from tests.end_to_end.random_faults.world import World
from tests.waiting import eventually

PARTS = 8


def part_of(author: str, parts: int = PARTS) -> int:
    digest = blake2b(author.encode(), key=b"stream-server subscription part").digest()
    return int.from_bytes(digest[:8], "big") % parts


@dataclass
class PartRecord(Record):
    """The events of one part that all members handled."""

    part: int = 0

    def concerns(self, entry: Logged) -> bool:
        return part_of(entry.uid) == self.part


class Crew:
    """The members of one subscription, and what they handled together.

    Attributes:
        acked: Number of acks that were answered.
        repeats: Number of events that were handled before.
        ends: The codes of the goodbyes that the members got.
        wrong: What came again below a kept cursor, or out of order on one connection, and gaps.
    """

    def __init__(self, world: World, **params: str) -> None:
        self._world = world
        self.params = params
        self.acked = self.repeats = 0
        self.ends: list[str] = []
        self.wrong: list[str] = []
        self._records: list[PartRecord] = []
        self._handled = [-1] * PARTS

    def begin(self, cursor: str) -> None:
        """The subscription was made, and begins behind this cursor."""
        reader, followed = self._world.people.reader, self._world.people.followed
        self._records = self._records or [
            PartRecord(f"part {at}", self.params, reader, followed, cursor, [], at) for at in range(PARTS)
        ]

    def handle(self, part: int, message: dict[str, Any]) -> None:
        n = number(message["cursor"])
        if n > self._handled[part]:
            self._handled[part] = n
            self._records[part].told.append(Told(message, monotonic()))
        else:
            self.repeats += 1

    def add(self, worker: str | None) -> "asyncio.Task[None]":
        """Start a row of programs: each begins when the one before it has died. With a name, all are one worker."""
        record = Record(f"member {worker}", self.params, self._world.people.reader)
        return self._world.start(Member(self, worker, self._world, record))

    async def change(self) -> None:
        """Four members, then three, then four."""
        first, *_ = [self.add(worker) for worker in ("a", "b", "c", None)]
        await self._work_on()
        first.cancel()  # it never comes back
        await self._work_on()
        self.add("d")
        await self._work_on()

    async def _work_on(self) -> None:
        acked = self.acked
        await eventually(lambda: self.acked >= acked + 8, what="acks of the crew")

    async def complaints(self) -> list[str]:
        """Wait until all is handled that must be, by the history that the world has read. Return what is wrong then."""
        history = self._world.history
        needed = [
            [entry.n for entry in history.wanted(record) if entry.subject not in history.ends or entry.kind == "delete"]
            for record in self._records
        ]
        await eventually(
            lambda: all(not ns or self._handled[part] >= ns[-1] for part, ns in enumerate(needed)),
            what=f"the end of each part: {[ns[-1:] for ns in needed]}, {self._handled}",
        )
        return self.wrong + [wrong for record in self._records for wrong in history.complaints(record)]


class Member(Listener):
    """A row of programs of one worker. Each has ``most`` chunks to live."""

    def __init__(self, crew: Crew, worker: str | None, world: World, record: Record) -> None:
        super().__init__(world.site, record, random.Random(f"{worker} {world.people.reader}").randrange(1 << 30))
        self._crew = crew
        self._worker = worker
        self._connection = self._reached = ""
        self._floors = [-1] * PARTS
        self._last: dict[int, int] = {}
        self._session: aiohttp.ClientSession

    async def _visit(self) -> None:
        self.most, self._reached, self._last = self.chance.randint(1, 60), "", {}
        async with self.site.session() as self._session:
            kept = await self._send("PUT", "", parameters=self._crew.params, parts=PARTS)
            self._crew.begin(kept["cursor"])
            self._floors = [number(part["cursor"]) for part in kept["parts"]]
            await super()._visit()

    async def _send(self, method: str, path: str, **body: Any) -> Any:
        url = f"{self.site.address(self.chance)}/v1/subscriptions/crew{path}"
        async with self._session.request(method, url, json=body, headers=self._headers) as answer:
            self.site.answers[answer.status] += 1
            if answer.status == 503:
                raise Cut
            if answer.status == 409:  # this connection was closed, and its goodbye is on the way
                return None
            assert answer.status in (200, 201, 204), await answer.text()
            return None if answer.status == 204 else await answer.json()

    @property
    def _path(self) -> str:
        return "/v1/stream?subscription=crew" + (f"&worker={self._worker}" if self._worker else "")

    def _hear(self, message: dict[str, Any]) -> None:
        self._reached = str(message["cursor"])
        kind, n = message["kind"], number(message["cursor"])
        if kind == "hello":
            self._connection = message["connection"]
        elif kind == "goodbye":
            self._crew.ends.append(message["code"])
        elif kind == "gap":
            self._crew.wrong.append(f"{self.record.name}: {message}")
        elif kind not in CONTROL:
            part = part_of(who_and_what(kind, message)[0])
            if n <= self._floors[part]:
                self._crew.wrong.append(f"{self.record.name}: {message} came again below {self._floors[part]}")
            if n <= self._last.get(part, -1):
                self._crew.wrong.append(f"{self.record.name}: {message} came after {self._last[part]}")
            self._last[part] = n
            self._crew.handle(part, message)

    async def _rest(self) -> None:
        """Ack what this program has handled, now and then."""
        if self._reached and self.chance.random() < 0.3:
            await self._send("POST", "/ack", cursor=self._reached, connection=self._connection)
            self._crew.acked += 1
