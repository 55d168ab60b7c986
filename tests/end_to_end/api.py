"""The server's HTTP API as tests use it. The tests sign their tokens themselves."""

import json
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Self, TypeVar

import aiohttp
import jwt
from multidict import CIMultiDictProxy

from tests.end_to_end.consumer import MEDIA, Consumer
from tests.end_to_end.server import SECRET, Server
from tests.waiting import PATIENCE, eventually

T = TypeVar("T")

SCOPES = "read write stream firehose"

BRIEF_SECONDS = (1.0, 4.0, 16.0)
"""The lives of tokens that a test waits to see the end of. The later ones are for a slow machine."""


def mint(sub: str, scope: str = SCOPES, ttl: float = 600, *, secret: str = SECRET, **claims: Any) -> str:
    """Return a token with all scopes. ``claims`` replace the default claims."""
    now = time.time()
    all_claims = {
        "sub": sub, "iss": "stream-server", "aud": "stream-server", "iat": int(now), "exp": now + ttl,
        "jti": uuid.uuid4().hex, "scope": scope,
    } | claims  # fmt: skip
    return sign(all_claims, secret)


async def with_brief_token(uid: str, use: Callable[[str], Awaitable[T]]) -> T:
    """Return what ``use`` returns for a token that ends in a second, or in some more if it ended too early for it.

    ``use`` raises AssertionError for a token that has ended.
    """
    for seconds in BRIEF_SECONDS[:-1]:
        with suppress(AssertionError):
            return await use(mint(uid, ttl=seconds))
    return await use(mint(uid, ttl=BRIEF_SECONDS[-1]))


def sign(claims: Mapping[str, Any], secret: str = SECRET) -> str:
    """Return the claims as a token, without those that are None."""
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, secret, algorithm="HS256")


class Answer(NamedTuple):
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str | None]:
        """(status, code, param) of a refusal. Fails if the body has another shape than an error."""
        assert self.headers["Content-Type"] == "application/json; charset=utf-8", self
        assert set(self.json) == {"error"}, self
        error = self.json["error"]
        assert {"code", "message"} <= set(error) <= {"code", "message", "param", "column", "retry_after"}, self
        assert error["message"], self
        return self.status, error["code"], error.get("param")


class Api:
    """A session with a server. ``admin`` is the id of a user whose token has all scopes."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.session = aiohttp.ClientSession(
            base_url=server.address,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=60),
        )
        self.admin = ""

    async def __aenter__(self) -> Self:
        login = "a" + uuid.uuid4().hex[:12]
        self.admin = (await self.sign_up(login))["id"]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def call(self, method: str, path: str, *, token: str | None = None, **more: Any) -> Answer:
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with self.session.request(method, path, headers=headers, **more) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def done(self, method: str, path: str, *, token: str | None = None, **more: Any) -> Any:
        """Send a request that must succeed. Return its JSON."""
        answer = await self.call(method, path, token=token, **more)
        assert answer.status < 300, answer
        return answer.json if answer.body else None

    async def metric(self, name: str) -> float:
        """Return the sum of the samples of one metric in `/metrics`, of all workers."""
        return sum(await self.samples(name))

    async def samples(self, name: str) -> list[float]:
        """Return the samples of one metric in `/metrics`: one for each worker and set of labels."""
        rows = (await self.call("GET", "/metrics")).body.decode().splitlines()
        found = [row for row in rows if row.startswith((f"stream_server_{name} ", f"stream_server_{name}{{"))]
        assert found, name
        return [float(row.rpartition(" ")[2]) for row in found]

    async def until_metric(self, name: str, check: Callable[[float], bool], seconds: float = PATIENCE) -> None:
        async def passes() -> bool:
            return check(await self.metric(name))

        await eventually(passes, seconds=seconds, what=name)

    async def sign_up(self, login: str) -> dict[str, Any]:
        body = {"login": login, "name": login, "email": f"{login}@example.com", "password": "correct horse"}
        user: dict[str, Any] = await self.done("POST", "/v1/users", json=body)
        return user

    async def users(self, logins: Iterable[str]) -> dict[str, str]:
        """Create many users and return their ids by login."""
        wanted = [{"login": login, "name": login} for login in logins]
        token = mint(self.admin, "admin")
        made = []
        for start in range(0, len(wanted), 1000):
            body = {"users": wanted[start : start + 1000]}
            made += (await self.done("POST", "/v1/admin/users", token=token, json=body))["users"]
        return {user["login"]: user["id"] for user in made}

    async def user(self) -> str:
        """Create a user and return the id."""
        login = "u" + uuid.uuid4().hex[:12]
        return (await self.users([login]))[login]

    async def post(self, uid: str, message: str, **more: Any) -> dict[str, Any]:
        body = {"message": message} | more
        status: dict[str, Any] = await self.done("POST", "/v1/statuses", token=mint(uid), json=body)
        return status

    async def delete(self, uid: str, status_id: str) -> None:
        await self.done("DELETE", f"/v1/statuses/{status_id}", token=mint(uid))

    async def follow(self, uid: str, target: str) -> None:
        await self.done("PUT", f"/v1/users/me/following/{target}", token=mint(uid))

    async def unfollow(self, uid: str, target: str) -> None:
        await self.done("DELETE", f"/v1/users/me/following/{target}", token=mint(uid))

    async def stream(
        self,
        params: Mapping[str, str] | list[tuple[str, str]],
        *,
        uid: str | None = None,
        token: str | None = None,
        framing: str = "ndjson",
        last_event_id: str | None = None,
        path: str = "/v1/stream",
        **more: Any,
    ) -> Consumer:
        """Open a stream and read its `hello`. ``more`` (``data``, ``json``) makes the request a POST."""
        headers = {"Accept": MEDIA[framing], "Authorization": f"Bearer {token or mint(uid or self.admin)}"}
        headers["Accept-Encoding"] = "identity" if framing == "sse" else "gzip"  # so every test has both
        if last_event_id is not None:
            headers["Last-Event-ID"] = last_event_id
        method = "POST" if more else "GET"
        response = await self.session.request(method, path, params=params, headers=headers, **more)
        assert response.status == 200, (response.status, await response.text())
        assert response.content_type == MEDIA[framing]
        consumer = Consumer(response, framing)
        await consumer.until(lambda c: c.messages)
        assert consumer.messages[0]["kind"] == "hello"
        return consumer

    async def head(self) -> str:
        """Return the cursor of the newest entry of the log."""
        async with await self.stream({"firehose": "true"}) as consumer:
            return consumer.cursor

    async def poll(self, params: Mapping[str, str], *, uid: str | None = None, wait: float = 0) -> dict[str, Any]:
        query = {**params, "wait": f"{wait:g}"}
        page: dict[str, Any] = await self.done("GET", "/v1/events", token=mint(uid or self.admin), params=query)
        return page
