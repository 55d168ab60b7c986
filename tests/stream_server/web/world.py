"""A client of the routes, with users and the state of Redis."""

from collections.abc import Sequence
from typing import Any

import aiohttp
import pytest

from stream_server.web.route import Handler, Route
from tests.end_to_end import api
from tests.stream_server import tokens

PASSWORD = "correct horse"

Answer = api.Answer

Refusal = tuple[Any, int, str, str | None]
"""A body, and the status, code and parameter of its error."""


def replace_handler(monkeypatch: pytest.MonkeyPatch, path: str, handler: Handler) -> None:
    """Let ``handler`` answer the requests for the route ``path``."""
    slot = vars(Route)["handler"]  # the rows are frozen, and shared by all tests
    monkeypatch.setattr(Route, "handler", property(lambda row: handler if row.path == path else slot.__get__(row)))


class World:
    def __init__(self, session: aiohttp.ClientSession, looking: Any) -> None:
        self.session = session
        self.redis = looking

    async def call(self, method: str, path: str, sub: str | None = None, **more: Any) -> Answer:
        """Send one request, as the user ``sub`` with this ``scope``, by default that of a log-in."""
        scope = more.pop("scope", "read write stream")
        if sub is not None:
            more["headers"] = {"Authorization": f"Bearer {tokens.fresh(sub, scope)}", **more.get("headers", {})}
        async with self.session.request(method, path, **more) as response:
            return Answer(response.status, response.headers, await response.read())

    async def refuses(
        self, subtests: pytest.Subtests, method: str, path: str, sub: str, refusals: Sequence[Refusal]
    ) -> None:
        """Check that each body is refused with its status, code and parameter, and changes nothing."""
        before = self.state()
        for body, *refusal in refusals:
            with subtests.test(body=body):
                assert (await self.call(method, path, sub, json=body)).error == tuple(refusal)
                assert self.state() == before

    async def user(self, login: str) -> str:
        new = {"login": login, "name": login.title(), "email": f"{login}@example.org", "password": PASSWORD}
        answer = await self.call("POST", "/v1/users", json=new)
        assert answer.status == 201, answer.body
        user_id: str = answer.json["id"]
        return user_id

    async def status(self, sub: str, message: str = "hello", **more: Any) -> str:
        answer = await self.call("POST", "/v1/statuses", sub, json={"message": message, **more})
        assert answer.status == 201, answer.body
        status_id: str = answer.json["id"]
        return status_id

    def state(self) -> tuple[int, int, dict[bytes, bytes]]:
        """Return the number of keys and log entries and the counters, which an error must not change."""
        return self.redis.dbsize(), self.redis.xlen("{core}:log"), self.redis.hgetall("{core}:meta")

    def kinds(self) -> list[str]:
        return [entry[b"k"].decode() for _, entry in self.redis.xrange("{core}:log")]
