"""The Redis and the signing key of a running server, for the commands that need more than HTTP.

A server writes the URL of its Redis into the run file in its data folder, and keeps its key there. Without a data
folder, both are in a temporary folder. Only the folder's owner can read both, so access to the folder is the permission
to use these commands. A command that is given no server takes the one that this user runs on this machine.

The options of a command name the server and the token.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import click

from stream_server.client import Client
from stream_server.commands import setting_options
from stream_server.commands.exit_codes import UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.setting_options import Command
from stream_server.config import config
from stream_server.config.data_folder import SECRET_FILE
from stream_server.config.plain_text import clean
from stream_server.config.settings import SETTINGS, Config
from stream_server.errors import ApiError, Unauthorized, Unavailable
from stream_server.runtime import run_file
from stream_server.runtime.run_file import RunFile
from stream_server.security import signing_keys
from stream_server.security.claims import READER_SCOPES, Reader
from stream_server.security.signing_keys import load_or_create_secret
from stream_server.security.tokens import TokenAuthority
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.refusals import describe_for_operator
from stream_server.store.redis.script_settings import SiteRules, SizeLimits
from stream_server.store.social.sessions import SignIn
from stream_server.store.store import Store, UnusableRedis

STORE_SETTINGS = (
    "redis", "data_dir", "timeline_max", "fanout_batch_size", "redis_timeout_seconds",
    "settings_file",
)  # fmt: skip
"""The settings of every command that changes data by `open_store`."""

THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"})  # noqa: S104 - names, not to listen at


class SeveralServers(CommandFailure):
    """Raised if servers of several sites run here and none is named. The message lists them, with the way to name."""

    def __init__(self, servers: Mapping[str, RunFile]) -> None:
        listed = "".join(f"\n  {running.url:<28} --data-dir {folder}" for folder, running in servers.items())
        super().__init__(f"{len(servers)} servers run here, so give the --data-dir of one of them:{listed}", USAGE)


def find_server(settings: Config, url: str | None = None) -> Config:
    """Return ``settings`` with the data folder of the server that runs here, unless they have a data folder.

    Only servers of this user count. If the settings or ``url`` give a Redis or an address, only those with the same
    count. If there is none, return ``settings``. Servers with the same Redis are one site, so any of them will do.
    Print the address of the server on a terminal's standard error, because nobody named it. Raises
    :class:`SeveralServers`.
    """
    if settings.data_dir:
        return settings
    defaults = {setting.name: setting.default for setting in SETTINGS}
    names_address = settings.port != 0 and (settings.host, settings.port) != (defaults["host"], defaults["port"])
    address = url or (run_file.server_url(settings) if names_address else "")
    servers = {
        folder: running for folder, running in run_file.find_running().items()
        if settings.redis in {"", running.redis} and (not address or _is_at(running.url, address))
    }  # fmt: skip
    if not servers:
        return settings
    redis_urls = {running.redis for running in servers.values()}
    if len(servers) > 1 and (len(redis_urls) > 1 or "" in redis_urls):  # an empty URL is one that is not shown
        raise SeveralServers(servers)
    folder, running = min(servers.items(), key=lambda server: server[1].url)
    if sys.stderr.isatty():
        click.echo(f"server: {running.url} (process {running.pid})", err=True)
    return replace(settings, data_dir=folder)


def _is_at(url: str, address: str) -> bool:
    """Return whether two URLs are of one server: the same port, and one host or names of this machine."""
    try:
        ours, theirs = urlsplit(url), urlsplit(address)
        hosts = {ours.hostname, theirs.hostname}
        return (ours.scheme, ours.port) == (theirs.scheme, theirs.port) and (len(hosts) == 1 or hosts <= THIS_MACHINE)
    except ValueError:  # a port that is none
        return False


def server_address(url: str | None, settings: Config) -> str:
    """Return the URL of the server: ``url``, else the one in the run file, else that of the settings' host and port."""
    running = run_file.read(settings.data_dir) if settings.data_dir else None
    return url or (run_file.server_url(settings) if running is None else running.url)


def public_address(url: str | None, settings: Config) -> str:
    """Return the URL of the server for a browser: ``url``, else the server's public one, else `server_address`."""
    running = run_file.read(settings.data_dir) if settings.data_dir else None
    return url or (running and running.public_url) or server_address(url, settings)


def with_server_redis(settings: Config, *, needs_key: bool = False) -> Config:
    """Return ``settings`` with a Redis URL. If the settings have none, take the running server's from its run file.

    From there also come the settings that the command must share with the server, unless its own are not the defaults.
    With a Redis URL nobody tells the command of them, so the person must give the same to both.

    Raises :class:`CommandFailure` if there is neither. The message names the options that would help: those for Redis
    and, with ``needs_key``, also those for the key that signs tokens.
    """
    if settings.redis:
        return settings
    if not settings.data_dir:
        found = "no running server of this user was found here, or none at the address that was given"
        ways = ", or its --redis and jwt_secret" if needs_key else " or its --redis"
        raise CommandFailure(f"{found}: give its --data-dir{ways}", USAGE)
    running = run_file.read(settings.data_dir)
    if running is None:
        raise CommandFailure(f"no server is running on the data folder {settings.data_dir}", UNREACHABLE)
    if not running.redis:
        ways = "STREAM_SERVER_REDIS, STREAM_SERVER_REDIS_FILE or --settings-file"
        raise CommandFailure(f"the Redis of the server at {running.url} has a password: give its URL by {ways}", USAGE)
    defaults = {setting.name: setting.default for setting in SETTINGS}
    shared = {
        name: value for name, value in running.settings.items()
        if name in run_file.SHARED_SETTINGS and getattr(settings, name) == defaults[name]
    }  # fmt: skip
    return replace(settings, redis=running.redis, **shared)


class ServerAccess:
    """Looks up users and signs tokens of a server through its Redis and its key, without its HTTP API."""

    def __init__(self, store: Store, authority: TokenAuthority) -> None:
        self._store = store
        self._authority = authority

    def sign_token(self, user_id: str, scopes: frozenset[str], ttl_seconds: int) -> str:
        """Return a new token for the user with the id ``user_id``, valid for ``ttl_seconds`` from now."""
        return self._authority.issue(user_id, scopes, ttl_seconds, time.time())[0]

    def sign_reader_token(self, reader: Reader, ttl_seconds: int) -> str:
        """Return a new reader token, valid for ``ttl_seconds`` from now."""
        return self._authority.issue("", READER_SCOPES, ttl_seconds, time.time(), reader=reader)[0]

    async def revoke_token(self, token: str) -> None:
        """Revoke a token without a session: it opens no more streams, and its streams end. A second call does nothing.

        Raises :class:`CommandFailure` if the token is not valid, and so has no need of this, or belongs to a session.
        """
        try:
            claims = self._authority.verify(token, time.time())
        except Unauthorized as error:
            raise CommandFailure(error.message) from error
        if claims.session:
            raise CommandFailure("this token belongs to a log-in session, which its user can end", USAGE)
        key = IdempotencyKey.generate()
        await self._store.sessions.revoke(claims.sub, claims.jti, int(claims.exp * 1000), key)

    async def make_sign_in_link(self, user_id: str, scopes: frozenset[str], address: str) -> str:
        """Return a link that signs the user in to the console of the server at ``address``, once, within 15 minutes.

        Raises :class:`CommandFailure` for a server that cannot sign the tokens of the session.
        """
        if not self._authority.can_issue:
            raise CommandFailure("a server without a private key has no sign-in: its users bring their tokens", USAGE)
        # The code is in the fragment, which a browser sends to no server.
        return f"{address}/#code={await self._store.sign_ins.issue(SignIn(user_id, scopes))}"

    async def find_user(self, login: str, *, create: bool = False) -> str:
        """Return the id of the user with ``login``. If the account is missing and ``create`` is true, create it."""
        if create:
            created = await self._store.users.create_many([(login, login)], IdempotencyKey.generate())
            return created[0][0]
        return await find_user(self._store, login)


async def find_user(store: Store, login: str) -> str:
    """Return the id of the user with ``login``. Raises :class:`CommandFailure` if there is none."""
    found = await store.users.resolve_logins([login])
    if login.lower() not in found:
        raise CommandFailure(f"unknown login {login}; `stream-server token --create` creates the account")
    return found[login.lower()]


@asynccontextmanager
async def open_store(settings: Config) -> AsyncIterator[Store]:
    """Open the store (the data in Redis) for the block. Raises :class:`CommandFailure` if the Redis is unusable."""
    # The key signs published entries. Without one servers confirm them against the log.
    file = Path(settings.data_dir) / SECRET_FILE if settings.data_dir else None
    kept = signing_keys.load_or_create_secret(settings.data_dir) if file is not None and file.exists() else ""
    bus_secret = signing_keys.derive_bus_secret(settings, kept)
    opened = Store(
        settings.redis, timeout_seconds=settings.redis_timeout_seconds, min_write_replicas=settings.write_replicas,
        size_limits=SizeLimits.of_settings(settings), rules=SiteRules.of_settings(settings),
        bus_key=signing_keys.to_bus_key(bus_secret) if bus_secret else b"",
    )  # fmt: skip
    try:
        await opened.open()
        yield opened
    except Unavailable as error:
        raise CommandFailure(f"the server's Redis {describe_for_operator(error)}", UNREACHABLE) from None
    except (ApiError, UnusableRedis) as error:
        raise CommandFailure(str(error)) from None
    finally:
        await opened.close()


@asynccontextmanager
async def open_server_access(settings: Config) -> AsyncIterator[ServerAccess]:
    """Yield the :class:`ServerAccess`. Raises :class:`CommandFailure` without a usable Redis or signing key."""
    settings = with_server_redis(settings, needs_key=True)
    authority = TokenAuthority(settings, _signing_secret(settings))
    async with open_store(settings) as store:
        yield ServerAccess(store, authority)


def _signing_secret(settings: Config) -> str:
    """Return the HS256 key in the data folder; empty if the settings already give the key or use another algorithm.

    Raises :class:`CommandFailure` if the key is needed and the folder has none.
    """
    if settings.jwt_secret or settings.jwt_algorithm != "HS256":
        return ""
    if not settings.data_dir or not (Path(settings.data_dir) / SECRET_FILE).exists():
        advice = "give the server's jwt_secret, --data-dir, --settings-file, or --jwt-algorithm and --jwt-key-file"
        raise CommandFailure(f"the key that signs tokens is missing: {advice}", USAGE)
    return load_or_create_secret(settings.data_dir)


TOKEN_TTL_SECONDS = 3600
"""Lifetime of a signed token in seconds. A longer stream signs a new one."""


def credential_options(command: Command) -> Command:
    """Add the options that name the server and the token: ``--url``, ``--token``, ``--token-file``, ``--user``."""
    for decorate in reversed((
        setting_options.URL_OPTION,
        click.option("--token", metavar="JWT", help="The token; other users of this machine see it, unlike a file."),
        click.option(
            "--token-file", type=click.File(encoding="utf-8"), help="File that holds the token; - is standard input."
        ),
        click.option("--user", metavar="LOGIN", help="Sign a token for this user, with the server's key."),
        setting_options.options(*setting_options.ACCESS_SETTINGS),
    )):  # fmt: skip
        command = decorate(command)
    return command


def open_client(given: Mapping[str, Any], scopes: frozenset[str]) -> Client:
    """Return a client with the server and the token of the options. For ``--user`` it signs tokens with ``scopes``.

    Raises :class:`CommandFailure` unless exactly one of ``--token``, ``--token-file`` and ``--user`` is given.
    """
    if sum(bool(given[name]) for name in ("token", "token_file", "user")) != 1:
        raise CommandFailure("no credential: give exactly one of --token, --token-file and --user", USAGE)
    settings = find_server(config.load({name: given[name] for name in setting_options.ACCESS_SETTINGS}), given["url"])
    token: str | Callable[[], str]
    if given["user"]:
        token = asyncio.run(_make_signer(settings, given["user"], scopes))
    else:
        token = clean(given["token"] or _read_token(given["token_file"]))
    return Client(server_address(given["url"], settings), token)


def _read_token(file: IO[str]) -> str:
    try:
        return file.read()
    except ValueError:  # such as UTF-16, which shells of Windows write
        raise CommandFailure("--token-file is not a text in UTF-8", USAGE) from None


async def _make_signer(settings: Config, login: str, scopes: frozenset[str]) -> Callable[[], str]:
    async with open_server_access(settings) as access:
        user_id = await access.find_user(login)
    return lambda: access.sign_token(user_id, scopes, TOKEN_TTL_SECONDS)
