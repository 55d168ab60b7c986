"""Endpoints of webhooks that fail at random: they answer 500, hang, cut the connection, or die for a while."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, product
from time import monotonic
from typing import Any

from aiohttp import web

from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.clients import Client, Cut
from tests.end_to_end.random_faults.crew import PARTS, PartRecord
from tests.end_to_end.random_faults.oracle import History, Record, Told
from tests.end_to_end.random_faults.site import Site
from tests.end_to_end.webhook_endpoint import Endpoint, accept, answer, hang, reset
from tests.redis_process import free_port

FAULTS = {"500": answer(500), "hangs": hang, "resets": reset}
DIES = "dies"


class Hook(Client):
    """A subscription with a webhook, and its endpoint. The endpoint handles what comes, and may fail to answer.

    The record has what was handled first, so the oracle judges it as a stream that never ended.

    Attributes:
        acked: Number of the highest cursor that the server has shown as acked.
        handled: Number of the last entry that was handled.
        repeats: Number of events that were handled before.
        wrong: What came again below the acked cursor, and requests at the same time.
        faults: How often the endpoint did what.
        planned: The faults to come, and whether each comes after the work. Several endpoints may share them, so that
            each fault happens early.
        is_well: Whether it does not fail any more.
    """

    def __init__(self, site: Site, record: Record, seed: int) -> None:
        super().__init__(site, record, seed)
        self.acked = self.handled = -1
        self.repeats = 0
        self.wrong: list[str] = []
        self.faults: Counter[str] = Counter()
        self.planned: Iterator[tuple[bool, str]] = cycle(product((True, False), (*FAULTS, DIES)))
        self.is_well = False
        self._url = f"/v1/subscriptions/hook{seed}"
        self._shape: dict[str, int] = {}
        self._open: Counter[int] = Counter()
        self._endpoint = Endpoint(free_port())
        self._endpoint.behaviour = self._take
        self._dies = asyncio.Event()

    async def run(self) -> None:
        await self._endpoint.start()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(super().run())
                group.create_task(self._live_and_die())
        finally:
            await self._endpoint.stop()

    async def _visit(self) -> None:
        """Put the webhook, then look at its cursor again and again."""
        async with self.site.session() as session:
            if not self._endpoint.secrets:
                body = {"parameters": dict(self.record.params), **self._shape}
                if not self.record.start:  # nothing is delivered yet, so a repetition has the same cursor
                    self.record.start = self.cursor = (await self._send(session, "PUT", body))["cursor"]
                made = (await self._send(session, "PUT", body | {"deliver": {"url": self._endpoint.url}}))["deliver"]
                if "secret" not in made:  # the answer that had it was lost
                    made = await self._send(session, "POST", {}, "/secret")
                self._endpoint.secrets = [made["secret"]]
            while True:
                self._look(await self._send(session, "GET", None))
                await asyncio.sleep(0.2)

    def _look(self, found: dict[str, Any]) -> None:
        """Note what the server shows as acked."""
        if number(found["cursor"]) > self.acked:
            self.acked, self.cursor = number(found["cursor"]), found["cursor"]

    async def _send(self, session: Any, method: str, body: Any, below: str = "") -> dict[str, Any]:
        url = f"{self.site.address(self.chance)}{self._url}{below}"
        async with session.request(method, url, json=body, headers=self._headers) as answered:
            self.site.answers[answered.status] += 1
            text = await answered.text()
            # An endpoint has one second here (`world.HOOKS`). On a busy machine this process may need longer to answer,
            # or the endpoint dies meanwhile.
            if answered.status == 503 or "did not answer the challenge" in text:
                raise Cut
            assert answered.status in (200, 201), text
            found: dict[str, Any] = await answered.json()
            return found

    async def _take(self, request: web.Request) -> web.StreamResponse:
        """Handle the events of a request and answer, or fail: before the work, or between work and answer."""
        body = self._endpoint.received[-1].body
        part = body.get("part", 0)
        self._open[part] += 1
        if self._open[part] > 1:
            self.wrong.append(f"{self.record.name}: {self._open} requests at the same time")
        try:
            return await self._answer(request, part, body["events"])
        finally:
            self._open[part] -= 1

    async def _answer(self, request: web.Request, part: int, events: list[dict[str, Any]]) -> web.StreamResponse:
        fails = not self.is_well and self.chance.random() < 0.4
        is_handled, fault = next(self.planned) if fails else (True, "ok")
        self.faults[fault] += 1
        cursor = self.cursor
        if is_handled:
            for message in events:
                self._handle(part, message)
        self.cursor = cursor  # which is what the server has
        if fault == DIES:
            self._dies.set()
        return await FAULTS.get(fault, hang if fault == DIES else accept)(request)

    def _handle(self, part: int, message: dict[str, Any]) -> None:
        n = number(message["cursor"])
        if n <= self.acked:
            self.wrong.append(f"{self.record.name}: {message} came again below the ack of {self.acked}")
        if n > self.handled or message["kind"] == "gap":
            self.handled = n
            self._hear(message)
        else:
            self.repeats += 1

    async def _live_and_die(self) -> None:
        while True:
            await self._dies.wait()
            self._dies.clear()
            await self._endpoint.stop()
            await asyncio.sleep(self.chance.uniform(0.2, 1.5))  # being dead is the fault
            await self._endpoint.start()


class PartedHook(Hook):
    """A webhook whose parts several servers deliver. Each part is judged as a stream that never ended.

    Attributes:
        sharing: The most processes that held parts at the same time.
    """

    def __init__(self, site: Site, record: Record, seed: int) -> None:
        super().__init__(site, record, seed)
        self._shape = {"parts": PARTS}
        self._acked, self._last = [-1] * PARTS, [-1] * PARTS
        self._told: list[list[Told]] = [[] for _ in range(PARTS)]
        self.sharing = 0

    def _look(self, found: dict[str, Any]) -> None:
        super()._look(found)
        self.sharing = max(self.sharing, len({part["worker"] for part in found["parts"]} - {None}))
        cursors = [number(part["cursor"]) for part in found["parts"]]
        self._acked = [*map(max, self._acked, cursors)]

    def _handle(self, part: int, message: dict[str, Any]) -> None:
        n = number(message["cursor"])
        if n <= self._acked[part]:
            self.wrong.append(f"{self.record.name}: {message} came again below the ack of part {part}")
        if n > self._last[part] or message["kind"] == "gap":
            self._last[part] = n
            self._told[part].append(Told(message, monotonic()))
        else:
            self.repeats += 1

    def complaints(self, history: History) -> list[str]:
        said = []
        for part, told in enumerate(self._told):
            one = self.record
            record = PartRecord(f"{one.name} part {part}", one.params, one.uid, one.following, one.start, told, part)
            said += history.complaints(record)
        return said
