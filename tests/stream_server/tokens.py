"""Tokens for the tests: right in everything but what a test changes."""

import time
from dataclasses import replace
from typing import Any

import jwt

from stream_server.config.config import load
from stream_server.config.settings import Config

SECRET = "a secret of the tests, 32 bytes or more"
NOW = 1_795_197_600.0


def config(**settings: Any) -> Config:
    """The defaults, with the tests' secret, and what else is given."""
    return replace(load({}, {}), **{"jwt_secret": SECRET, **settings})


def payload(now: float = NOW, **claims: Any) -> dict[str, Any]:
    """All claims that are required; a claim that is given as None is left out."""
    all_claims = {
        "iss": "stream-server", "aud": "stream-server", "sub": "42", "jti": "j1", "scope": "read write",
        "iat": int(now), "exp": int(now) + 60, **claims,
    }  # fmt: skip
    return {name: value for name, value in all_claims.items() if value is not None}


def token(claims: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", **headers: Any) -> str:
    """A token made by PyJWT, which is another than the code under test makes."""
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers or None)


def fresh(sub: str, scope: str = "read write stream", **claims: Any) -> str:
    """A token that is valid now."""
    return token(payload(time.time(), sub=sub, scope=scope, **claims))
