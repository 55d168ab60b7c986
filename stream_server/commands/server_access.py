"""The Redis and the signing key of a running server, for the commands that need more than HTTP.

A server with an embedded Redis writes the URL of Redis into the run file in its data folder, and keeps its key there.
Only the folder's owner can read both, so access to the folder is the permission to use these commands.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from stream_server.commands.exit_codes import UNREACHABLE, USAGE, CommandFailure
from stream_server.config.settings import Config
from stream_server.errors import ApiError, Unavailable
from stream_server.runtime import run_file
from stream_server.security.tokens import TokenAuthority, load_or_create_secret
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import RedisTooOld, Store

_NO_SERVER_NAMED = (
    "no server named: give its --data-dir or its --redis (no other process can use the Redis of a server that was "
    "started without both, such as the demo)"
)
"""Message if the command line names no server."""
_NO_KEY_NAMED = (
    "no server named: give its --data-dir, or its --redis and --jwt-secret (a server that was started without them, "
    "such as the demo, shares its key with no other process: use the token that it printed)"
)
"""Message if the command line names no server with a signing key."""


def server_address(url: str | None, config: Config) -> str:
    """Return the URL of the server: ``url``, else the one in the run file, else the address of the settings."""
    running = run_file.read(config.data_dir) if config.data_dir else None
    return url or (run_file.server_url(config) if running is None else running.url)


def with_server_redis(config: Config, *, needs_key: bool = False) -> Config:
    """Return ``config`` with the Redis of the running server.

    Raises :class:`CommandFailure` with advice if it is unknown. With ``needs_key``, the advice is about the signing key
    too.
    """
    if config.redis:
        return config
    if not config.data_dir:
        raise CommandFailure(_NO_KEY_NAMED if needs_key else _NO_SERVER_NAMED, USAGE)
    running = run_file.read(config.data_dir)
    if running is None:
        raise CommandFailure(f"no server is running on the data folder {config.data_dir}", UNREACHABLE)
    return replace(config, redis=running.redis)


class ServerAccess:
    """Looks up users and signs tokens of one server, without its HTTP API."""

    def __init__(self, store: Store, authority: TokenAuthority) -> None:
        self._store = store
        self._authority = authority

    def sign_token(self, user_id: str, scopes: frozenset[str], ttl_seconds: int) -> str:
        """Return a token for the user with this id."""
        return self._authority.issue(user_id, scopes, ttl_seconds, time.time())[0]

    async def find_user(self, login: str, *, create: bool = False) -> str:
        """Return the id of the user with ``login``; with ``create``, create the account if it is missing.

        Raises :class:`CommandFailure` if the login is unknown.
        """
        if create:
            created = await self._store.users.create_many([(login, login)], IdempotencyKey.generate())
            return created[0][0]
        found = await self._store.users.resolve_logins([login])
        if login.lower() not in found:
            raise CommandFailure(f"unknown login {login}; `stream-server token --create` creates the account")
        return found[login.lower()]


@asynccontextmanager
async def open_store(config: Config) -> AsyncIterator[Store]:
    """Open the store on the Redis of ``config``; raises :class:`CommandFailure` if Redis is unusable."""
    size_limits = SizeLimits(config.log_max_entries, config.timeline_max, config.fanout_batch_size)
    opened = Store(
        config.redis,
        timeout_seconds=config.redis_timeout_seconds,
        min_write_replicas=config.write_replicas,
        size_limits=size_limits,
    )
    try:
        await opened.open()
        yield opened
    except Unavailable:
        raise CommandFailure("the server's Redis cannot be reached", UNREACHABLE) from None
    except (ApiError, RedisTooOld) as error:
        raise CommandFailure(str(error)) from None
    finally:
        await opened.close()


@asynccontextmanager
async def open_server_access(config: Config) -> AsyncIterator[ServerAccess]:
    """Open the access to the server that ``config`` names; raises :class:`CommandFailure` if something is missing."""
    config = with_server_redis(config, needs_key=True)
    authority = TokenAuthority(config, _signing_secret(config))
    async with open_store(config) as store:
        yield ServerAccess(store, authority)


def _signing_secret(config: Config) -> str:
    """Return the server's HS256 key if the settings do not hold it; raises :class:`CommandFailure` if it is missing."""
    if config.jwt_secret or config.jwt_algorithm != "HS256":
        return ""
    if not config.data_dir or not (Path(config.data_dir) / "jwt.secret").exists():
        raise CommandFailure(
            "the key that signs tokens is missing: give the server's --jwt-secret or --data-dir", USAGE
        )
    return load_or_create_secret(config.data_dir)
