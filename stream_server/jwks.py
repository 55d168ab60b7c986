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

from stream_server.auth import Auth

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0
"""The shortest time between two looks at the URL."""

TIMEOUT_SECONDS = 5.0
"""For one look, from dialling to the last byte."""

MAX_BYTES = 2**20
"""The longest key set that is read."""


class KeySetUnusable(Exception):
    """The URL answered something else than a key set with a key for us."""


class KeySet:
    """Keeps ``auth`` in keys from ``url``; make it inside the running loop, close it at the end."""

    def __init__(self, url: str, auth: Auth, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._auth = auth
        self._clock = clock
        self._looked_at: float | None = None
        self._turn = asyncio.Lock()
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS))

    async def close(self) -> None:
        """Let go of the connection."""
        await self._session.close()

    async def provide(self, token: str) -> None:
        """See to it that ``auth`` has the key that the token names, if the URL has it; never raises."""
        if self._auth.knows(token):
            return
        async with self._turn:
            if not self._auth.knows(token) and self._may_look():
                await self._look()

    def _may_look(self) -> bool:
        return self._looked_at is None or self._clock() - self._looked_at >= AGAIN_SECONDS

    async def _look(self) -> None:
        self._looked_at = self._clock()
        try:
            self._auth.learn(await self._fetch())
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeySetUnusable) as error:
            logger.warning("the key set could not be fetched, the keys at hand stay: %s", type(error).__name__)

    async def _fetch(self) -> bytes:
        async with self._session.get(self._url, allow_redirects=False) as answer:
            if answer.status != 200:
                raise KeySetUnusable
            document = bytearray()
            async for chunk in answer.content.iter_any():
                document += chunk
                if len(document) > MAX_BYTES:
                    raise KeySetUnusable
            return bytes(document)
