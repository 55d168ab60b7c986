"""Sends one signed request to an endpoint of a user, and says how it went.

The signature is that of Standard Webhooks (https://www.standardwebhooks.com): HMAC-SHA256 of id, time and body, by each
secret. The server trusts nothing of the endpoint: it follows no redirect, reads few bytes of the answer, keeps no
cookie, and gives up at a deadline.
"""

import hmac
import ipaddress
import logging
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import NamedTuple

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from stream_server.errors import BadRequest
from stream_server.store.social.webhook_state import DeliveryOutcome
from stream_server.web.limits.client_address import read_networks
from stream_server.web.webhooks.addresses import AddressGuard, AddressRefused
from stream_server.web.webhooks.answers import BoundedResponse
from stream_server.web.webhooks.names import OWNER, Names

logger = logging.getLogger(__name__)

MAX_ANSWER_BYTES = 4096
"""Most bytes of an answer that are read. A longer one costs the endpoint its connection."""

MAX_URL_CHARS = 2000

KEEPALIVE_SECONDS = 30.0

_ENDS_IN_A_NUMBER = re.compile(r"(?:^|\.)(?:\d+|0x[\da-f]*)\.?$", re.ASCII | re.IGNORECASE)
"""A host of this form is no name: a browser takes `127.1` and `0x7f000001` for an address (WHATWG URL, §3.5)."""

USER_AGENT = "stream-server-webhooks"


class Message(NamedTuple):
    """A request: its id, which stays the same when it is repeated, its JSON, and the number of events in it."""

    id: str
    body: bytes
    events: int = 0


class Sent(NamedTuple):
    """The outcome of a request, and the beginning of the answer's body."""

    outcome: DeliveryOutcome
    answer: bytes = b""


class Sender:
    """Sends requests to endpoints. ``outcomes`` counts them by ``ok`` and ``failed``. Close it."""

    def __init__(
        self, networks: str, timeout_seconds: float, *, unix_time: Callable[[], float] = time.time,
        resolver: AbstractResolver | None = None,
    ) -> None:  # fmt: skip
        """``networks`` are those of the setting ``webhook_networks``. Raises `InvalidSetting` if one is none."""
        self._allowed = read_networks(networks, "--webhook-networks")
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds)
        self._unix_time = unix_time
        self._resolver = resolver or Names()
        self._sessions: dict[str, aiohttp.ClientSession] = {}
        self.outcomes = {"ok": 0, "failed": 0}

    async def close(self) -> None:
        """Close all connections."""
        for session in self._sessions.values():
            await session.close()
        await self._resolver.close()

    def check_url(self, text: str, param: str) -> None:
        """Raise BadRequest, which names ``param``, unless the text can be the URL of an endpoint."""
        try:
            url = URL(text)
            is_url = bool(url.host) and url.scheme in {"http", "https"} and url.port != 0
            is_url = is_url and (_is_address(url.host or "") or not _ENDS_IN_A_NUMBER.search(url.host or ""))
        except ValueError:
            is_url = False
        if not is_url or len(text) > MAX_URL_CHARS or not text.isascii() or not text.isprintable() or " " in text:
            raise BadRequest(f"an https URL of at most {MAX_URL_CHARS} ASCII characters", param=param)
        if url.user or url.password or url.raw_fragment:
            raise BadRequest("a URL without a user, a password or a fragment", param=param)
        if url.scheme == "http" and not self._allowed:
            raise BadRequest("an https URL: http is for addresses in --webhook-networks only", param=param)

    async def send(self, uid: str, url: str, message: Message, secrets: Sequence[str]) -> Sent:
        """Send ``message`` for a user, signed by each of ``secrets``.

        An endpoint that fails is an outcome, and raises nothing.
        """
        OWNER.set(uid)  # the task serves webhooks of this user only
        started = self._unix_time()
        status, error, answer = None, "", b""
        try:
            async with self._session_of(url).post(
                URL(url), data=message.body, headers=sign(message, int(started), secrets), allow_redirects=False
            ) as response:
                answer = await _read_some(response)
                status = response.status
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as failure:
            error = _describe(failure)
            if isinstance(cause := _cause_of(failure), OSError):
                logger.info("a webhook of user %s does not reach %s: %s", uid, URL(url).raw_host, cause)
        took_ms = max(0, round((self._unix_time() - started) * 1000))
        outcome = DeliveryOutcome(int(started * 1000), took_ms, message.events, status, error)
        self.outcomes["ok" if outcome.is_success else "failed"] += 1
        return Sent(outcome, answer)

    def _session_of(self, url: str) -> aiohttp.ClientSession:
        """Return the session for the scheme of ``url``. It is made when it is used first."""
        scheme = "http" if url[:5].lower() == "http:" else "https"
        if scheme not in self._sessions:
            guard = AddressGuard(self._allowed, only_allowed=scheme == "http")
            connector = aiohttp.TCPConnector(
                limit=0, resolver=self._resolver, socket_factory=guard.make_socket,
                keepalive_timeout=KEEPALIVE_SECONDS, use_dns_cache=False,
            )  # fmt: skip
            self._sessions[scheme] = aiohttp.ClientSession(
                connector=connector, response_class=BoundedResponse, read_bufsize=MAX_ANSWER_BYTES,
                timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False, auto_decompress=False,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            )  # fmt: skip
        return self._sessions[scheme]


def sign(message: Message, now: int, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers of a request that is sent at ``now``, in seconds since 1970: one signature for each secret."""
    signed = b"%b.%d.%b" % (message.id.encode(), now, message.body)
    signatures = (hmac.digest(b64decode(secret.removeprefix("whsec_")), signed, "sha256") for secret in secrets)
    return {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(now),
        "webhook-signature": " ".join(f"v1,{b64encode(one).decode()}" for one in signatures),
    }


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


async def _read_some(response: aiohttp.ClientResponse) -> bytes:
    """Read an answer up to :data:`MAX_ANSWER_BYTES`. Close the connection of a longer one."""
    found = bytearray()
    async for chunk in response.content.iter_any():
        found += chunk
        if len(found) > MAX_ANSWER_BYTES:
            response.close()
            break
    return bytes(found[:MAX_ANSWER_BYTES])


_REASONS: tuple[tuple[tuple[type[Exception], ...], str], ...] = (
    ((AddressRefused, aiohttp.ClientConnectorDNSError), "this host has no address that webhooks may reach"),
    ((aiohttp.ClientResponseError,), "the head of the answer is too long, or wrong"),
    ((aiohttp.ClientSSLError,), "the TLS certificate is not valid, or TLS failed"),
    ((TimeoutError,), "no answer in time"),
    ((aiohttp.InvalidURL,), "this URL names no host"),
    ((aiohttp.ClientConnectorError,), "no connection"),
)
"""Why there is no answer, by the types of exceptions. The first that fits counts."""


def _cause_of(failure: Exception) -> Exception:
    """Return the error of the system behind a failed connection, else the failure. It may name an inner address."""
    return failure.os_error if isinstance(failure, aiohttp.ClientConnectorError) else failure


def _describe(failure: Exception) -> str:
    """Return why there is no answer, without an address: a user may learn nothing of the network of the server.

    Nor may the text tell an unknown name from one that leads to an inner address.
    """
    cause = _cause_of(failure)
    fitting = (text for types, text in _REASONS if isinstance(failure, types) or isinstance(cause, types))
    return next(fitting, "the connection ended before the answer was complete")
