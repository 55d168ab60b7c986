"""The token of a command that reads from a server: given, or signed for a user by the server's key."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.config.settings import Config

Command = TypeVar("Command", bound=Callable[..., Any])

TOKEN_TTL_SECONDS = 3600
"""Lifetime of a signed token in seconds. A longer stream signs a new one."""


def credential_options(command: Command) -> Command:
    """Add the options that name the server and the token: ``--url``, ``--token``, ``--token-file``, ``--user``."""
    for decorate in reversed((
        setting_options.URL_OPTION,
        click.option("--token", metavar="JWT", help="The token; other users of this machine see it, unlike a file."),
        click.option("--token-file", type=click.File(), help="File that holds the token; - is standard input."),
        click.option("--user", metavar="LOGIN", help="Sign a token for this user (with the server's --data-dir)."),
        setting_options.options(*setting_options.ACCESS_SETTINGS),
    )):  # fmt: skip
        command = decorate(command)
    return command


def token_source(given: Mapping[str, Any], settings: Config, scopes: frozenset[str]) -> str | Callable[[], str]:
    """Return the given token; for ``--user``, return a function that signs a new token with ``scopes`` at each call.

    Raises :class:`CommandFailure` unless exactly one of ``--token``, ``--token-file`` and ``--user`` is given.
    """
    chosen = [name for name in ("token", "token_file", "user") if given[name]]
    if len(chosen) != 1:
        raise CommandFailure("no credential: give exactly one of --token, --token-file and --user", USAGE)
    if given["token"]:
        return str(given["token"]).strip()
    if given["token_file"]:
        return str(given["token_file"].read()).strip()
    return asyncio.run(_make_signer(settings, given["user"], scopes))


async def _make_signer(settings: Config, login: str, scopes: frozenset[str]) -> Callable[[], str]:
    async with server_access.open_server_access(settings) as access:
        user_id = await access.find_user(login)
    return lambda: access.sign_token(user_id, scopes, TOKEN_TTL_SECONDS)
