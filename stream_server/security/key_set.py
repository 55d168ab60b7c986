"""The key set at a URL (RFC 7517), fetched for ``auth`` and kept while the URL is down.

A token that names an unknown key makes us look again, at most once in half a minute: whoever sends made-up
key names costs the URL nothing. No redirect is followed, so that the keys come from the configured host, and
the answer is bounded.
"""

import asyncio
import logging
import time
from collections.abc import Callable

import aiohttp

from stream_server.security.tokens import TokenAuthority

logger = logging.getLogger(__name__)

MIN_REFRESH_SECONDS = 30.0
"""The shortest time between two looks at the URL."""

FETCH_TIMEOUT_SECONDS = 5.0
"""For one look, from dialling to the last byte."""

MAX_KEY_SET_BYTES = 2**20
"""The longest key set that is read."""


class KeySetUnusable(Exception):
    """The URL answered something else than a key set with a key for us."""


class RemoteKeySet:
    """Keeps ``auth`` in keys from ``url``; make it inside the running loop, close it at the end."""

    def __init__(self, url: str, authority: TokenAuthority, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._authority = authority
        self._clock = clock
        self._refreshed_at: float | None = None
        self._refresh_lock = asyncio.Lock()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=FETCH_TIMEOUT_SECONDS))

    async def close(self) -> None:
        """Let go of the connection."""
        await self._session.close()

    async def ensure_key_for(self, token: str) -> None:
        """See to it that ``auth`` has the key that the token names, if the URL has it; never raises."""
        if self._authority.has_key_for(token):
            return
        async with self._refresh_lock:
            if not self._authority.has_key_for(token) and self._may_refresh():
                await self._refresh()

    def _may_refresh(self) -> bool:
        return self._refreshed_at is None or self._clock() - self._refreshed_at >= MIN_REFRESH_SECONDS

    async def _refresh(self) -> None:
        self._refreshed_at = self._clock()
        try:
            self._authority.replace_keys(await self._fetch())
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeySetUnusable) as error:
            logger.warning("the key set could not be fetched, the keys at hand stay: %s", type(error).__name__)

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
