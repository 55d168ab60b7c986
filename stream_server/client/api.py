"""The HTTP calls that have a single answer: users, posts, follows and long polling."""

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Self
from urllib.parse import quote

import aiohttp
import msgspec

from stream_server.client.backoff import Backoff
from stream_server.client.errors import Malformed, RequestRefused, Unreachable, parse_refusal
from stream_server.client.message import StreamMessage, parse_message

MAX_USERS_PER_CALL = 1000
"""Most accounts that :meth:`ApiClient.create_users` creates in one request; the server accepts no more."""


class ApiClient:
    """A client of one server's HTTP API, used as ``async with ApiClient(url, token) as api``.

    Requests are retried after a broken connection and after the statuses 429, 502, 503 and 504. Each write carries an
    ``Idempotency-Key``, so a retried write still takes effect once. The delay between attempts comes from ``backoff``
    and is at least the server's ``Retry-After``. ``repeats`` counts the retries.

    Every call raises :class:`RequestRefused` if the server answers with an error, :class:`Unreachable` if there is no
    answer, and :class:`Malformed` if the answer is not the expected JSON.
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
        """Configure the client; ``async with`` opens its connections.

        Args:
            url: The server's base URL, such as ``http://127.0.0.1:8000``.
            token: A JWT for all calls. None if calls pass their own token or need none.
            attempts: Most attempts for one request, the first included.
            seconds: Timeout of one attempt.
            connections: Most connections open at the same time.
            backoff: Delays between attempts; by default about 0.1 s, doubling up to 5 s.
        """
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
        """Create a user and return its JSON, with the members that only this user may see. The call needs no token."""
        body = {"login": login, "name": name, "email": email, "password": password}
        return _require_object(await self.request("POST", "/v1/users", body=body))

    async def log_in(self, login: str, password: str) -> dict[str, Any]:
        """Log in; return ``{token, token_type, expires_in, refresh_token, user}``. The client keeps no token."""
        return _require_object(await self.request("POST", "/v1/sessions", body={"login": login, "password": password}))

    async def me(self) -> dict[str, Any]:
        """Return the JSON of the user to whom the client's token belongs."""
        return _require_object(await self.request("GET", "/v1/users/me"))

    async def create_users(self, users: Sequence[tuple[str, str]], *, token: str | None = None) -> dict[str, str]:
        """Create a user for each pair of login and name. Return a dict from lower-case login to user id.

        A user whose login exists already is not changed, and is in the dict too. The token needs the scope ``admin``.
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
        """Post a status and return it. ``token`` and ``key`` have the same meaning as in :meth:`request`.

        ``more`` holds further members of the JSON body, such as ``location={"lon": …, "lat": …}``.
        """
        body = {"message": message, **more}
        return _require_object(await self.request("POST", "/v1/statuses", body=body, token=token, key=key))

    async def delete(self, status_id: str) -> None:
        """Delete one of the caller's own statuses."""
        await self.request("DELETE", f"/v1/statuses/{quote(status_id, safe='')}")

    async def follow(self, user_id: str) -> None:
        """Follow a user. Following a user again is not an error."""
        await self.request("PUT", f"/v1/users/me/following/{quote(user_id, safe='')}")

    async def unfollow(self, user_id: str) -> None:
        """Stop following a user. It is not an error if the caller does not follow that user."""
        await self.request("DELETE", f"/v1/users/me/following/{quote(user_id, safe='')}")

    async def poll_events(
        self, parameters: Mapping[str, str], *, since: str | None = None, wait: float = 25, limit: int = 100
    ) -> tuple[list[StreamMessage], str]:
        """Return up to ``limit`` (1 to 1,000) events after the cursor ``since``, and the cursor for the next call.

        If there is none yet, the call waits up to ``wait`` seconds (0 to 60) for one, then returns an empty list.
        Without ``since`` it returns only events after its own start. ``parameters`` are those of a stream, such as
        ``track``.
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
        """Send any request to the API; return the decoded JSON of the answer, or None if its body is empty.

        Args:
            method: The HTTP method.
            path: The path below the server's URL, such as ``/v1/statuses``.
            body: A value to send as JSON.
            query: Parameters to put into the URL.
            token: A JWT to use instead of the client's own.
            key: The ``Idempotency-Key`` of a write. The default, a random key, makes retries by this call safe. Pass
                your own key to make the write safe across several calls or runs of a program.
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
                is_temporary = isinstance(error, Unreachable) or error.is_temporary
                if failures >= self._attempts or not is_temporary:
                    raise
                self.repeats += 1
                await asyncio.sleep(self._backoff.delay(failures - 1, getattr(error, "retry_after", None)))

    async def _send_once(
        self, method: str, path: str, headers: dict[str, str], data: bytes | None, query: Mapping[str, str] | None
    ) -> Any:
        if self._session is None:
            raise RuntimeError("open the ApiClient with `async with` first")
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


def _decode_json(answer: bytes) -> Any:
    try:
        return msgspec.json.decode(answer) if answer else None
    except msgspec.DecodeError as error:
        raise Malformed(f"the answer is not JSON: {answer[:80]!r}") from error


def _require_object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise Malformed("the answer is not a JSON object")
    return answer
