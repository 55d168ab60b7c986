"""An endpoint of a webhook: it verifies each request by PyPI's `standardwebhooks`, and fails as a test wants."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

from tests.contracts.stream_messages import webhook_violations

Behaviour = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Received(NamedTuple):
    """One request whose signature is right."""

    id: str
    body: Any
    answered: int


async def accept(_: web.Request) -> web.StreamResponse:
    return web.Response(status=204)


def answer(status: int, **headers: str) -> Behaviour:
    async def behave(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return behave


async def hang(_: web.Request) -> web.StreamResponse:
    """Answer nothing. The client gives up, and the task is cancelled."""
    await asyncio.Event().wait()
    raise AssertionError


async def reset(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


class Endpoint:
    """An HTTP server on a free port of 127.0.0.1.

    Attributes:
        received: The requests with events, and tests, in their order.
        secrets: The secrets that verify them. Without one, nothing is verified.
        faults: What the next requests do, after the challenges. When it is empty, they are accepted.
        unverified: The number of requests whose signature was wrong.
        undescribed: What in the requests is not as the OpenAPI document says.
    """

    def __init__(self, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        self.received: list[Received] = []
        self.undescribed: list[str] = []
        self.secrets: list[str] = []
        self.faults: list[Behaviour] = []
        self.behaviour: Behaviour = accept
        self.unverified = self.challenges = self.open = self.most_open = 0
        self.challenge_answer: Callable[[str], str] = str
        self._runner: web.AppRunner | None = None
        self._port = port
        self._tls = tls

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}/hook"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        assert self.undescribed == []

    async def start(self) -> None:
        """Listen, on the same port if it has listened before."""
        app = web.Application()
        app.router.add_post("/hook", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, ssl_context=self._tls)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Die: the port refuses connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def statuses(self) -> list[str]:
        """The ids of the posts in the requests that were answered with 2xx, in their order."""
        return [
            event["status"]["id"]
            for one in self.received
            if one.answered < 300
            for event in one.body["events"]
            if event["kind"] == "post"
        ]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        message = json.loads(body)
        self.undescribed += webhook_violations(message, request.headers)
        if message["type"] == "challenge":
            self.challenges += 1
            return web.Response(text=self.challenge_answer(message["challenge"]))
        if self.secrets and not self._is_signed(body, dict(request.headers)):
            self.unverified += 1
            return web.Response(status=401)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        behave = self.faults.pop(0) if self.faults else self.behaviour
        at = len(self.received)
        self.received.append(Received(request.headers["webhook-id"], message, 999))
        try:
            response = await behave(request)
        finally:
            self.open -= 1
        status = 999 if behave is reset else response.status
        self.received[at] = self.received[at]._replace(answered=status)
        return response

    def _is_signed(self, body: bytes, headers: dict[str, str]) -> bool:
        for secret in self.secrets:
            try:
                Webhook(secret).verify(body, headers)
            except WebhookVerificationError:
                continue
            return True
        return False
