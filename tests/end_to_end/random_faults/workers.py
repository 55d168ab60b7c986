"""Programs that read named subscriptions and keep nothing: they die at any moment, also between work and ack."""

from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.clients import Cut, Listener
from tests.end_to_end.random_faults.oracle import CONTROL, Record
from tests.end_to_end.random_faults.site import Site


class Worker(Listener):
    """One row of programs, each of which reads the same subscription after the one before it has died.

    Each has ``most`` chunks to live. The record has what was handled first, so the oracle judges it as a stream that
    never ended: nothing is missing, and the order is that of the log.

    Attributes:
        acked: Number of the last entry of an answered ack.
        handled: Number of the last entry that any of the programs has handled.
        repeats: Number of events that were handled before.
        wrong: What came again below an answered ack, and what was skipped.
    """

    def __init__(self, site: Site, record: Record, seed: int) -> None:
        super().__init__(site, record, seed)
        self.acked = self.handled = -1
        self.repeats = 0
        self.wrong: list[str] = []
        self._name = f"worker{seed}"
        self._reached = ""
        self._session: aiohttp.ClientSession

    async def _visit(self) -> None:
        self.most, self._reached = self.chance.randint(1, 40), ""
        async with self.site.session() as self._session:
            await self._send("PUT", "", parameters=dict(self.record.params))
            await super()._visit()

    async def _send(self, method: str, path: str, **body: Any) -> None:
        url = f"{self.site.address(self.chance)}/v1/subscriptions/{self._name}{path}"
        async with self._session.request(method, url, json=body, headers=self._headers) as answer:
            self.site.answers[answer.status] += 1
            assert answer.status in (200, 201, 204, 503), await answer.text()
            if answer.status == 503:
                raise Cut

    @property
    def _path(self) -> str:
        return f"/v1/stream?{urlencode({'subscription': self._name})}"

    def _hear(self, message: dict[str, Any]) -> None:
        n, kind = number(message["cursor"]), message["kind"]
        if kind not in CONTROL and n <= self.acked:
            self.wrong.append(f"{self.record.name}: {message} came again below the ack of {self.acked}")
        if kind == "hello" and -1 < self.handled < n:
            self.wrong.append(f"{self.record.name}: began at {n}, and only {self.handled} was handled")
        self._reached = str(message["cursor"])
        if n > self.handled or kind == "gap":
            self.handled = n
            super()._hear(message)
        else:
            self.repeats += kind not in CONTROL

    async def _rest(self) -> None:
        """Ack what this program has handled, now and then."""
        if self._reached and self.chance.random() < 0.3:
            cursor = self._reached
            await self._send("POST", "/ack", cursor=cursor)
            self.acked = max(self.acked, number(cursor))
