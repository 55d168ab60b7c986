"""A key set at a URL (RFC 7517), fetched for the token authority and kept while the URL does not answer.

An unknown key name in a token causes a new fetch, at most once in 30 seconds, so made-up key names cannot overload the
URL. The fetch follows no redirect, so the keys come from the configured host. The answer has a size limit.
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
"""Timeout of one fetch in seconds, from connecting to the last byte."""

MAX_KEY_SET_BYTES = 2**20
"""Longest key set in bytes."""


class KeySetUnusable(Exception):
    """The URL did not answer with a key set of allowed size."""


class RemoteKeySet:
    """Keeps the token authority's keys up to date from ``url``.

    Make it inside the running loop and close it at the end.
    """

    def __init__(self, url: str, authority: TokenAuthority, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._authority = authority
        self._clock = clock
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=FETCH_TIMEOUT_SECONDS))

    async def close(self) -> None:
        """Close the HTTP connection."""
        await self._session.close()

    async def ensure_key_for(self, token: str) -> None:
        """Fetch the key set if the token names a key that the authority lacks. This method never raises."""
        if self._authority.has_key_for(token):
            return
        async with self._refresh_lock:
            if not self._authority.has_key_for(token) and self._may_refresh():
                await self._refresh()

    def _may_refresh(self) -> bool:
        """Return whether the last fetch is long enough ago."""
        return self._refreshed_at is None or self._clock() - self._refreshed_at >= MIN_REFRESH_SECONDS

    async def _refresh(self) -> None:
        """Fetch the key set and give it to the authority; on failure log that and keep the current keys."""
        self._refreshed_at = self._clock()
        try:
            self._authority.replace_keys(await self._fetch())
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeySetUnusable) as error:
            logger.warning("key set refresh failed, keeping the current keys: %s", type(error).__name__)

    async def _fetch(self) -> bytes:
        """Return the body that the URL answers with; raises :class:`KeySetUnusable` or an error of the HTTP client."""
        async with self._session.get(self._url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise KeySetUnusable
            document = bytearray()
            async for chunk in answer.content.iter_any():
                document += chunk
                if len(document) > MAX_KEY_SET_BYTES:
                    raise KeySetUnusable
            return bytes(document)
