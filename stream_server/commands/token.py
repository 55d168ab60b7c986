"""The command ``token``: print a token for a user."""

import asyncio
from typing import Any

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.duration import DurationType
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.config import config
from stream_server.config.settings import Config

SCOPES = ("read", "write", "stream", "firehose", "admin")
"""Scopes that the command can put into a token."""

EPILOG = """
\b
Examples:
  stream-server token --data-dir ./data --user ada --create
  TOKEN=$(stream-server token --data-dir ./data --user ada --scope "stream firehose" --ttl 30d)
"""


@click.command(epilog=EPILOG)
@click.option("--user", "login", required=True, metavar="LOGIN", help="User of the token.")
@click.option("--scope", default="read write stream", show_default=True, help=f"Blank-separated: {' '.join(SCOPES)}.")
@click.option(
    "--ttl", type=DurationType(), default="1h", show_default=True, help="Lifetime: 90 (seconds), 15m, 1h, 30d."
)
@click.option("--create", is_flag=True, help="Create the account, without a password, if it is missing.")
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def token(login: str, scope: str, ttl: int, create: bool, **flags: Any) -> None:  # noqa: FBT001 - click passes flags so
    """Print a token, signed with the running server's key."""
    click.echo(asyncio.run(_sign_token(config.load(flags), login, _parse_scopes(scope), ttl, create=create)))


async def _sign_token(settings: Config, login: str, scopes: frozenset[str], ttl: int, *, create: bool) -> str:
    """Return a token for the user with ``login``."""
    async with server_access.open_server_access(settings) as access:
        return access.sign_token(await access.find_user(login, create=create), scopes, ttl)


def _parse_scopes(text: str) -> frozenset[str]:
    """Return the scopes in ``text``, separated by blanks or commas.

    Raises :class:`CommandFailure` for an unknown one.
    """
    scopes = frozenset(text.replace(",", " ").split())
    unknown = sorted(scopes - set(SCOPES))
    if unknown or not scopes:
        fault = f"unknown scope {' '.join(unknown)}" if unknown else "no scope"
        raise CommandFailure(f"--scope: {fault}; give some of {' '.join(SCOPES)}", USAGE)
    return scopes
