"""The Redis and the key of a running server, for the commands that sign tokens.

A server with an embedded Redis says in its data folder where that is (``note``, readable by its owner alone), and
keeps its key there. Who may read that folder may be anybody, so nothing is given away here.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from stream_server import note
from stream_server.auth import Auth, secret_for
from stream_server.commands.exits import UNREACHABLE, USAGE, Failure
from stream_server.config import Config
from stream_server.errors import ApiError, Unavailable
from stream_server.store.request import Request
from stream_server.store.scripts import Sizes
from stream_server.store.store import Store, TooOld

_UNNAMED = (
    "which server? Give its --data-dir, or its --redis (the Redis of a server that was started with neither, as the "
    "demo, is that server's alone)"
)
_UNNAMED_KEY = (
    "which server? Give its --data-dir (a server started without one, as the demo, keeps its key to itself: "
    "use the token that it printed), or its --redis and --jwt-secret"
)


def address(url: str | None, config: Config) -> str:
    """Where the server is: ``url``, else what its note says, else the address of the settings."""
    left = note.read(config.data_dir) if config.data_dir else None
    host = f"[{config.host}]" if ":" in config.host else config.host
    return url or (left.address if left is not None else f"http://{host}:{config.port}")


def find(config: Config, *, signs: bool = False) -> Config:
    """``config`` with the Redis of the running server; a :class:`Failure` says what to do if it is not to be had.

    Whoever ``signs`` tokens needs the server's key as well, which lies in its data folder or is in its settings.
    """
    if config.redis:
        return config
    if not config.data_dir:
        raise Failure(_UNNAMED_KEY if signs else _UNNAMED, USAGE)
    left = note.read(config.data_dir)
    if left is None:
        raise Failure(f"no server is running on the data folder {config.data_dir}", UNREACHABLE)
    return replace(config, redis=left.redis)


class Backstage:
    """Accounts and tokens of one server, made without asking it."""

    def __init__(self, store: Store, auth: Auth) -> None:
        self._store = store
        self._auth = auth

    def token(self, user_id: str, scopes: frozenset[str], ttl_seconds: int) -> str:
        """A token for the user with that id."""
        return self._auth.issue(user_id, scopes, ttl_seconds, time.time())[0]

    async def user(self, login: str, *, create: bool = False) -> str:
        """The id of whoever has ``login``; with ``create``, of a new account if nobody has."""
        if create:
            made = await self._store.users.create_many([(login, login)], Request.fresh())
            return made[0][0]
        found = await self._store.users.resolve([login])
        if login.lower() not in found:
            raise Failure(f"nobody has the login {login}; `stream-server token --create` makes the account")
        return found[login.lower()]


@asynccontextmanager
async def store(config: Config) -> AsyncIterator[Store]:
    """The store of a server, whose Redis ``config`` names; a :class:`Failure` says what is wrong with it."""
    sizes = Sizes(config.log_max_entries, config.timeline_max, config.pass_size)
    opened = Store(
        config.redis,
        timeout_seconds=config.redis_timeout_seconds,
        write_replicas=config.write_replicas,
        sizes=sizes,
    )
    try:
        await opened.open()
        yield opened
    except Unavailable:
        raise Failure("the server's Redis cannot be reached", UNREACHABLE) from None
    except (ApiError, TooOld) as error:
        raise Failure(str(error)) from None
    finally:
        await opened.close()


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[Backstage]:
    """The backstage of the server that ``config`` finds; a :class:`Failure` says what is missing."""
    config = find(config, signs=True)
    auth = Auth(config, _secret(config))
    async with store(config) as kept:
        yield Backstage(kept, auth)


def _secret(config: Config) -> str:
    if config.jwt_secret or config.jwt_algorithm != "HS256":
        return ""
    if not config.data_dir or not (Path(config.data_dir) / "jwt.secret").exists():
        raise Failure("the key that signs tokens is missing: give the server's --jwt-secret or --data-dir", USAGE)
    return secret_for(config.data_dir)
