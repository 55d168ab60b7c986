"""The options that say which server, and who is asking: a token, a file with one, or a login to sign one for."""

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
"""What a token signed for reading streams may do."""

TOKEN_TTL_SECONDS = 3600
"""How long it is valid; a longer reading signs another."""

OPTIONS = (
    click.option("--url", help="The server; by default the one on --data-dir, else http://127.0.0.1:8000."),
    click.option("--token", metavar="JWT", help="The token; others on this machine can see it, unlike a file."),
    click.option("--token-file", type=click.File(), help="File that holds the token; - is standard input."),
    click.option("--user", metavar="LOGIN", help="Sign a token for this user (with the server's --data-dir)."),
    setting_options.options(*setting_options.ACCESS_SETTINGS),
)


def options(command: Command) -> Command:
    """``--url``, ``--token``, ``--token-file``, ``--user`` and what signing for a user takes."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def load(given: Mapping[str, Any]) -> Config:
    """The settings among the options of :func:`options`."""
    return config.load({name: given.get(name) for name in setting_options.ACCESS_SETTINGS})


def token_source(given: Mapping[str, Any]) -> str | Callable[[], str]:
    """The token, or what signs a fresh one, out of the options of :func:`options`."""
    chosen = [name for name in ("token", "token_file", "user") if given[name]]
    if len(chosen) != 1:
        raise CommandFailure("who is asking? Give one of --token, --token-file and --user", USAGE)
    if given["token"]:
        return str(given["token"]).strip()
    if given["token_file"]:
        return str(given["token_file"].read()).strip()
    return asyncio.run(_make_signer(load(given), given["user"]))


async def _make_signer(settled: Config, login: str) -> Callable[[], str]:
    async with server_access.open_server_access(settled) as stage:
        user_id = await stage.find_user(login)
    return lambda: stage.sign_token(user_id, STREAM_SCOPES, TOKEN_TTL_SECONDS)
