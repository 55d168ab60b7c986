"""The command ``admin``: make a user an administrator, such as the first one, or end that."""

import asyncio
from typing import Any

import click

from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import CommandFailure
from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.store.idempotency import IdempotencyKey

ADMIN_SCOPE = "admin"

EPILOG = """
\b
Examples:
  stream-server admin ada --data-dir ./data
  stream-server admin ada --remove --redis redis://10.0.0.5
"""


@click.command(epilog=EPILOG)
@click.argument("login")
@click.option("--remove", is_flag=True, help="Take the right away again.")
@JSON_OPTION
@setting_options.options(*server_access.STORE_SETTINGS)
def admin(*, login: str, remove: bool, as_json: bool, **flags: Any) -> None:
    """Give a user the scope `admin` in addition to those of the user's log-ins, or of an identity provider's tokens."""
    settings = server_access.with_server_redis(config.load(flags))
    asyncio.run(_grant(settings, login, "" if remove else ADMIN_SCOPE))
    if as_json:
        print_json({"user": login, "admin": not remove})
        return
    click.echo(f"{login} is {'no longer ' if remove else ''}an administrator")


async def _grant(settings: Config, login: str, scopes: str) -> None:
    async with server_access.open_store(settings) as store:
        found = await store.users.resolve_logins([login])
        if login.lower() not in found:
            raise CommandFailure(f"unknown login {login}")
        await store.users.grant_scopes("", found[login.lower()], scopes, IdempotencyKey.generate())
