"""The commands ``token``, ``sign-in`` and ``admin``: what a user may do here, and how programs and people get in."""

import asyncio
import re
from typing import Any

import click
import msgspec
from click.core import ParameterSource

from filters.error import ParameterError
from filters.within import Within
from stream_server.commands import server_access, setting_options
from stream_server.commands.exit_codes import USAGE, CommandFailure
from stream_server.commands.output import JSON_OPTION, finish
from stream_server.config import config
from stream_server.config.settings import Config
from stream_server.security.claims import Reader
from stream_server.security.external_identity import SCOPES
from stream_server.store.idempotency import IdempotencyKey

MAX_SECONDS = 100 * 365 * 86400
"""Longest duration: a hundred years. The end of such a token is still a date that programs can represent."""


def parse_duration(text: str) -> int:
    """Return the seconds of a duration such as ``90``, ``15m``, ``1h`` or ``30d``; raises ValueError if invalid."""
    match = re.fullmatch(r"([0-9]{1,12})([smhd]?)", text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a duration: write 90 (seconds), 15m, 1h or 30d")
    seconds = int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]
    if not 1 <= seconds <= MAX_SECONDS:
        raise ValueError(f"{text!r} must be between a second and a hundred years")
    return seconds


SCOPE_OPTION = click.option(
    "--scope", default="read write stream", show_default=True, help=f"Blank-separated: {' '.join(SCOPES)}."
)
CREATE_OPTION = click.option("--create", is_flag=True, help="Create the account, without a password, if it is missing.")


@click.command(
    epilog="""
\b
Examples:
  stream-server token --data-dir ./data --user ada --create
  TOKEN=$(stream-server token --data-dir ./data --user ada --scope "stream firehose" --ttl 30d)
  stream-server token --data-dir ./data --reader --within 'meta.site:blog' --ttl 1d
  stream-server token --data-dir ./data --revoke "$TOKEN"

\b
A reader token has no user. It opens streams of public events only, so a page for visitors without log-in may show it.
"""
)
@click.option("--user", "login", metavar="LOGIN", help="User of the token.")
@click.option("--reader", is_flag=True, help="Instead of --user: a token for visitors, for public streams only.")
@click.option("--within", metavar="RULE", help="With --reader: a rule that each event must match.")
@click.option("--max-streams", type=click.IntRange(1), help="With --reader: most open streams in a process.")
@click.option("--revoke", metavar="TOKEN", help="Instead of --user: end this token and its streams.")
@SCOPE_OPTION
@click.option(
    "--ttl", metavar="DURATION", default="1h", show_default=True, help="Lifetime: 90 (seconds), 15m, 1h, 30d."
)
@CREATE_OPTION
@JSON_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def token(
    *, login: str | None, reader: bool, within: str | None, max_streams: int | None, revoke: str | None, scope: str,
    ttl: str, create: bool, as_json: bool, **flags: Any,
) -> None:  # fmt: skip
    """Print a token, signed with the running server's key."""
    if [login is not None, reader, revoke is not None].count(True) != 1:
        raise CommandFailure("give one of --user, --reader and --revoke", USAGE)
    if not reader and (within is not None or max_streams is not None):
        raise CommandFailure("--within and --max-streams are for --reader", USAGE)
    source = click.get_current_context().get_parameter_source
    if login is None and {source("scope"), source("create")} != {ParameterSource.DEFAULT}:
        raise CommandFailure("--scope and --create are for --user", USAGE)
    if revoke is not None:
        asyncio.run(_revoke(server_access.find_server(config.load(flags)), revoke))
        finish({"revoked": True}, "the token is revoked", as_json=as_json)
        return
    try:
        seconds = parse_duration(ttl)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="'--ttl'") from None
    if login is None:
        limits = Reader(_check_rule(within), max_streams or 0)
        signed = asyncio.run(_sign_reader_token(server_access.find_server(config.load(flags)), limits, seconds))
        finish({"token": signed, **msgspec.to_builtins(limits), "expires_in": seconds}, signed, as_json=as_json)
        return
    scopes = parse_scopes(scope)
    settings = server_access.find_server(config.load(flags))
    signed = asyncio.run(_sign_token(settings, login, scopes, seconds, create=create))
    result = {"token": signed, "user": login, "scopes": sorted(scopes), "expires_in": seconds}
    finish(result, signed, as_json=as_json)


def _check_rule(text: str | None) -> str:
    """Return the rule of ``--within``, "" for none. End the command if it is invalid."""
    try:
        return "" if text is None else str(Within.parse(text).canonical_form)
    except ParameterError as error:
        raise CommandFailure(f"--within: {error.message}", USAGE) from None


async def _sign_reader_token(settings: Config, reader: Reader, ttl: int) -> str:
    async with server_access.open_server_access(settings) as access:
        return access.sign_reader_token(reader, ttl)


async def _revoke(settings: Config, token: str) -> None:
    async with server_access.open_server_access(settings) as access:
        await access.revoke_token(token)


async def _sign_token(settings: Config, login: str, scopes: frozenset[str], ttl: int, *, create: bool) -> str:
    async with server_access.open_server_access(settings) as access:
        return access.sign_token(await access.find_user(login, create=create), scopes, ttl)


def parse_scopes(text: str) -> frozenset[str]:
    """Return the scopes in ``text``, separated by blanks or commas. End the command if a scope is unknown."""
    scopes = frozenset(text.replace(",", " ").split())
    unknown = sorted(scopes.difference(SCOPES))
    if unknown or not scopes:
        fault = f"unknown scope {' '.join(unknown)}" if unknown else "no scope"
        raise CommandFailure(f"--scope: {fault}; give some of {' '.join(SCOPES)}", USAGE)
    return scopes


@click.command(
    "sign-in",
    epilog="""
\b
Examples:
  stream-server sign-in --data-dir ./data --user ada
  stream-server sign-in --data-dir ./data --user ada --scope "read write stream firehose admin"
  stream-server sign-in --data-dir ./data --user ada --url https://stream.example.org
""",
)
@click.option("--user", "login", required=True, metavar="LOGIN", help="User whom the link signs in.")
@SCOPE_OPTION
@CREATE_OPTION
@click.option("--url", metavar="URL", help="Address of the server as the browser reaches it, if it is another one.")
@JSON_OPTION
@setting_options.options(*setting_options.ACCESS_SETTINGS)
def sign_in(*, login: str, scope: str, create: bool, url: str | None, as_json: bool, **flags: Any) -> None:
    """Print a link that signs a user in to the console once, within 15 minutes.

    The session has the scopes that --scope names, also after it was refreshed. It ends like any other session.
    """
    scopes = parse_scopes(scope)
    settings = server_access.find_server(config.load(flags))
    address = server_access.public_address(url, settings).rstrip("/")
    link = asyncio.run(_make_link(settings, login, scopes, address, create=create))
    finish({"link": link, "user": login, "scopes": sorted(scopes)}, link, as_json=as_json)


async def _make_link(settings: Config, login: str, scopes: frozenset[str], address: str, *, create: bool) -> str:
    async with server_access.open_server_access(settings) as access:
        return await access.make_sign_in_link(await access.find_user(login, create=create), scopes, address)


@click.command(
    epilog="""
\b
Examples:
  stream-server admin ada --data-dir ./data
  stream-server admin ada --remove --redis redis://10.0.0.5
"""
)
@click.argument("login")
@click.option("--remove", is_flag=True, help="Take the right away again.")
@JSON_OPTION
@setting_options.options(*server_access.STORE_SETTINGS)
def admin(*, login: str, remove: bool, as_json: bool, **flags: Any) -> None:
    """Give a user the scope `admin` in addition to those of the user's log-ins, or of an identity provider's tokens."""
    settings = server_access.with_server_redis(server_access.find_server(config.load(flags)))
    asyncio.run(_grant(settings, login, "" if remove else "admin"))
    sentence = f"{login} is {'no longer ' if remove else ''}an administrator"
    finish({"user": login, "admin": not remove}, sentence, as_json=as_json)


async def _grant(settings: Config, login: str, scopes: str) -> None:
    async with server_access.open_store(settings) as store:
        user_id = await server_access.find_user(store, login)
        await store.users.grant_scopes("", user_id, scopes, IdempotencyKey.generate())
