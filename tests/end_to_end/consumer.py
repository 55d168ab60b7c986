"""A client that opens one stream, reads all messages and lets a test wait for them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

import aiohttp

from tests.end_to_end.sse import EventStream, Lines
from tests.waiting import PATIENCE

CONTROL = {"hello", "heartbeat", "warning", "gap", "effective", "goodbye"}
MEDIA = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}

Message = dict[str, Any]


class Consumer:
    """A client of a stream. Its task adds each message to ``messages``; :meth:`until` waits for a condition."""

    def __init__(self, response: aiohttp.ClientResponse, framing: str) -> None:
        self.response = response
        self.parser = EventStream() if framing == "sse" else Lines()
        self.messages: list[Message] = []
        self.cut: Exception | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def events(self) -> list[Message]:
        return [m for m in self.messages if m["kind"] not in CONTROL]

    @property
    def received(self) -> list[tuple[str, str]]:
        return [named(event) for event in self.events]

    @property
    def cursor(self) -> str:
        """The cursor of the last message of any kind."""
        return str(self.messages[-1]["cursor"])

    @property
    def ended(self) -> bool:
        return self._reading.done()

    def of(self, kind: str) -> list[Message]:
        return [m for m in self.messages if m["kind"] == kind]

    async def until(self, check: Callable[[Self], object], seconds: float = PATIENCE) -> Self:
        """Wait until ``check`` is true. Raises AssertionError if the stream ends first or the time runs out."""
        try:
            async with asyncio.timeout(seconds):
                while not check(self):
                    assert not self.ended, f"the stream ended ({self.cut!r}) after {self.messages[-3:]}"
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(
                f"not in {seconds} s; the last of {len(self.messages)}: {self.messages[-3:]}"
            ) from None
        return self

    async def more(self, seconds: float = PATIENCE) -> Self:
        seen = len(self.messages)
        return await self.until(lambda c: len(c.messages) > seen, seconds)

    async def until_end(self, seconds: float = PATIENCE) -> Self:
        """Wait until the server ends the stream. If the connection broke, ``cut`` is the exception."""
        async with asyncio.timeout(seconds):
            await asyncio.wait({self._reading})
        return self

    async def reached(self, head: str, seconds: float = PATIENCE) -> Self:
        """Wait until a cursor shows that the server has sent everything up to ``head``."""
        return await self.until(lambda c: any(m["cursor"] == head for m in c.messages), seconds)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
        self.response.close()
        if not self._reading.cancelled() and self._reading.exception() is not None:
            raise AssertionError("what came was broken") from self._reading.exception()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _read(self) -> None:
        try:
            async for chunk in self.response.content.iter_any():
                self.messages.extend(self.parser.feed(chunk))
                self._news.set()
        except aiohttp.ClientError as error:
            self.cut = error
        finally:
            self._news.set()


def named(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of an event and the id of its status, or of the target of a follow."""
    return event["kind"], event["status"]["id"] if "status" in event else event["target"]["id"]


def number(cursor: str) -> int:
    """Return the contiguous number in a cursor. A real client must not interpret cursors."""
    return int(cursor.rpartition(".")[2])
