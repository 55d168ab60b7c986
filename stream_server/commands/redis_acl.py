"""The command ``redis-acl``: print Redis users with the least rights that servers, workers and listeners need."""

import secrets
from hashlib import sha256

import click

from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.store.redis.acl import RULES_BY_ROLE, acl_line

DEFAULT_OFF = "user default off"

EPILOG = """
\b
Examples:
  stream-server redis-acl > users.acl     then: redis-server --aclfile users.acl
"""


@click.command(epilog=EPILOG)
@click.option("--prefix", default="stream-server-", show_default=True, help="Beginning of the names of the users.")
@JSON_OPTION
def redis_acl(*, prefix: str, as_json: bool) -> None:
    """Print an ACL file for Redis: one user for servers, one for workers, one for programs that only listen.

    The file has the SHA-256 of new random passwords. The passwords go to standard error, once; with --json they are in
    the output. The user `default` is switched off.
    """
    users = [_make_user(role, prefix + role) for role in RULES_BY_ROLE]
    if as_json:
        print_json({"acl": [DEFAULT_OFF, *(user["line"] for user in users)], "users": users})
        return
    click.echo(DEFAULT_OFF)
    for user in users:
        click.echo(user["line"])
        click.echo(f"{user['name']}: redis://{user['name']}:{user['password']}@HOST:6379/0", err=True)


def _make_user(role: str, name: str) -> dict[str, str]:
    password = secrets.token_urlsafe(32)
    line = acl_line(role, name, sha256(password.encode()).hexdigest())
    return {"role": role, "name": name, "password": password, "line": line}
