"""``token``: a token for somebody, on standard output."""

import asyncio
from typing import Any

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.duration import DurationType
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.config import config
from stream_server.config.settings import Config

SCOPES = ("read", "write", "stream", "firehose", "admin")

EPILOG = """
\b
Examples:
  stream-server token --data-dir ./data --user ada --create
  TOKEN=$(stream-server token --data-dir ./data --user ada --scope "stream firehose" --ttl 30d)
"""


@click.command(epilog=EPILOG)
@click.option("--user", "login", required=True, metavar="LOGIN", help="Whose token it is.")
@click.option("--scope", default="read write stream", show_default=True, help=f"Blank-separated: {' '.join(SCOPES)}.")
@click.option(
    "--ttl", type=DurationType(), default="1h", show_default=True, help="Valid for: 90 (seconds), 15m, 1h, 30d."
)
@click.option("--create", is_flag=True, help="Make the account, without a password, if there is none.")
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def token(login: str, scope: str, ttl: int, create: bool, **flags: Any) -> None:  # noqa: FBT001 - click's way
    """Print a token, signed with the running server's key."""
    click.echo(asyncio.run(_sign_token(config.load(flags), login, _parse_scopes(scope), ttl, create=create)))


async def _sign_token(settled: Config, login: str, scopes: frozenset[str], ttl: int, *, create: bool) -> str:
    async with server_access.open_server_access(settled) as stage:
        return stage.sign_token(await stage.find_user(login, create=create), scopes, ttl)


def _parse_scopes(text: str) -> frozenset[str]:
    scopes = frozenset(text.replace(",", " ").split())
    unknown = sorted(scopes - set(SCOPES))
    if unknown or not scopes:
        raise CommandFailure(f"--scope: {' '.join(unknown) or 'it'} is none of {' '.join(SCOPES)}", USAGE)
    return scopes
