"""The calls that answer once: people, posts, follows, long polling."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import msgspec

from stream_server.client.backoff import Backoff
from stream_server.client.errors import ClientFailure, Malformed, RequestRefused, Unreachable, parse_refusal
from stream_server.client.message import StreamMessage, parse_message

MAX_USERS_PER_CALL = 1000
"""Accounts made by one call of :meth:`ApiClient.create_users`, the most that the server takes."""


class ApiClient:
    """The HTTP API of one server, as ``async with ApiClient(url, token) as api``.

    A write carries an ``Idempotency-Key``, so that it may be repeated until it was answered and still happens once:
    it is sent up to ``attempts`` times where the server is unwell (503, 429, a broken connection), after the time
    that the server names or ``backoff`` draws.

    Each call raises ``RequestRefused`` for an error of the server, ``Unreachable`` where there was no answer, ``Malformed``
    for one that is no JSON. ``seconds`` bounds one attempt, ``connections`` how many go on at once.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        attempts: int = 6,
        seconds: float = 30.0,
        connections: int = 100,
        backoff: Backoff | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.repeats = 0
        self._token = token
        self._attempts = attempts
        self._timeout = aiohttp.ClientTimeout(total=seconds)
        self._connections = connections
        self._backoff = backoff or Backoff(initial_seconds=0.1, max_seconds=5.0)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=self._connections)
        self._session = aiohttp.ClientSession(timeout=self._timeout, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def sign_up(self, login: str, name: str, email: str, password: str) -> dict[str, Any]:
        """A new user, as the user sees themself."""
        body = {"login": login, "name": name, "email": email, "password": password}
        return _require_object(await self.request("POST", "/v1/users", body=body))

    async def log_in(self, login: str, password: str) -> dict[str, Any]:
        """``{token, token_type, expires_in, refresh_token, user}``."""
        return _require_object(await self.request("POST", "/v1/sessions", body={"login": login, "password": password}))

    async def me(self) -> dict[str, Any]:
        """The user whose token this is."""
        return _require_object(await self.request("GET", "/v1/users/me"))

    async def create_users(self, users: Sequence[tuple[str, str]], *, token: str | None = None) -> dict[str, str]:
        """Accounts for (login, name) pairs, made in batches (scope ``admin``): login in lower case → user id.

        A login that is taken gives the id of whoever has it.
        """
        ids = {}
        for start in range(0, len(users), MAX_USERS_PER_CALL):
            batch = [{"login": login, "name": name} for login, name in users[start : start + MAX_USERS_PER_CALL]]
            answer = _require_object(await self.request("POST", "/v1/admin/users", body={"users": batch}, token=token))
            ids.update({str(user["login"]).lower(): str(user["id"]) for user in answer["users"]})
        return ids

    async def post(
        self, message: str, *, token: str | None = None, key: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """A new status; ``more`` are the other members of the body (``location={"lon": …, "lat": …}`` …)."""
        body = {"message": message, **more}
        return _require_object(await self.request("POST", "/v1/statuses", body=body, token=token, key=key))

    async def delete(self, status_id: str) -> None:
        """Delete one's own status."""
        await self.request("DELETE", f"/v1/statuses/{quote(status_id, safe='')}")

    async def follow(self, user_id: str) -> None:
        """Follow somebody; following them already is no error."""
        await self.request("PUT", f"/v1/users/me/following/{quote(user_id, safe='')}")

    async def unfollow(self, user_id: str) -> None:
        """Follow somebody no more."""
        await self.request("DELETE", f"/v1/users/me/following/{quote(user_id, safe='')}")

    async def poll_events(
        self, parameters: Mapping[str, str], *, since: str | None = None, wait: float = 25, limit: int = 100
    ) -> tuple[list[StreamMessage], str]:
        """One long poll: what matched after ``since``, and the cursor for the next one.

        It answers as soon as there is something, or empty after ``wait`` seconds (0 to 60).
        """
        query = {**parameters, "wait": f"{wait:g}", "limit": str(limit), **({} if since is None else {"since": since})}
        answer = _require_object(await self.request("GET", "/v1/events", query=query))
        return [parse_message(msgspec.json.encode(event)) for event in answer["events"]], str(answer["cursor"])

    async def request(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, str] | None = None,
        token: str | None = None,
        key: str | None = None,
    ) -> Any:
        """Any call: the decoded JSON of its answer, None where there is none.

        ``key`` makes a write that is repeated by somebody else (another run of a program) the same write.
        """
        headers = {"Authorization": f"Bearer {token or self._token}"} if token or self._token else {}
        if method != "GET":
            headers["Idempotency-Key"] = key or uuid.uuid4().hex
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else msgspec.json.encode(body)
        failures = 0
        while True:
            try:
                return await self._send_once(method, path, headers, data, query)
            except (RequestRefused, Unreachable) as error:
                failures += 1
                if failures >= self._attempts or not _is_temporary(error):
                    raise
                self.repeats += 1
                await asyncio.sleep(self._backoff.delay(failures - 1, getattr(error, "retry_after", None)))

    async def _send_once(
        self, method: str, path: str, headers: dict[str, str], data: bytes | None, query: Mapping[str, str] | None
    ) -> Any:
        if self._session is None:
            raise RuntimeError("an ApiClient is opened by `async with`")
        try:
            async with self._session.request(
                method, self.url + path, headers=headers, data=data, params=query, allow_redirects=False
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(f"{self.url} gave no answer: {str(error) or type(error).__name__}") from error
        if not 200 <= response.status < 300:
            raise parse_refusal(response.status, response.headers.get("Retry-After"), answer)
        return _decode_json(answer)


def _is_temporary(error: ClientFailure) -> bool:
    return isinstance(error, Unreachable) or (isinstance(error, RequestRefused) and error.is_temporary)


def _decode_json(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer) if answer else None
    except msgspec.DecodeError as error:
        raise Malformed(f"an answer that is no JSON: {answer[:80]!r}") from error


def _require_object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise Malformed("an answer that is no JSON object")
    return answer
