"""Clients that leave and return: some resume a stream by cursor, some poll."""

import asyncio
import random
from collections.abc import Mapping
from typing import Any, Self

from tests.end_to_end.api import Api
from tests.end_to_end.consumer import CONTROL, Consumer, Message
from tests.waiting import eventually


class Visitor:
    """A client that leaves and returns: its stream parameters, its cursor, and what it received in all visits."""

    def __init__(self, api: Api, params: Mapping[str, str], uid: str, *, seed: int) -> None:
        self.api = api
        self.params = dict(params)
        self.uid = uid
        self.cursor = ""
        self.visits = 0
        self.received: list[Message] = []
        self.chance = random.Random(seed)
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> Self:
        """Visit once, then leave and return until :meth:`end`."""
        await self._first()
        self._task = asyncio.create_task(self._live())
        return self

    async def end(self) -> None:
        """Stop. Raises the error of a failed visit."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.result()

    async def reached(self, head: str) -> None:
        await eventually(lambda: self._broken() or self.cursor == head, seconds=30, what=f"{self} to reach {head}")
        assert not self._broken(), self._task

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.params} at {self.cursor} on visit {self.visits}>"

    @property
    def events(self) -> list[Message]:
        return [m for m in self.received if m["kind"] not in CONTROL]

    def _broken(self) -> bool:
        return self._task is None or self._task.done()

    async def _first(self) -> None:
        raise AssertionError(f"{type(self)} says itself how it begins")

    async def _live(self) -> None:
        raise AssertionError(f"{type(self)} says itself how it lives")


class Returner(Visitor):
    """Reads a few events, leaves, and returns by its cursor: SSE as EventSource does it, NDJSON by ``since``."""

    def __init__(self, api: Api, params: Mapping[str, str], uid: str, framing: str, *, seed: int) -> None:
        super().__init__(api, params, uid, seed=seed)
        self.framing = framing

    async def _first(self) -> None:
        async with await self.api.stream(self.params, uid=self.uid, framing=self.framing) as consumer:
            self.cursor = consumer.cursor

    async def _live(self) -> None:
        while True:
            self.visits += 1
            async with await self._visit() as consumer:
                try:
                    await self._stay(consumer)
                finally:
                    # Messages and cursor are taken at one moment; what comes after it is read again on the next visit.
                    self.received += consumer.messages
                    self.cursor = consumer.cursor

    async def _stay(self, consumer: Consumer) -> None:
        patience = self.chance.randint(1, 30)
        while len(consumer.events) < patience:
            self.cursor = consumer.cursor
            await consumer.more()

    async def _visit(self) -> Consumer:
        if self.framing == "sse":
            # The URL is repeated with its first `since`; the header must win.
            params = {**self.params, "since": "-1h"}
            return await self.api.stream(params, uid=self.uid, framing="sse", last_event_id=self.cursor)
        return await self.api.stream({**self.params, "since": self.cursor}, uid=self.uid)


class Poller(Visitor):
    async def _first(self) -> None:
        page = await self.api.poll(self.params, uid=self.uid)
        assert page["events"] == []
        self.cursor = page["cursor"]

    async def _live(self) -> None:
        while True:
            self.visits += 1
            limit = str(self.chance.randint(1, 20))
            page: dict[str, Any] = await self.api.poll(
                {**self.params, "since": self.cursor, "limit": limit}, uid=self.uid, wait=0.5
            )
            assert len(page["events"]) <= int(limit)
            self.received += page["events"]
            self.cursor = page["cursor"]
