"""Checks the tokens of open streams again: after a gap of the log, which may hide a revocation, and now and then.

A stream's token is checked when the stream opens, and later revocations arrive through the log. If the log lost
entries, or trimmed them before this process read them, a stream could outlive its right.
"""

import asyncio
import logging
from contextlib import suppress

from stream_server.errors import ApiError
from stream_server.hub import disconnect as reasons
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.store.social.sessions import TOKENS_PER_CHECK, Sessions, TokenId, TokenStatus

logger = logging.getLogger(__name__)

CHECK_SECONDS = 300.0
"""Interval in seconds between two checks of all streams."""

RETRY_SECONDS = 2.0
"""Seconds until a check that failed is done again."""

BATCH_PAUSE_SECONDS = 0.01
"""Pause in seconds between two round trips, so that a check of many streams does not crowd Redis."""


class TokenRecheck:
    """Disconnects the streams of one process whose tokens are no longer valid. ``ended_streams`` counts them."""

    def __init__(self, hub: Hub, sessions: Sessions) -> None:
        self._hub = hub
        self._sessions = sessions
        self.ended_streams = 0

    async def run(self) -> None:
        """Check after each gap of the log, and every few minutes, until cancelled."""
        seconds = CHECK_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._hub.entries_missed.wait()
            self._hub.entries_missed.clear()
            try:
                await self.check_all()
                seconds = CHECK_SECONDS
            except ApiError as error:
                logger.debug("tokens of streams are checked later: %s", error.message)
                seconds = RETRY_SECONDS

    async def check_all(self) -> None:
        """Check the tokens of all streams. Raises `Unavailable` if Redis does not answer."""
        clients = self._hub.registry.list_clients()
        for start in range(0, len(clients), TOKENS_PER_CHECK):
            some = clients[start : start + TOKENS_PER_CHECK]
            checked = [_token_id(client) for client in some]
            statuses = await self._sessions.get_token_statuses(checked)
            for client, token, status in zip(some, checked, statuses, strict=True):
                if _token_id(client) == token:  # else a new token has replaced the checked one meanwhile
                    self._apply(client, status)
            await asyncio.sleep(BATCH_PAUSE_SECONDS)

    def _apply(self, client: Client, status: TokenStatus) -> None:
        if client.disconnect_reason is not None:
            return
        if status.suspended:
            client.disconnect(reasons.SUSPENDED)
        elif status.revoked or not status.user_exists:
            client.disconnect(reasons.TOKEN_REVOKED)
        self.ended_streams += client.disconnect_reason is not None


def _token_id(client: Client) -> TokenId:
    token = client.token
    return TokenId(client.request.user_id, token.jti, token.session, token.issued_at)
