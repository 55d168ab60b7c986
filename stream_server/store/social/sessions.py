"""Sessions: which tokens still stand. A token itself is kept nowhere; only that one was taken back is."""

from typing import NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts
from stream_server.store.social.user_json import USER_FIELDS, UserRow


class TokenStatus(NamedTuple):
    """Whether the token's user exists, whether the token was taken back, and whether the user is suspended."""

    user_exists: bool
    revoked: bool
    suspended: bool


class UsedRefreshToken(NamedTuple):
    """Whose refresh token was used up, and whether the session it belongs to was ended before."""

    uid: str
    session_revoked: bool


class Sessions:
    """The sessions of one store."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def get_token_status(self, uid: str, jti: str) -> TokenStatus:
        """How the token ``jti`` of a user stands, in one round trip."""
        (known, suspended), revoked = await self._redis.execute(
            ("HMGET", keys.key_for("user", uid), "id", "suspended"), ("EXISTS", keys.key_for("revoked", uid, jti))
        )
        return TokenStatus(known is not None, bool(revoked), suspended == b"1")

    async def revoke(self, uid: str, jti: str, expires_ms: int, idempotency_key: IdempotencyKey) -> None:
        """Take a token back; the entry on the log ends its streams everywhere. ``expires_ms`` since 1970."""
        body = b'{"wire":%b}' % msgspec.json.encode({"uid": uid, "jti": jti})
        await self._scripts.write("token_revoke", idempotency_key, uid, jti, expires_ms, body)

    async def store_refresh_token(self, digest: str, uid: str, ttl_seconds: int) -> bytes:
        """Let the refresh token with this SHA-256 stand for a user, once, within ``ttl_seconds``.

        Gives the user as JSON for oneself; raises NotFound where there is none, for whom the token then means nothing.
        """
        row, _ = await self._redis.execute_write(
            ("HMGET", keys.key_for("user", uid), *USER_FIELDS),
            ("SET", keys.key_for("refresh", digest), uid, "EX", ttl_seconds),
        )
        if row[0] is None:
            raise NotFound("there is no such user")
        return UserRow(*row).own_json()

    async def use_refresh_token(
        self, digest: str, jti: str, idempotency_key: IdempotencyKey
    ) -> UsedRefreshToken | None:
        """The user of an unused refresh token, which is used by this; None if there is none.

        Raises Forbidden ``suspended``, and then it is not used: the user may be reinstated.
        """
        answer = await self._scripts.write("refresh_token_use", idempotency_key, digest, jti)
        if not answer.value:
            return None
        uid, _, revoked = answer.value.decode().partition(" ")
        return UsedRefreshToken(uid, bool(revoked))
