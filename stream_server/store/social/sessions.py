"""Sessions: log-in sessions with their refresh tokens, revoked tokens, one-time tickets, and sign-in codes.

Access tokens themselves are not stored. Of refresh tokens, tickets and sign-in codes, which are secrets like
passwords, Redis keeps only the SHA-256. A sign-in code begins one session of a user, once, with the scopes that its
maker chose. Only a process with access to Redis makes codes.
"""

import math
import secrets
from hashlib import sha256
from typing import NamedTuple

import msgspec

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.batched_reads import BatchedReads
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import KeyRead
from stream_server.store.redis.scripts import ScriptRunner
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import Syndication

_USER_READ = KeyRead(b"HMGET", keys.key_for("user").encode(), b"id", b"suspended", b"valid_from", b"scopes")
_REVOKED_READ = KeyRead(b"EXISTS", keys.key_for("revoked").encode())
_NOTHING_GRANTED = frozenset[str]()  # one for all users, because it takes 200 bytes

TOKENS_PER_CHECK = 100
"""Number of tokens that :meth:`Sessions.get_token_validities` checks in one round trip."""


class TokenValidity(NamedTuple):
    """Whether an access token's user exists, whether the token was revoked, and whether the user is suspended.

    ``granted`` are the scopes that the user has beyond those of log-ins, such as ``admin``. Redis forgets the token's
    session ``forgotten_in_seconds`` later by itself, so this must not be used for longer.
    """

    user_exists: bool
    revoked: bool
    suspended: bool
    granted: frozenset[str] = frozenset()
    forgotten_in_seconds: float = math.inf

    @property
    def is_valid(self) -> bool:
        """Whether the token gives its user access."""
        return self.user_exists and not self.revoked and not self.suspended


class TokenId(NamedTuple):
    """The identity of an access token, by which the store knows whether it is revoked.

    Attributes:
        uid: Id of the token's user.
        jti: Id of the token.
        session: Id of the log-in session to which the token belongs, or an empty string.
        issued_at: When the token was issued, in seconds since 1970.
    """

    uid: str
    jti: str
    session: str = ""
    issued_at: float = math.inf


class RefreshSecrets(NamedTuple):
    """Two SHA-256 digests of a session: of the secret that all of its refresh tokens contain, and of one token."""

    family: str
    token: str


class Session(NamedTuple):
    """A log-in session. Times are in ms since 1970. ``agent`` is the User-Agent header of the log-in."""

    id: str
    created_ms: int
    used_ms: int
    expires_ms: int
    agent: str


class Refresh(NamedTuple):
    """The outcome of an exchange of a refresh token.

    Attributes:
        outcome: What :meth:`Sessions.refresh` lists.
        user: The user as JSON, or no bytes.
        scopes: Scopes of the session's tokens if they differ from those of a log-in, else empty.
    """

    outcome: str
    user: bytes = b""
    scopes: frozenset[str] = frozenset()


class Sessions(Noun):
    """Log-in sessions and revoked access tokens.

    A session ends when its user logs out, changes the password or is suspended, when a refresh token is used twice, or
    when it was not used for its lifetime. Its access tokens and its streams end with it.
    """

    def __init__(self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication) -> None:
        super().__init__(redis, scripts, syndication)
        self._validities = BatchedReads(self.get_token_validities)

    async def get_token_validity(self, token: TokenId, *, shared: bool = False) -> TokenValidity:
        """Return whether an access token is revoked, and whether its user exists and is suspended.

        A reader token, whose ``uid`` is empty, needs no user.

        With ``shared``, the questions of many callers share a round trip, which no timeout of one caller cuts short.
        """
        if shared:
            return await self._validities.ask(token)
        return (await self.get_token_validities([token]))[0]

    async def get_token_validities(self, tokens: list[TokenId]) -> list[TokenValidity]:
        """Return for each token what :meth:`get_token_validity` returns, in one round trip for a hundred of them."""
        found: list[TokenValidity] = []
        for start in range(0, len(tokens), TOKENS_PER_CHECK):
            some = tokens[start : start + TOKENS_PER_CHECK]
            commands = list[Command]()
            for token in some:
                commands.append(_USER_READ.command(token.uid.encode()))
                if token.session:
                    sessions = keys.key_for("sessions", token.uid)
                    commands += ("PTTL", sessions), ("HEXISTS", sessions, token.session)  # it may expire in between
                else:
                    commands.append(_REVOKED_READ.command(f"{token.uid}:{token.jti}".encode()))
            replies = iter(await self._redis.execute(*commands))
            for token in some:
                user_id, suspended, valid_from, scopes = next(replies)
                ttl_ms = next(replies) if token.session else -1
                is_known = bool(next(replies))  # as a session, or as a revoked token
                is_too_old = not token.session and token.issued_at <= int(valid_from or 0)
                is_revoked = is_too_old or is_known != bool(token.session)
                granted = frozenset(scopes.decode().split()) if scopes else _NOTHING_GRANTED
                lasts_seconds = ttl_ms / 1000 if ttl_ms >= 0 else math.inf
                has_user = not token.uid or user_id is not None
                found.append(TokenValidity(has_user, is_revoked, suspended == b"1", granted, lasts_seconds))
        return found

    async def is_gone(self, uid: str) -> bool:
        """Return whether an unknown user had an account that was deleted, as long as that is known."""
        (when,) = await self._redis.execute(("ZSCORE", keys.key_for("gone"), uid))
        return when is not None

    async def revoke(self, uid: str, jti: str, expires_ms: int, idempotency_key: IdempotencyKey) -> None:
        """Revoke an access token without a session. The log entry makes all servers end the token's streams.

        ``expires_ms`` is the token's own expiry in milliseconds since 1970. Redis forgets the revocation at this time.
        """
        body = b'{"wire":%b}' % msgspec.json.encode({"uid": uid, "jti": jti})
        await self._scripts.write("token_revoke", idempotency_key, uid=uid, jti=jti, expires=expires_ms, body=body)

    async def start(
        self, uid: str, session_id: str, secrets: RefreshSecrets, ttl_seconds: int, agent: str,
        idempotency_key: IdempotencyKey, scopes: frozenset[str] = frozenset(),
    ) -> bytes:  # fmt: skip
        """Start a session. Return the user as JSON, with the e-mail address.

        ``scopes`` are those of the session's tokens if they differ from those of a log-in, else empty.

        A user has at most a hundred sessions; one more ends the session that was not used for longest. Raises NotFound
        for an unknown user, and Forbidden ``suspended`` for a suspended one.
        """
        kept_scopes = f"{','.join(sorted(scopes))} " if scopes else ""
        reply = await self._scripts.write(
            "session_start", idempotency_key, uid=uid, id=session_id, family=secrets.family, token=secrets.token,
            ttl_ms=ttl_seconds * 1000, agent=kept_scopes.encode() + msgspec.json.encode(agent),
        )  # fmt: skip
        return await self._own_user(reply, uid)

    async def refresh(
        self, uid: str, session_id: str, secrets: RefreshSecrets, next_token: str, ttl_seconds: int,
        idempotency_key: IdempotencyKey,
    ) -> Refresh:  # fmt: skip
        """Replace the refresh token of a session by ``next_token`` (its SHA-256), and prolong the session.

        The outcome is ``refreshed``; ``unknown`` if there is no such session,
        or it has another family secret; or ``reused`` if the token was replaced before. Then the session has ended,
        because a thief has one of the two tokens. Raises NotFound for an unknown user, and Forbidden ``suspended`` for
        a suspended one.
        """
        reply = await self._scripts.write(
            "session_refresh", idempotency_key, uid=uid, id=session_id, family=secrets.family, token=secrets.token,
            next_token=next_token, ttl_ms=ttl_seconds * 1000,
        )  # fmt: skip
        outcome, _, scopes = reply.value.decode().partition(" ")
        if outcome != "refreshed":
            return Refresh(outcome)
        return Refresh(outcome, await self._own_user(reply, uid), frozenset(filter(None, scopes.split(","))))

    async def list_sessions(self, uid: str, now_ms: int) -> list[Session]:
        """Return the sessions of a user, the one that was used last first."""
        (rows,) = await self._redis.execute(("HGETALL", keys.key_for("sessions", uid)))
        current = list[Session]()
        for session_id, row in zip(rows[::2], rows[1::2], strict=True):
            created, used, expires, _, _, rest = row.split(b" ", 5)
            if int(expires) > now_ms:
                agent = msgspec.json.decode(rest[rest.index(b'"') :], type=str)
                current.append(Session(session_id.decode(), int(created), int(used), int(expires), agent))
        return sorted(current, key=lambda session: session.used_ms)[::-1]  # of one millisecond the newer one first

    async def end(self, uid: str, session_id: str, idempotency_key: IdempotencyKey) -> bool:
        """End a session, with its tokens and streams. Return whether the user had such a session."""
        reply = await self._scripts.write("session_end", idempotency_key, uid=uid, id=session_id)
        return reply.value != b"unchanged"

    async def end_all(self, uid: str, idempotency_key: IdempotencyKey) -> None:
        """End all sessions of a user, and revoke all tokens without a session that were issued up to now."""
        await self._scripts.write("sessions_end_all", idempotency_key, uid=uid)

    async def change_password(
        self, uid: str, old_hash: str, new_hash: str, kept_session: str, idempotency_key: IdempotencyKey
    ) -> None:
        """Change a password. End all sessions except ``kept_session``, and revoke all tokens without a session.

        Raises Forbidden ``wrong_password`` if the password is no longer the one with ``old_hash``.
        """
        await self._scripts.write(
            "password_change", idempotency_key, uid=uid, old=old_hash, new=new_hash, kept=kept_session
        )


class Tickets(Noun):
    """One-time tickets. A browser page opens one stream with a ticket instead of an access token."""

    async def store(self, digest: str, claims: bytes, ttl_seconds: int) -> None:
        """Store a ticket's SHA-256 with the claims of the user's token. The ticket works once within ``ttl_seconds``.

        Raises OutcomeUnknown if Redis's reply was lost. If Redis stored the ticket nevertheless, it expires unused.
        """
        await self._redis.execute_write(("SET", keys.key_for("ticket", digest), claims, "EX", ttl_seconds))

    async def redeem(self, digest: str, *, keep: bool = False) -> bytes | None:
        """Use up a ticket, unless ``keep`` is true. Returns the token claims stored with it.

        Returns None if the ticket is unknown, used or expired. ``digest`` is the ticket's SHA-256. Raises
        OutcomeUnknown if Redis's reply was lost. The ticket may then be used up, so the client must ask for a new
        ticket.
        """
        (claims,) = await self._redis.execute_write(("GET" if keep else "GETDEL", keys.key_for("ticket", digest)))
        return None if claims is None else bytes(claims)


CODE_TTL_SECONDS = 900
"""A code that nobody used is worthless after a quarter of an hour."""


class SignIn(NamedTuple):
    """The user whose session a code begins, and the scopes of the session's tokens."""

    uid: str
    scopes: frozenset[str]


class SignIns(Noun):
    """One-use codes that begin a session."""

    async def issue(self, sign_in: SignIn) -> str:
        """Return a new code, which works once within :data:`CODE_TTL_SECONDS`. The caller checks that the user exists.

        Raises OutcomeUnknown if Redis's reply was lost. If Redis stored the code nevertheless, it expires unused.
        """
        code = secrets.token_urlsafe(32)
        value = msgspec.json.encode((sign_in.uid, sorted(sign_in.scopes)))
        await self._redis.execute_write(("SET", _key(code), value, "EX", CODE_TTL_SECONDS))
        return code

    async def redeem(self, code: str) -> SignIn | None:
        """Use up a code. Returns its user and scopes, or None if the code is unknown, used or expired.

        Raises OutcomeUnknown if Redis's reply was lost. The code may then be used up.
        """
        (value,) = await self._redis.execute_write(("GETDEL", _key(code)))
        if value is None:
            return None
        uid, scopes = msgspec.json.decode(value, type=tuple[str, frozenset[str]])
        return SignIn(uid, scopes)


def _key(code: str) -> str:
    return keys.key_for("sign_in", sha256(code.encode()).hexdigest())
