"""What a test of the routes needs: requests in one line, users, and the state of Redis."""

import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.stream_server import tokens

PASSWORD = "correct horse"


@dataclass
class Answer:
    """One answer, read whole."""

    status: int
    headers: Any
    body: bytes

    @property
    def json(self) -> Any:
        """The body's value."""
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str | None]:
        """Status, code and parameter of a refusal, whose shape is checked with it."""
        assert set(self.json) == {"error"}, self.body
        error = self.json["error"]
        assert {"code", "message"} <= set(error) <= {"code", "message", "param", "column", "retry_after"}
        assert self.headers["Content-Type"] == "application/json; charset=utf-8"
        return self.status, error["code"], error.get("param")


class World:
    """A client and a look into Redis, by a client whose types do not tell which of its two kinds it is."""

    def __init__(self, session: aiohttp.ClientSession, looking: Any) -> None:
        self.session = session
        self.redis = looking

    async def call(self, method: str, path: str, sub: str | None = None, **more: Any) -> Answer:
        """One request, as the user ``sub`` with the scopes of a log-in, or with the headers given."""
        if sub is not None:
            more["headers"] = {"Authorization": f"Bearer {tokens.fresh(sub)}", **more.get("headers", {})}
        async with self.session.request(method, path, **more) as response:
            return Answer(response.status, response.headers, await response.read())

    async def user(self, login: str) -> str:
        """A new user's id."""
        new = {"login": login, "name": login.title(), "email": f"{login}@example.org", "password": PASSWORD}
        answer = await self.call("POST", "/v1/users", json=new)
        assert answer.status == 201, answer.body
        user_id: str = answer.json["id"]
        return user_id

    async def status(self, sub: str, message: str = "hello", **more: Any) -> str:
        """A new status' id."""
        answer = await self.call("POST", "/v1/statuses", sub, json={"message": message, **more})
        assert answer.status == 201, answer.body
        status_id: str = answer.json["id"]
        return status_id

    def state(self) -> tuple[int, int, dict[bytes, bytes]]:
        """How many keys, entries of the log and user ids there are: what a refusal must leave as it was."""
        return self.redis.dbsize(), self.redis.xlen("{core}:log"), self.redis.hgetall("{core}:meta")

    def kinds(self) -> list[str]:
        """The kinds of all entries of the log, in order."""
        return [entry[b"k"].decode() for _, entry in self.redis.xrange("{core}:log")]
