"""The tokens that Redis called valid lately, so that most requests need no round trip for authentication.

Each change of a user's rights is a log entry. So Redis' answer about a token holds until the log names its user.
This process forgets a user

- when an entry of the log changes the user's rights: a revoked token, an ended session, a suspension, granted scopes;
- when it has made such a change itself, before it answers: then the change holds at once in this process.

It forgets all users when the log was rolled back or lost entries, and when the link to Redis was lost. It uses its
memory only if it has certainly received the log up to two intervals of the canary ago. Otherwise it asks Redis.

`TokenRecheck` checks the tokens of open streams again after a gap of the log, and now and then.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from stream_server.errors import ApiError
from stream_server.hub import disconnect as reasons
from stream_server.hub.client import Client
from stream_server.hub.hub import Hub
from stream_server.store.social.sessions import TOKENS_PER_CHECK, Sessions, TokenId, TokenValidity

MAX_USERS = 20_000
"""Number of users who are remembered, about 15 MB. The one who sent no request for longest is forgotten first."""

MAX_TOKENS_OF_USER = 8
"""Number of tokens of one user that are remembered, the latest ones."""

MAX_READER_TOKENS = 1_000
"""Number of reader tokens that are remembered. They have no user, so the memory has them under one empty id."""

MAX_KNOWN_SECONDS = 60.0
"""Seconds after which Redis is asked again in any case, for changes by hand that are not on the log."""

MAX_UNHEARD_CANARIES = 2
"""Intervals of the canary for which the memory is believed without another proof that the log was heard."""


class TokenSource(Protocol):
    """The store of the truth about tokens, see `Sessions`."""

    async def get_token_validity(self, token: TokenId, *, shared: bool = False) -> TokenValidity: ...


class TokenValidityCache:
    """Answers whether a token is valid, from memory if possible. It remembers valid tokens only.

    So each refusal comes from Redis, and a new user or the end of a suspension needs no log entry.
    """

    def __init__(
        self, source: TokenSource, heard_until: Callable[[], float], max_unheard_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``heard_until`` returns the ``monotonic`` time up to which the process has received the log: see `HeardLog`.

        A longer silence than ``max_unheard_seconds`` makes each request ask ``source``.
        """
        self._source = source
        self._heard_until = heard_until
        self._max_unheard_seconds = max_unheard_seconds
        self._monotonic = monotonic
        self._believed_until = -math.inf
        self._users: dict[str, dict[TokenId, tuple[TokenValidity, float]]] = {}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._users)

    async def get(self, token: TokenId) -> TokenValidity:
        """Return the validity of a token: from memory, else from Redis. Raises `Unavailable` if Redis is away."""
        return self.get_known(token) or await self.ask(token)

    def get_known(self, token: TokenId) -> TokenValidity | None:
        """Return the remembered validity of a token, or None if Redis must be asked."""
        tokens = self._users.get(token.uid)
        known = None if tokens is None else tokens.get(token)
        if tokens is None or known is None:
            return None
        now = self._monotonic()
        if now > self._believed_until:
            self._believed_until = self._heard_until() + self._max_unheard_seconds
        if now >= known[1] or now > self._believed_until:
            return None
        del self._users[token.uid]  # puts the user behind all that have sent nothing since
        self._users[token.uid] = tokens
        return known[0]

    def forget(self, user_id: str | None) -> None:
        """Forget a user whose rights may have changed; with None, all users.

        A running question's answer is not remembered.
        """
        self._changes += 1
        if user_id is None:
            self._users.clear()
            self._believed_until = -math.inf
        else:
            self._users.pop(user_id, None)

    async def ask(self, token: TokenId, *, shared: bool = False) -> TokenValidity:
        """Ask Redis for the validity of a token, and remember it if the token is valid.

        With ``shared``, the questions of many streams that open share a round trip. Raises `Unavailable` without an
        answer.
        """
        changes, asked_at = self._changes, self._monotonic()
        validity = await self._source.get_token_validity(token, shared=shared)
        # After a change in the meantime nobody knows whether Redis answered before it or after it.
        if changes == self._changes and validity.is_valid:
            tokens = self._users.pop(token.uid, {})
            tokens.pop(token, None)
            _make_room(tokens, MAX_TOKENS_OF_USER if token.uid else MAX_READER_TOKENS)
            _make_room(self._users, MAX_USERS)
            tokens[token] = validity, asked_at + min(MAX_KNOWN_SECONDS, validity.forgotten_in_seconds)
            self._users[token.uid] = tokens
        return validity


def _make_room(items: dict[Any, Any], maximum: int) -> None:
    """Remove the oldest items until there are fewer than ``maximum``."""
    while len(items) >= maximum:
        del items[next(iter(items))]


logger = logging.getLogger(__name__)

CHECK_SECONDS = 300.0
"""Interval in seconds between two checks of all streams."""

RETRY_SECONDS = 2.0
"""Seconds until a check that failed is done again."""


class TokenRecheck:
    """Disconnects the streams of one process whose tokens are no longer valid. ``ended_streams`` counts them."""

    def __init__(self, hub: Hub, sessions: Sessions) -> None:
        self._hub = hub
        self._sessions = sessions
        self.ended_streams = 0

    async def run(self) -> None:
        """Check the tokens of all streams when the hub has missed entries, and every few minutes, until cancelled."""
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
            validities = await self._sessions.get_token_validities(checked)
            for client, token, validity in zip(some, checked, validities, strict=True):
                if _token_id(client) == token:  # else a new token has replaced the checked one meanwhile
                    self._apply(client, validity)
            await asyncio.sleep(0.01)  # so that a check of many streams does not crowd Redis

    def _apply(self, client: Client, validity: TokenValidity) -> None:
        if client.disconnect_reason is not None:
            return
        if validity.suspended and validity.user_exists:
            client.disconnect(reasons.SUSPENDED)
        elif client.user_id in self._hub.restricted_accounts.gone:
            client.disconnect(reasons.ACCOUNT_DELETED)
        elif validity.revoked or not validity.user_exists:
            client.disconnect(reasons.TOKEN_REVOKED)
        self.ended_streams += client.disconnect_reason is not None


def _token_id(client: Client) -> TokenId:
    token = client.token
    return TokenId(client.user_id, token.jti, token.session, token.issued_at)
