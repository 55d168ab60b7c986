"""A running server under attack, and an honest client that measures what it notices of the attack."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.end_to_end.api import SCOPES, Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.server import Server

HONEST_ADDRESS, ATTACKING_ADDRESS = "198.51.100.7", "203.0.113.9"
"""Addresses that the trusted proxy in front of the server names: all clients of a test come from this machine."""


class Seen(NamedTuple):
    """The effects of an attack.

    Attributes:
        blocked: Longest time in seconds that the event loop of the server was blocked.
        rounds: Number of the honest client's rounds during the attack.
    """

    blocked: float
    rounds: int


@dataclass
class HonestClient:
    """Posts, reads, and receives its post on a stream, again and again."""

    api: Api
    uid: str
    stream: Consumer

    @classmethod
    async def arrive(cls, api: Api) -> "HonestClient":
        uid = await api.user()
        return cls(api, uid, await api.stream({"follow": uid}, uid=uid))

    async def round(self) -> None:
        """One post, its arrival on the stream, and one read. Fails if an answer is no success or the stream ends.

        The client does in a second what a person does in a minute, so its token has no limit of writes.
        """
        headers = {"X-Forwarded-For": HONEST_ADDRESS}
        token, body = mint(self.uid, f"{SCOPES} ingest"), {"message": f"honest {uuid.uuid4().hex}"}
        posted = await self.api.done("POST", "/v1/statuses", token=token, json=body, headers=headers)
        await self.stream.until(lambda c: any(e["status"]["id"] == posted["id"] for e in c.events[-5:]))
        await self.api.done("GET", "/v1/users/me", token=token, headers=headers)


class Arena:
    """A server, its API, and an honest client."""

    def __init__(self, server: Server, api: Api, honest: HonestClient) -> None:
        self.server = server
        self.api = api
        self.honest = honest

    async def suffer(self, attack: Callable[[Api], Awaitable[object]]) -> Seen:
        """Run the attack while the honest client goes on. Return what was seen."""
        attacking = asyncio.ensure_future(attack(self.api))
        rounds = 0
        while not attacking.done() or not rounds:
            await self.honest.round()
            rounds += 1
        await attacking
        assert not self.honest.stream.ended
        return Seen(await self.api.metric("loop_longest_blocked_seconds"), rounds)


@asynccontextmanager
async def arena(folder: Path, *flags: str, defended: bool, limits: str = "on") -> AsyncIterator[Arena]:
    """Run a server during the block, with its defences and these limits, or without all of them."""
    module = "stream_server" if defended else "tests.attacks.undefended"
    options = ("--limits", limits, "--trusted-proxies", "127.0.0.1", "--operations", "open") if defended else ()
    async with Server(folder, *options, *flags, module=module) as server, Api(server) as api:
        honest = await HonestClient.arrive(api)
        yield Arena(server, api, honest)
        await honest.stream.close()
        metrics = (await api.call("GET", "/metrics")).body.decode()
    assert_no_secrets(server.log + metrics)


def assert_no_secrets(text: str) -> None:
    """Check that logs and metrics have no token, password or e-mail address of the tests."""
    for secret in ("eyJ", "correct horse", "@example.com", "a wrong password"):
        assert secret not in text, text[max(0, text.find(secret) - 200) :][:400]
