"""Fetches the public keys (a JWK set, RFC 7517) of another issuer of tokens from a URL.

The keys are fetched again every five minutes while tokens arrive, so a key that the issuer withdrew ends soon. While
the URL does not answer, the keys of the last fetch stay in use for an hour at most. An unknown key id (``kid``) in a
token causes a new fetch, at most once in 30 seconds, so made-up key ids cannot overload the URL. The fetch follows no
redirect, so the keys come from the configured host. It uses the HTTP proxy of the environment
(:mod:`stream_server.client.proxies`).
"""

import asyncio
import logging
import time
from collections.abc import Callable

import aiohttp

from stream_server.client.errors import InvalidAddress
from stream_server.client.proxies import proxy_for
from stream_server.config.settings import InvalidSetting
from stream_server.security.tokens import TokenAuthority

logger = logging.getLogger(__name__)

MIN_REFRESH_SECONDS = 30.0
"""Shortest time in seconds between two fetches."""

REFRESH_SECONDS = 300.0
"""Age in seconds of the keys at which the next token makes the server fetch them again, without waiting for them."""

MAX_KEY_AGE_SECONDS = 3600.0
"""Age in seconds of the keys from which they are not used: the issuer may have withdrawn one of them."""

MAX_KEY_SET_BYTES = 2**20


class KeySetUnusable(Exception):
    """Raised if the key set's URL answers with a status other than 200, or with over `MAX_KEY_SET_BYTES` bytes."""


class RemoteKeySet:
    """Fetches the key set (JWK set, RFC 7517) with whose keys ``authority`` verifies tokens.

    Create it in a running event loop, and close it. Raises InvalidSetting if the environment has a proxy that is none.
    """

    def __init__(self, url: str, authority: TokenAuthority, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._authority = authority
        self._monotonic = monotonic
        self._refreshed_at: float | None = None
        self._fetched_at: float | None = None
        self._refresh_task: asyncio.Task[None] | None = None
        self._refresh_lock = asyncio.Lock()
        timeout = aiohttp.ClientTimeout(total=5.0)  # of one fetch, from connecting to the last byte
        try:
            self._session = aiohttp.ClientSession(timeout=timeout, proxy=proxy_for(url))
        except InvalidAddress as error:
            raise InvalidSetting(str(error)) from None

    async def close(self) -> None:
        """Close the HTTP session and its connections, and cancel a running fetch."""
        if self._refresh_task is not None:
            self._refresh_task.cancel()
            await asyncio.gather(self._refresh_task, return_exceptions=True)
        await self._session.close()

    def lacks_key_for(self, token: str) -> bool:
        """Return whether the authority lacks the key of ``token``. It forgets keys that are too old."""
        if self._age_seconds > MAX_KEY_AGE_SECONDS:
            self._authority.forget_keys()
        return not self._authority.has_key_for(token)

    async def ensure_key_for(self, token: str) -> None:
        """Fetch the key set if the authority lacks the key of ``token``, at most every `MIN_REFRESH_SECONDS`.

        If a fetch fails, the method logs this and returns.
        """
        if self.lacks_key_for(token):
            async with self._refresh_lock:
                if self._may_fetch and not self._authority.has_key_for(token):
                    self._refresh_task = asyncio.create_task(self._refresh(), name="key set fetch")
                    await self._refresh_task
        elif self._age_seconds > REFRESH_SECONDS and self._may_fetch and not self._refresh_lock.locked():
            self._refresh_task = asyncio.create_task(self._refresh_alone(), name="key set refresh")

    @property
    def _age_seconds(self) -> float:
        return 0.0 if self._fetched_at is None else self._monotonic() - self._fetched_at

    @property
    def _may_fetch(self) -> bool:
        return self._refreshed_at is None or self._monotonic() - self._refreshed_at >= MIN_REFRESH_SECONDS

    async def _refresh_alone(self) -> None:
        async with self._refresh_lock:
            if self._may_fetch:
                await self._refresh()

    async def _refresh(self) -> None:
        """Fetch the key set and give it to the authority. If the fetch fails, log the failure and keep the old keys."""
        self._refreshed_at = self._monotonic()
        try:
            if self._authority.replace_keys(await self._fetch()):
                self._fetched_at = self._monotonic()
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeySetUnusable) as error:
            logger.warning("key set refresh failed, keeping the current keys: %s", type(error).__name__)

    async def _fetch(self) -> bytes:
        async with self._session.get(self._url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise KeySetUnusable
            document = bytearray()
            async for chunk in answer.content.iter_any():
                document += chunk
                if len(document) > MAX_KEY_SET_BYTES:
                    raise KeySetUnusable
            return bytes(document)
