"""Sends the HTTP requests of a client. Repeats them where that is safe, and never makes a write happen twice.

The danger: a write whose answer is lost may have happened. Each write carries an ``Idempotency-Key``, so its repetition
is answered as the first attempt was. If all attempts fail, the caller must know whether one of them may have happened:
the last failure alone does not tell.

The delays between attempts grow with each failure, and are random so that clients spread out.
"""

import asyncio
import random
import ssl
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import urlsplit

import aiohttp
import msgspec

from stream_server.client.bounds import CONNECT_SECONDS, parse_retry_after, read_answer
from stream_server.client.errors import (
    InvalidAddress,
    Malformed,
    OutcomeUnknown,
    RequestRefused,
    Unreachable,
    parse_refusal,
    summary_of,
)
from stream_server.client.proxies import proxy_for, unreachable_by_answer
from stream_server.client.tokens import FixedToken


@dataclass(frozen=True, slots=True)
class Backoff:
    """Computes random delays before retries, which grow with the number of failures in a row.

    The upper limit of a delay is ``initial_seconds`` at first. Each failure doubles it, up to ``max_seconds``. The
    delay is random between half of the limit and the limit. ``random_source`` returns numbers from 0 to 1.
    """

    initial_seconds: float = 0.5
    max_seconds: float = 30.0
    random_source: Callable[[], float] = random.random

    def delay(self, failures: int, server_delay: float | None = None) -> float:
        """Return the seconds to wait before a retry, after ``failures`` earlier failures in a row.

        If the server asked for a delay (``server_delay``, in seconds), the result is that delay plus 0 to 25 %, or
        more, because the server may name the same delay to all clients.
        """
        nominal = min(self.max_seconds, self.initial_seconds * 2.0 ** min(failures, 32))
        delay = nominal * (0.5 + self.random_source() / 2)
        if server_delay is None:
            return delay
        return max(delay, server_delay * (1 + 0.25 * self.random_source()))


T = TypeVar("T")

MAX_OBEYED_DELAY_SECONDS = 60.0
"""Longest delay that a call waits for if the server asks for it. A longer one, such as that of a daily limit, is raised
with ``retry_after``: the caller may not want to wait for hours."""


class RequestOptions(TypedDict, total=False):
    """The options of a request, besides its method and path."""

    body: object
    """A value to send as JSON."""
    query: Mapping[str, str] | None
    """Parameters to put into the URL."""
    token: str | None
    """A token to use instead of the client's own; an empty text sends none."""
    key: str | None
    """The ``Idempotency-Key`` of a write. The default, a random key, makes the repetitions by this call safe. Your own
    key makes the write safe across several calls, or runs of a program."""
    seconds: float
    """Timeout of one attempt."""
    attempts: int
    """Most attempts, the first included."""
    is_read: bool
    """Whether a request that is no ``GET`` changes nothing, such as a question with a body: it has no key then."""
    is_once: bool
    """Whether to stop after an attempt that may have happened, because a repetition would do harm."""


class ClientOptions(TypedDict, total=False):
    """The options of a client."""

    attempts: int
    """Most attempts for one call, the first included; 6 by default."""
    seconds: float
    """Timeout of one attempt, 30 by default."""
    connections: int
    """Most connections open at the same time, apart from streams; 100 by default."""
    backoff: Backoff | None
    """Delays between attempts; by default about 0.1 s, doubling up to 5 s."""
    ssl_context: ssl.SSLContext | None
    """What TLS trusts, such as ``ssl.create_default_context(cafile="ca.pem")``. By default it trusts the authorities of
    the system, or those of ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` in the environment."""


class Transport:
    """The HTTP connections of one client, and its token.

    Attributes:
        url: The server's base URL, without a slash at the end.
        tokens: Where the token of a request comes from, unless the request brings its own.
        repeats: How many requests were sent again after a temporary failure.
    """

    def __init__(self, url: str, options: ClientOptions) -> None:
        self.url = check_address(url)
        self.tokens = FixedToken("")
        self.repeats = 0
        self._attempts = options.get("attempts", 6)
        self._seconds = options.get("seconds", 30.0)
        self._connections = options.get("connections", 100)
        self._backoff = options.get("backoff") or Backoff(initial_seconds=0.1, max_seconds=5.0)
        self._ssl = options.get("ssl_context") or True  # True is aiohttp's word for the default
        self._calls: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    def open(self) -> None:
        """Open the pools of connections. Streams have a pool of their own, so that they never block a call.

        Raises InvalidAddress if the environment has a proxy that is none.
        """
        proxy = proxy_for(self.url)
        calls, streams = (aiohttp.TCPConnector(limit=limit, ssl=self._ssl) for limit in (self._connections, 0))
        redirects = aiohttp.TraceConfig()
        redirects.on_request_redirect.append(_refuse_redirect)
        self._calls = aiohttp.ClientSession(connector=calls, proxy=proxy)
        self._streams = aiohttp.ClientSession(connector=streams, proxy=proxy, trace_configs=[redirects])

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._calls, self._streams):
            if session is not None:
                await session.close()
        self._calls = self._streams = None

    @property
    def stream_session(self) -> aiohttp.ClientSession:
        """The connections of streams. Raises RuntimeError unless the client is open."""
        if self._streams is None:
            raise RuntimeError("open the client with `async with` first")
        return self._streams

    async def call(self, kind: type[T], method: str, path: str, **options: Unpack[RequestOptions]) -> T:
        """Send a request, and return its answer as a ``kind``. Raises :class:`Malformed` if it has another form."""
        found: T = decode_answer(await self.request_raw(method, path, **options), kind)
        return found

    async def request(self, method: str, path: str, **options: Unpack[RequestOptions]) -> Any:
        """Send a request; return the decoded JSON of its answer, or None if that is empty."""
        answer = await self.request_raw(method, path, **options)
        return decode_answer(answer, Any) if answer else None

    async def request_raw(self, method: str, path: str, **options: Unpack[RequestOptions]) -> bytes:
        """Send a request until it succeeds, and return the body of its answer.

        Raises RequestRefused if the server refuses it, and Unreachable after the last attempt without an answer.
        """
        is_read, body = method == "GET" or options.get("is_read", False), options.get("body")
        key = "" if is_read else options.get("key") or uuid.uuid4().hex
        headers = {"Idempotency-Key": key} if key else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else msgspec.json.encode(body)
        failures, may_have_happened, is_renewed = 0, False, False
        while True:
            own_token = options.get("token")
            token = await self.tokens.get() if own_token is None else own_token
            try:
                return await self._send(
                    method, path, headers | ({"Authorization": f"Bearer {token}"} if token else {}), data, options
                )
            except (RequestRefused, Unreachable) as error:
                can_renew = own_token is None and self.tokens.can_renew and not is_renewed
                if can_renew and isinstance(error, RequestRefused) and error.code == "token_expired":
                    is_renewed = True  # the server refused the token before it did anything
                    self.tokens.discard(token)
                    continue
                may_have_happened = may_have_happened or error.may_have_happened
                failures += 1
                may_repeat = error.is_temporary and not (options.get("is_once", False) and may_have_happened)
                is_soon = (error.retry_after or 0.0) <= MAX_OBEYED_DELAY_SECONDS
                if failures < options.get("attempts", self._attempts) and may_repeat and is_soon:
                    self.repeats += 1
                    await asyncio.sleep(self._backoff.delay(failures - 1, error.retry_after))
                elif key and may_have_happened and not error.is_about_request:
                    raise OutcomeUnknown(key, error) from error
                else:
                    raise

    async def _send(
        self, method: str, path: str, headers: dict[str, str], data: bytes | None, options: RequestOptions
    ) -> bytes:
        """Send a request once, and return the body of its answer. Raises RequestRefused or Unreachable."""
        if self._calls is None:
            raise RuntimeError("open the client with `async with` first")
        seconds = options.get("seconds", self._seconds)
        timeout = aiohttp.ClientTimeout(total=seconds, connect=min(CONNECT_SECONDS, seconds))
        try:
            async with self._calls.request(
                method, self.url + path, headers=headers, data=data, params=options.get("query"),
                allow_redirects=False, timeout=timeout,
            ) as response:  # fmt: skip
                answer = await read_answer(response)
        except aiohttp.ClientResponseError as error:
            raise unreachable_by_answer(self.url, error) from None
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as error:
            raise Unreachable(_no_answer(self.url, error), may_have_happened=False) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(_no_answer(self.url, error)) from error
        if not 200 <= response.status < 300:
            raise parse_refusal(response.status, parse_retry_after(response.headers.get("Retry-After")), answer)
        return answer


async def _refuse_redirect(_session: object, _context: object, seen: aiohttp.TraceRequestRedirectParams) -> None:
    """Raise RequestRefused for the redirect of a WebSocket, which aiohttp would follow. Others are answers here."""
    seen.response.close()
    raise parse_refusal(seen.response.status, None, b"a redirect, which the client does not follow")


def check_address(url: str) -> str:
    """Return the URL without a slash at its end. Raises InvalidAddress unless it is ``http://HOST`` or ``https://HOST``.

    A port and a path may follow. The scheme is not guessed: a token must not travel unencrypted by mistake.
    """
    shown = repr(url.rpartition("@")[2])  # a URL with a password is refused without it
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if "://" not in url and url:
        raise InvalidAddress(f"the address {shown} has no scheme: write http://{shown[1:-1]} or https://{shown[1:-1]}")
    if not has_host or parts.scheme not in {"http", "https"}:
        raise InvalidAddress(f"{shown} is not the address of a server, such as http://127.0.0.1:8000")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise InvalidAddress(f"{shown} has a user, a query or a fragment: write it as http://127.0.0.1:8000")
    return url.rstrip("/")


def decode_answer(answer: bytes, kind: Any, member: str = "") -> Any:
    """Return the JSON of an answer, or of one ``member`` of it, as a ``kind``.

    Raises :class:`Malformed` if it has another form.
    """
    try:
        if member:
            answer = msgspec.json.decode(answer, type=dict[str, msgspec.Raw]).get(member, b"null")
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(f"not an answer of a stream-server ({error}): {summary_of(answer)}") from error


def _no_answer(url: str, error: Exception) -> str:
    return f"{url} gave no answer: {str(error) or type(error).__name__}"
