"""The Redis and the key of a running server, for the commands that sign tokens.

A server with an embedded Redis says in its data folder where that is (``note``, readable by its owner alone), and
keeps its key there. Who may read that folder may be anybody, so nothing is given away here.
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
    "which server? Give its --data-dir, or its --redis (the Redis of a server that was started with neither, as the "
    "demo, is that server's alone)"
)
_NO_KEY_NAMED = (
    "which server? Give its --data-dir (a server started without one, as the demo, keeps its key to itself: "
    "use the token that it printed), or its --redis and --jwt-secret"
)


def server_address(url: str | None, config: Config) -> str:
    """Where the server is: ``url``, else what its note says, else the address of the settings."""
    running = run_file.read(config.data_dir) if config.data_dir else None
    return url or (run_file.server_url(config) if running is None else running.url)


def with_server_redis(config: Config, *, needs_key: bool = False) -> Config:
    """``config`` with the Redis of the running server; a :class:`CommandFailure` says what to do if it is not to be had.

    Whoever ``needs_key`` tokens needs the server's key as well, which lies in its data folder or is in its settings.
    """
    if config.redis:
        return config
    if not config.data_dir:
        raise CommandFailure(_NO_KEY_NAMED if needs_key else _NO_SERVER_NAMED, USAGE)
    left = run_file.read(config.data_dir)
    if left is None:
        raise CommandFailure(f"no server is running on the data folder {config.data_dir}", UNREACHABLE)
    return replace(config, redis=left.redis)


class ServerAccess:
    """Accounts and tokens of one server, made without asking it."""

    def __init__(self, store: Store, authority: TokenAuthority) -> None:
        self._store = store
        self._authority = authority

    def sign_token(self, user_id: str, scopes: frozenset[str], ttl_seconds: int) -> str:
        """A token for the user with that id."""
        return self._authority.issue(user_id, scopes, ttl_seconds, time.time())[0]

    async def find_user(self, login: str, *, create: bool = False) -> str:
        """The id of whoever has ``login``; with ``create``, of a new account if nobody has."""
        if create:
            made = await self._store.users.create_many([(login, login)], IdempotencyKey.generate())
            return made[0][0]
        found = await self._store.users.resolve_logins([login])
        if login.lower() not in found:
            raise CommandFailure(f"nobody has the login {login}; `stream-server token --create` makes the account")
        return found[login.lower()]


@asynccontextmanager
async def open_store(config: Config) -> AsyncIterator[Store]:
    """The store of a server, whose Redis ``config`` names; a :class:`CommandFailure` says what is wrong with it."""
    sizes = SizeLimits(config.log_max_entries, config.timeline_max, config.fanout_batch_size)
    opened = Store(
        config.redis,
        timeout_seconds=config.redis_timeout_seconds,
        min_write_replicas=config.write_replicas,
        size_limits=sizes,
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
    """The backstage of the server that ``config`` finds; a :class:`CommandFailure` says what is missing."""
    config = with_server_redis(config, needs_key=True)
    auth = TokenAuthority(config, _signing_secret(config))
    async with open_store(config) as kept:
        yield ServerAccess(kept, auth)


def _signing_secret(config: Config) -> str:
    if config.jwt_secret or config.jwt_algorithm != "HS256":
        return ""
    if not config.data_dir or not (Path(config.data_dir) / "jwt.secret").exists():
        raise CommandFailure(
            "the key that signs tokens is missing: give the server's --jwt-secret or --data-dir", USAGE
        )
    return load_or_create_secret(config.data_dir)
