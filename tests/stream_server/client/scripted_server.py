"""A scripted server: one prepared answer for each request, in order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from stream_server.client import Backoff
from tests.waiting import PATIENCE


@dataclass
class Answer:
    """Status, headers and chunks of one answer. With ``cut`` the server breaks the connection after them."""

    chunks: Sequence[bytes] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class Asked:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


class Scripted:
    """Plays ``answers``; further requests get a 410, so that no test continues on its own.

    The first ``hold`` connections are kept open after their answer, until the client leaves, and those of the path
    ``hold_path`` too.
    """

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []
        self.url = ""
        self.hold = 0
        self.hold_path = ""
        self._arrived = asyncio.Condition()
        self._gone = asyncio.Event()

    async def left(self) -> None:
        """Wait until a client has closed a connection that this server held open."""
        async with asyncio.timeout(PATIENCE):
            await self._gone.wait()

    async def until(self, count: int) -> None:
        """Wait until ``count`` requests have been asked."""
        async with asyncio.timeout(PATIENCE), self._arrived:
            await self._arrived.wait_for(lambda: len(self.asked) >= count)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.asked.append(Asked(request.method, request.path, dict(request.query), dict(request.headers), body))
        async with self._arrived:
            self._arrived.notify_all()
        answer = self.answers.pop(0) if self.answers else Answer([b"the script has ended"], 410)
        accepted = request.headers["Accept"]
        of_kind = {"Content-Type": accepted} if accepted != "*/*" else {}
        response = web.StreamResponse(status=answer.status, headers=of_kind | answer.headers)
        await response.prepare(request)
        for chunk in answer.chunks:
            await response.write(chunk)
        if answer.cut:
            assert request.transport is not None
            request.transport.abort()
        if len(self.asked) <= self.hold or request.path == self.hold_path:
            try:
                await asyncio.Event().wait()  # until the client leaves, which cancels this
            finally:
                self._gone.set()
        return response


@asynccontextmanager
async def scripted(*answers: Answer) -> AsyncIterator[Scripted]:
    script = Scripted(*answers)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", script.handle)
    async with TestServer(app) as server:
        script.url = str(server.make_url("")).rstrip("/")
        yield script


class RecordedBackoff(Backoff):
    """A backoff without delays that records its arguments: failures in a row, and the delay of the server."""

    __slots__ = ("waits",)

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "waits", [])

    waits: list[tuple[int, float | None]]

    def delay(self, failures: int, server_delay: float | None = None) -> float:
        self.waits.append((failures, server_delay))
        return 0.0


TIME = "2026-01-31T12:00:00.000Z"


def status(n: int, text: str) -> dict[str, str]:
    """Return a status with the members that every status has."""
    return {"id": str(n), "uid": "7", "login": "ada", "message": text, "posted": TIME}


def message(kind: str, n: int, **members: Any) -> bytes:
    """Return one message as the server writes it: event number ``n`` of its log."""
    shared = {"kind": kind, "cursor": f"1700000000000-0.{n}", "at": TIME}
    if kind == "hello":
        shared["connection"] = f"c{n}"
    return msgspec.json.encode({**shared, **members})


def sse(kind: str, n: int, *, retry: int | None = None, **members: Any) -> bytes:
    """Return the same message framed as a Server-Sent Event."""
    head = f"retry: {retry}\n" if retry is not None else ""
    fields = (n, kind.encode(), message(kind, n, **members))
    return head.encode() + b"id: 1700000000000-0.%d\nevent: %s\ndata: %s\n\n" % fields


def post(n: int) -> bytes:
    return sse("post", n, status=status(n, f"post {n}"))


def error(code: str, text: str = "because", **members: str) -> bytes:
    return msgspec.json.encode({"error": {"code": code, "message": text, **members}})
