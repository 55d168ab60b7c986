"""Sign-in codes: each begins one session of a user, once, with the scopes that its maker chose.

A code is a secret like a password, so Redis keeps only its SHA-256. Only a process with access to Redis makes codes.
"""

import secrets
from hashlib import sha256
from typing import NamedTuple

import msgspec

from stream_server.store import keys
from stream_server.store.social.noun import Noun

CODE_BYTES = 32
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
        code = secrets.token_urlsafe(CODE_BYTES)
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
