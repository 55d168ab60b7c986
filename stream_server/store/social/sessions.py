"""Sessions: revoked tokens, refresh tokens and one-time tickets.

Access tokens themselves are not stored; Redis keeps only the ids of the revoked ones. Of refresh tokens and tickets,
Redis keeps only the SHA-256.
"""

from typing import NamedTuple

import msgspec

from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.social.noun import Noun
from stream_server.store.social.users import USER_FIELDS, UserRow


class TokenStatus(NamedTuple):
    """Whether an access token's user exists, whether the token was revoked, and whether the user is suspended."""

    user_exists: bool
    revoked: bool
    suspended: bool


class UsedRefreshToken(NamedTuple):
    """The user of a refresh token that was just used, and whether the user had revoked the token's login session."""

    uid: str
    session_revoked: bool


class Sessions(Noun):
    """Revokes and checks access tokens. Stores refresh tokens, each of which can be used once."""

    async def get_token_status(self, uid: str, jti: str) -> TokenStatus:
        """Return whether the access token with id ``jti`` is revoked, and whether its user exists and is suspended."""
        (user_id, suspended), revoked = await self._redis.execute(
            ("HMGET", keys.key_for("user", uid), "id", "suspended"), ("EXISTS", keys.key_for("revoked", uid, jti))
        )
        return TokenStatus(user_id is not None, bool(revoked), suspended == b"1")

    async def revoke(self, uid: str, jti: str, expires_ms: int, idempotency_key: IdempotencyKey) -> None:
        """Revoke an access token. The revocation's log entry makes all servers end the token's streams.

        ``expires_ms`` is the token's own expiry in milliseconds since 1970. Redis forgets the revocation at this time.
        """
        body = b'{"wire":%b}' % msgspec.json.encode({"uid": uid, "jti": jti})
        await self._scripts.write("token_revoke", idempotency_key, uid, jti, expires_ms, body)

    async def store_refresh_token(self, digest: str, uid: str, ttl_seconds: int) -> bytes:
        """Store the SHA-256 of a user's refresh token, which can be used once within ``ttl_seconds``.

        Returns the user as JSON, with the e-mail address. Raises NotFound for an unknown user. Redis stores the
        token even then, but a token without a user is useless.
        """
        row, _ = await self._redis.execute_write(
            ("HMGET", keys.key_for("user", uid), *USER_FIELDS),
            ("SET", keys.key_for("refresh", digest), uid, "EX", ttl_seconds),
        )
        if row[0] is None:
            raise NotFound("unknown user")
        return UserRow(*row).own_json()

    async def use_refresh_token(
        self, digest: str, jti: str, idempotency_key: IdempotencyKey
    ) -> UsedRefreshToken | None:
        """Use up a refresh token. Return its user and whether the access token ``jti`` is revoked.

        Returns None if the refresh token (``digest`` is its SHA-256) is unknown, used or expired. ``jti`` is the id of
        the access token of the same login session. Raises Forbidden ``suspended`` for a suspended user. The refresh
        token then stays valid, because the user may be reinstated.
        """
        reply = await self._scripts.write("refresh_token_use", idempotency_key, digest, jti)
        if not reply.value:
            return None
        uid, _, revoked = reply.value.decode().partition(" ")
        return UsedRefreshToken(uid, bool(revoked))


class Tickets(Noun):
    """One-time tickets. A browser page opens one stream with a ticket instead of an access token."""

    async def store(self, digest: str, claims: bytes, ttl_seconds: int) -> None:
        """Store a ticket's SHA-256 with the claims of the user's token. The ticket works once within ``ttl_seconds``.

        Raises OutcomeUnknown if Redis's reply was lost. If Redis stored the ticket nevertheless, it expires unused.
        """
        await self._redis.execute_write(("SET", keys.key_for("ticket", digest), claims, "EX", ttl_seconds))

    async def redeem(self, digest: str) -> bytes | None:
        """Use up a ticket. Returns the token claims stored with it, or None if the ticket is unknown, used or expired.

        ``digest`` is the ticket's SHA-256. Raises OutcomeUnknown if Redis's reply was lost. The ticket may then be used
        up, so the client must ask for a new ticket.
        """
        (claims,) = await self._redis.execute_write(("GETDEL", keys.key_for("ticket", digest)))
        return None if claims is None else bytes(claims)
