"""Sessions: which tokens still stand. A token itself is kept nowhere; only that one was taken back is."""

from typing import NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.link import Link
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts
from stream_server.store.user_json import FIELDS, Kept


class Standing(NamedTuple):
    """Whether the token's user exists, whether the token was taken back, and whether the user is suspended."""

    known: bool
    revoked: bool
    suspended: bool


class Taken(NamedTuple):
    """Whose refresh token was used up, and whether the session it belongs to was ended before."""

    uid: str
    revoked: bool


class Sessions:
    """The sessions of one store."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def standing(self, uid: str, jti: str) -> Standing:
        """How the token ``jti`` of a user stands, in one round trip."""
        (known, suspended), revoked = await self._link.ask(
            ("HMGET", keys.named("user", uid), "id", "suspended"), ("EXISTS", keys.named("revoked", uid, jti))
        )
        return Standing(known is not None, bool(revoked), suspended == b"1")

    async def revoke(self, uid: str, jti: str, expires_ms: int, request: Request) -> None:
        """Take a token back; the entry on the log ends its streams everywhere. ``expires_ms`` since 1970."""
        body = b'{"wire":%b}' % msgspec.json.encode({"uid": uid, "jti": jti})
        await self._scripts.write("revoke", request, uid, jti, expires_ms, body)

    async def begin(self, digest: str, uid: str, ttl_seconds: int) -> bytes:
        """Let the refresh token with this SHA-256 stand for a user, once, within ``ttl_seconds``.

        Gives the user as JSON for oneself; raises NotFound where there is none, for whom the token then means nothing.
        """
        row, _ = await self._link.once(
            ("HMGET", keys.named("user", uid), *FIELDS), ("SET", keys.named("refresh", digest), uid, "EX", ttl_seconds)
        )
        if row[0] is None:
            raise NotFound("there is no such user")
        return Kept(*row).own()

    async def take_refresh(self, digest: str, jti: str, request: Request) -> Taken | None:
        """The user of an unused refresh token, which is used by this; None if there is none.

        Raises Forbidden ``suspended``, and then it is not used: the user may be reinstated.
        """
        answer = await self._scripts.write("refresh", request, digest, jti)
        if not answer.value:
            return None
        uid, _, revoked = answer.value.decode().partition(" ")
        return Taken(uid, bool(revoked))
