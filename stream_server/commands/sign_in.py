"""The command ``sign-in``: print a link that signs a user in to the console."""

import asyncio
from typing import Any

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.commands.token import SCOPES, parse_scopes
from stream_server.config import config
from stream_server.config.settings import Config

EPILOG = """
\b
Examples:
  stream-server sign-in --data-dir ./data --user ada
  stream-server sign-in --data-dir ./data --user ada --scope "read write stream firehose admin"
  stream-server sign-in --data-dir ./data --user ada --url https://stream.example.org
"""


@click.command("sign-in", epilog=EPILOG)
@click.option("--user", "login", required=True, metavar="LOGIN", help="User whom the link signs in.")
@click.option("--scope", default="read write stream", show_default=True, help=f"Blank-separated: {' '.join(SCOPES)}.")
@click.option("--create", is_flag=True, help="Create the account, without a password, if it is missing.")
@click.option("--url", metavar="URL", help="Address of the server as the browser reaches it, if it is another one.")
@JSON_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def sign_in(*, login: str, scope: str, create: bool, url: str | None, as_json: bool, **flags: Any) -> None:
    """Print a link that signs a user in to the console once, within 15 minutes.

    The session has the scopes that --scope names, also after it was refreshed. It ends like any other session.
    """
    settings, scopes = config.load(flags), parse_scopes(scope)
    address = server_access.server_address(url, settings).rstrip("/")
    link = asyncio.run(_make_link(settings, login, scopes, address, create=create))
    if as_json:
        print_json({"link": link, "user": login, "scopes": sorted(scopes)})
    else:
        click.echo(link)


async def _make_link(settings: Config, login: str, scopes: frozenset[str], address: str, *, create: bool) -> str:
    async with server_access.open_server_access(settings) as access:
        return await access.make_sign_in_link(await access.find_user(login, create=create), scopes, address)
