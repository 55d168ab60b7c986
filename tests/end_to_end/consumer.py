"""One client of a stream: it opens it, reads all that comes, and can be asked what that was."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

import aiohttp

from tests.end_to_end.sse import EventStream, Lines

CONTROL = {"hello", "heartbeat", "warning", "gap", "effective", "goodbye"}
MEDIA = {"sse": "text/event-stream", "ndjson": "application/x-ndjson"}

Message = dict[str, Any]


class Consumer:
    """``messages`` grows while it reads; ``until`` waits for something to be among them."""

    def __init__(self, response: aiohttp.ClientResponse, framing: str) -> None:
        self.response = response
        self.parser = EventStream() if framing == "sse" else Lines()
        self.messages: list[Message] = []
        self.cut: Exception | None = None
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    @property
    def events(self) -> list[Message]:
        """The messages that are events, without the stream's own."""
        return [m for m in self.messages if m["kind"] not in CONTROL]

    @property
    def told(self) -> list[tuple[str, str]]:
        """(kind, id) of each event, as the reference says it."""
        return [named(event) for event in self.events]

    @property
    def cursor(self) -> str:
        """Where it is: the cursor of the last message of any kind."""
        return str(self.messages[-1]["cursor"])

    @property
    def ended(self) -> bool:
        """Whether the server has ended the stream."""
        return self._reading.done()

    def of(self, kind: str) -> list[Message]:
        """The messages of one kind."""
        return [m for m in self.messages if m["kind"] == kind]

    async def until(self, check: Callable[[Self], object], seconds: float = 20.0) -> Self:
        """Wait until ``check`` holds; raises AssertionError when it ends or nothing comes before that."""
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

    async def more(self, seconds: float = 20.0) -> Self:
        """Wait for one more message of any kind."""
        seen = len(self.messages)
        return await self.until(lambda c: len(c.messages) > seen, seconds)

    async def until_end(self, seconds: float = 10.0) -> Self:
        """Wait until the server has ended the stream; a stream that was cut off is told by ``cut``."""
        async with asyncio.timeout(seconds):
            await asyncio.wait({self._reading})
        return self

    async def reached(self, head: str, seconds: float = 30.0) -> Self:
        """Wait until the server says that all up to ``head`` has been sent."""
        return await self.until(lambda c: any(m["cursor"] == head for m in c.messages), seconds)

    async def close(self) -> None:
        """Leave."""
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
    """(kind, id of what it happened to): the status, or the target of a follow."""
    return event["kind"], event["status"]["id"] if "status" in event else event["target"]["id"]
