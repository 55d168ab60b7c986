"""Tokens for the tests: valid except for what a test changes."""

import time
from dataclasses import replace
from typing import Any

import jwt

from stream_server.config.config import load
from stream_server.config.settings import Config

SECRET = "a secret of the tests, 32 bytes or more"
NOW = 1_795_197_600.0


def config(**settings: Any) -> Config:
    """Return the default settings with the tests' secret, without limits, and with these changes."""
    return replace(load({}, {}), **{"jwt_secret": SECRET, "limits": "off", **settings})


def payload(now: float = NOW, **claims: Any) -> dict[str, Any]:
    """Return all required claims. A claim given as None is left out."""
    all_claims = {
        "iss": "stream-server", "aud": "stream-server", "sub": "42", "jti": "j1", "scope": "read write",
        "iat": int(now), "exp": int(now) + 60, **claims,
    }  # fmt: skip
    return {name: value for name, value in all_claims.items() if value is not None}


def token(claims: dict[str, Any], key: Any = SECRET, algorithm: str = "HS256", **headers: Any) -> str:
    """Return a token made by PyJWT, independently of the code under test."""
    return jwt.encode(claims, key, algorithm=algorithm, headers=headers or None)


def fresh(sub: str, scope: str = "read write stream", **claims: Any) -> str:
    """Return a token that is valid now, and for an hour if the claims do not say otherwise: the machine may be busy."""
    now = time.time()
    return token(payload(now, sub=sub, scope=scope, **{"exp": int(now) + 3600, **claims}))
