"""The key that signs published entries. All processes that share a Redis should have the same one.

A process without it still works: it confirms each entry against the log before it believes it, which costs a read.
"""

import hmac
from pathlib import Path

from stream_server.config.settings import Config, InvalidSetting
from stream_server.security import signing_keys

MIN_SECRET_BYTES = 32


def derive(config: Config, secret: str = "") -> str:
    """Return the secret of the bus, or an empty string if this process cannot know it.

    It is the setting ``bus_secret``, else it is derived from ``secret``, the HS256 key of the installation, else it is
    in the data folder. Raises :class:`InvalidSetting` for a short ``bus_secret``.
    """
    if config.bus_secret:
        if len(config.bus_secret.encode()) < MIN_SECRET_BYTES:
            raise InvalidSetting(f"bus_secret must be {MIN_SECRET_BYTES} bytes or more")
        return config.bus_secret
    if config.jwt_algorithm == "HS256" and (config.jwt_secret or secret):
        return hmac.digest((config.jwt_secret or secret).encode(), b"stream-server bus", "sha256").hex()
    if config.data_dir and Path(config.data_dir).is_dir():
        return signing_keys.load_or_create_secret(config.data_dir, "bus.secret")
    return ""


def to_key(secret: str) -> bytes:
    """Return the key of 32 bytes that signs the entries on the Redis channels, derived from ``secret``."""
    return hmac.digest(secret.encode(), b"entries", "sha256")
