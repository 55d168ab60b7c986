"""Fetches the public keys (a JWK set, RFC 7517) of another issuer of tokens from a URL.

While the URL does not answer, the keys of the last fetch stay in use. An unknown key id (``kid``) in a token causes a
new fetch, at most once in 30 seconds, so made-up key ids cannot overload the URL. The fetch follows no redirect, so the
keys come from the configured host.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import aiohttp

from stream_server.security.tokens import TokenAuthority

logger = logging.getLogger(__name__)

MIN_REFRESH_SECONDS = 30.0
"""Shortest time in seconds between two fetches."""

FETCH_TIMEOUT_SECONDS = 5.0
MAX_KEY_SET_BYTES = 2**20
"""Bounds of one fetch, from connecting to the last byte."""


class KeySetUnusable(Exception):
    """Raised if the key set's URL answers with a status other than 200, or with over `MAX_KEY_SET_BYTES` bytes."""


class RemoteKeySet:
    """Fetches the keys with which ``authority`` verifies tokens. Create it in a running event loop, and close it."""

    def __init__(self, url: str, authority: TokenAuthority, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._authority = authority
        self._clock = clock
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=FETCH_TIMEOUT_SECONDS))

    async def close(self) -> None:
        """Close the HTTP session and its connections."""
        await self._session.close()

    async def ensure_key_for(self, token: str) -> None:
        """Fetch the key set if the authority lacks the key of ``token``, at most every `MIN_REFRESH_SECONDS`.

        If a fetch fails, the method logs this and returns.
        """
        if self._authority.has_key_for(token):
            return
        async with self._refresh_lock:
            may_fetch = self._refreshed_at is None or self._clock() - self._refreshed_at >= MIN_REFRESH_SECONDS
            if may_fetch and not self._authority.has_key_for(token):
                await self._refresh()

    async def _refresh(self) -> None:
        """Fetch the key set and give it to the authority. If the fetch fails, log the failure and keep the old keys."""
        self._refreshed_at = self._clock()
        try:
            self._authority.replace_keys(await self._fetch())
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
