"""The options that name a server and give a credential: a token, a file with a token, or a user to sign a token for."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.config import config
from stream_server.config.settings import Config

Command = TypeVar("Command", bound=Callable[..., Any])

STREAM_SCOPES = frozenset({"read", "stream", "firehose"})
"""Scopes of a token that is signed to read streams."""

TOKEN_TTL_SECONDS = 3600
"""Lifetime of that token in seconds. A longer stream signs a new one."""

OPTIONS = (
    click.option("--url", help="URL of the server; default: the one on --data-dir, else http://127.0.0.1:8000."),
    click.option("--token", metavar="JWT", help="The token; other users of this machine can see it, unlike a file."),
    click.option("--token-file", type=click.File(), help="File that holds the token; - is standard input."),
    click.option("--user", metavar="LOGIN", help="Sign a token for this user (with the server's --data-dir)."),
    setting_options.options(*setting_options.ACCESS_SETTINGS),
)
"""The options, in the order of ``--help``."""


def options(command: Command) -> Command:
    """Add ``--url``, ``--token``, ``--token-file``, ``--user`` and the settings that signing for a user needs."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def load(given: Mapping[str, Any]) -> Config:
    """Return the settings from the options of :func:`options`."""
    return config.load({name: given.get(name) for name in setting_options.ACCESS_SETTINGS})


def token_source(given: Mapping[str, Any]) -> str | Callable[[], str]:
    """Return the token, or a function that signs a new one.

    Raises :class:`CommandFailure` unless exactly one is given.
    """
    chosen = [name for name in ("token", "token_file", "user") if given[name]]
    if len(chosen) != 1:
        raise CommandFailure("no credential: give exactly one of --token, --token-file and --user", USAGE)
    if given["token"]:
        return str(given["token"]).strip()
    if given["token_file"]:
        return str(given["token_file"].read()).strip()
    return asyncio.run(_make_signer(load(given), given["user"]))


async def _make_signer(settings: Config, login: str) -> Callable[[], str]:
    """Look up the user and return the function that signs tokens for it."""
    async with server_access.open_server_access(settings) as access:
        user_id = await access.find_user(login)
    return lambda: access.sign_token(user_id, STREAM_SCOPES, TOKEN_TTL_SECONDS)
