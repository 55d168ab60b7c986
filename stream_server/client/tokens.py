"""The sources of a client's token, which renew it before it ends.

A token is renewed at 80 % of its lifetime. However many calls need the new token at the same time, it is fetched once:
a refresh token works only once, and its second use would end the session.
"""

import asyncio
import base64
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec

RENEWAL_SHARE = 0.8
"""The part of a token's lifetime after which the client gets the next one."""

RENEWAL_RETRY_SECONDS = 5.0
"""Seconds before another attempt, if a renewal failed while the token is still valid."""


class Grant(NamedTuple):
    """A token that was fetched, and the seconds from now to its renewal and expiry; 0 if its lifetime is unknown."""

    token: str
    renew_in: float = 0.0
    expires_in: float = 0.0


def clean_token(text: str) -> str:
    """Return a token without a byte order mark and line ends, which it has if it was read from a file."""
    return text.removeprefix("\ufeff").strip()


class FixedToken:
    """Gives the token for a request or a stream. This one cannot be renewed, and is empty for a client without one."""

    can_renew = False

    def __init__(self, token: str) -> None:
        self._token = clean_token(token)

    async def get(self) -> str:
        """Return a token that is still valid as far as the client knows."""
        return self._token

    def discard(self, token: str) -> None:
        """Do not return ``token`` again if there can be another, because the server says that it expired."""

    def seconds_to_renewal(self) -> float | None:
        """Return the seconds until the token should be replaced, 0 if that is due; None if it is unknown."""
        return None


class RenewedToken(FixedToken):
    """A token that ``fetch`` returns anew. It is used until 80 % of its lifetime, if that is known."""

    can_renew = True

    def __init__(self, fetch: Callable[[], Awaitable[Grant]], monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__("")
        self._fetch = fetch
        self._monotonic = monotonic
        self._renew_at = 0.0
        self._expires_at = 0.0
        self._renewal: asyncio.Task[None] | None = None

    async def get(self) -> str:
        """Return the token. Fetch it first if it is due; all callers wait for the same fetch.

        If the fetch fails while the present token is valid, return that one. Otherwise raise what the fetch raised.
        A caller that is cancelled does not cancel the fetch, because its refresh token may have been used by then.
        """
        if not self._token or self._monotonic() >= self._renew_at:
            if self._renewal is None:
                self._renewal = asyncio.create_task(self._renew(), name="token renewal")
                self._renewal.add_done_callback(self._forget_renewal)
            await asyncio.shield(self._renewal)
        return self._token

    def discard(self, token: str) -> None:
        if token == self._token:
            self._token = ""

    def seconds_to_renewal(self) -> float | None:
        if not self._token or self._expires_at <= self._monotonic():
            return None
        return max(0.0, self._renew_at - self._monotonic())

    async def finish(self) -> None:
        """Wait for a renewal in progress, so that no refresh token is lost half-way."""
        if self._renewal is not None:
            await asyncio.wait([self._renewal])

    async def _renew(self) -> None:
        try:
            grant = await self._fetch()
        except Exception:  # a function of the user may raise anything
            if not self._token or self._monotonic() >= self._expires_at:
                raise
            self._renew_at = self._monotonic() + RENEWAL_RETRY_SECONDS
            return
        is_same = grant.token == self._token and grant.expires_in > 0
        self._renew_at = self._monotonic() + max(grant.renew_in, RENEWAL_RETRY_SECONDS if is_same else 0.0)
        self._expires_at = self._monotonic() + grant.expires_in
        self._token = grant.token

    def _forget_renewal(self, task: asyncio.Task[None]) -> None:
        self._renewal = None
        if not task.cancelled():
            task.exception()  # each caller got it; without this line asyncio would log it if all were cancelled


class _Claims(msgspec.Struct):
    iat: float
    exp: float


def grant_of(token: str, now: float) -> Grant:
    """Return a token with the times of its renewal and expiry, from its claims.

    ``now`` is Unix time. The signature is not checked.
    """
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_Claims)
    except (IndexError, ValueError, msgspec.MsgspecError):
        return Grant(token)
    expires_in = claims.exp - now
    renew_in = expires_in - (1 - RENEWAL_SHARE) * (claims.exp - claims.iat)
    return Grant(token, max(0.0, renew_in), max(0.0, expires_in))


def fetch_from(function: Callable[[], str | Awaitable[str]]) -> Callable[[], Awaitable[Grant]]:
    """Return a fetch for :class:`RenewedToken` that calls the user's function, which may be a coroutine function."""

    async def fetch() -> Grant:
        found = function()
        return grant_of(clean_token(await found if inspect.isawaitable(found) else found), time.time())

    return fetch
