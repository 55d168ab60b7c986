"""The tokens that Redis called valid lately, so that most requests need no round trip for authentication.

Each change of a user's rights is a log entry. So Redis' answer about a token holds until the log names its user.
This process forgets a user

- when an entry of the log changes the user's rights: a revoked token, an ended session, a suspension, granted scopes;
- when it has made such a change itself, before it answers: then the change holds at once in this process.

It forgets all users when the log was rolled back or lost entries, and when the link to Redis was lost. It uses its
memory only if it has certainly received the log up to two intervals of the canary ago. Otherwise it asks Redis.
"""

import time
from collections.abc import Callable
from typing import Any, Protocol

from stream_server.store.social.sessions import TokenId, TokenStatus

MAX_USERS = 20_000
"""Number of users who are remembered, about 15 MB. The one who sent no request for longest is forgotten first."""

MAX_TOKENS_OF_USER = 8
"""Number of tokens of one user that are remembered, the latest ones."""

MAX_KNOWN_SECONDS = 60.0
"""Seconds after which Redis is asked again in any case, for changes by hand that are not on the log."""

MAX_UNHEARD_CANARIES = 2
"""Intervals of the canary for which the memory is believed without another proof that the log was heard."""


class TokenSource(Protocol):
    """The store of the truth about tokens, see `Sessions`."""

    async def get_token_status(self, token: TokenId, *, shared: bool = False) -> TokenStatus: ...


class TokenStatuses:
    """Answers whether a token is valid, from memory if possible. It remembers valid tokens only.

    So a refusal is always what Redis said at that moment, and a new user or an ended suspension needs no entry.
    """

    def __init__(
        self, source: TokenSource, heard_until: Callable[[], float], max_unheard_seconds: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """``heard_until`` returns the ``monotonic`` time up to which the process has received the log: see `HeardLog`.

        A longer silence than ``max_unheard_seconds`` makes each request ask ``source``.
        """
        self._source = source
        self._heard_until = heard_until
        self._max_unheard_seconds = max_unheard_seconds
        self._monotonic = monotonic
        self._users: dict[str, dict[TokenId, tuple[TokenStatus, float]]] = {}
        self._changes = 0

    def __len__(self) -> int:
        return len(self._users)

    async def get(self, token: TokenId) -> TokenStatus:
        """Return the status of a token: from memory, else from Redis. Raises `Unavailable` if Redis does not answer."""
        return self.get_known(token) or await self.ask(token)

    def get_known(self, token: TokenId) -> TokenStatus | None:
        """Return the remembered status of a token, or None if Redis must be asked."""
        tokens = self._users.get(token.uid)
        known = None if tokens is None else tokens.get(token)
        if tokens is None or known is None:
            return None
        now = self._monotonic()
        if now >= known[1] or now - self._heard_until() > self._max_unheard_seconds():
            return None
        del self._users[token.uid]  # puts the user behind all that have sent nothing since
        self._users[token.uid] = tokens
        return known[0]

    def forget(self, user_id: str | None) -> None:
        """Forget a user whose rights may have changed, or with None all users. A question under way is not kept."""
        self._changes += 1
        if user_id is None:
            self._users.clear()
        else:
            self._users.pop(user_id, None)

    async def ask(self, token: TokenId, *, shared: bool = False) -> TokenStatus:
        """Return the status that Redis has now, and remember it if it is valid. Raises `Unavailable`.

        With ``shared``, the questions of many streams that open share a round trip.
        """
        changes, asked_at = self._changes, self._monotonic()
        status = await self._source.get_token_status(token, shared=shared)
        # After a change in the meantime nobody knows whether Redis answered before it or after it.
        if changes == self._changes and status.is_valid:
            self._remember(token, status, asked_at + min(MAX_KNOWN_SECONDS, status.forgotten_in_seconds))
        return status

    def _remember(self, token: TokenId, status: TokenStatus, until: float) -> None:
        tokens = self._users.pop(token.uid, {})
        tokens.pop(token, None)
        _make_room(tokens, MAX_TOKENS_OF_USER)
        _make_room(self._users, MAX_USERS)
        tokens[token] = status, until
        self._users[token.uid] = tokens


def _make_room(items: dict[Any, Any], maximum: int) -> None:
    """Remove the oldest items until there is room for one more."""
    while len(items) >= maximum:
        del items[next(iter(items))]
