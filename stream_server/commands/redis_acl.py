"""The command ``redis-acl``: print Redis users with the least rights that servers, workers and listeners need."""

import secrets
from hashlib import sha256

import click

from stream_server.store.redis.acl import RULES_BY_ROLE, acl_line

EPILOG = """
\b
Examples:
  stream-server redis-acl > users.acl     then: redis-server --aclfile users.acl
"""


@click.command(epilog=EPILOG)
@click.option("--prefix", default="stream-server-", show_default=True, help="Beginning of the names of the users.")
def redis_acl(prefix: str) -> None:
    """Print an ACL file for Redis: one user for servers, one for workers, one for programs that only listen.

    The file has the SHA-256 of new random passwords. The passwords go to standard error, once. The user `default` is
    switched off.
    """
    click.echo("user default off")
    for role in RULES_BY_ROLE:
        password = secrets.token_urlsafe(32)
        click.echo(acl_line(role, prefix + role, sha256(password.encode()).hexdigest()))
        click.echo(f"{prefix}{role}: redis://{prefix}{role}:{password}@HOST:6379/0", err=True)
