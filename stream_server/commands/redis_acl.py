"""The command ``redis-acl``: print Redis users with the least rights that servers, workers and listeners need.

``server``   a server process: everything below the keys of this project, and the bus
``worker``   ``stream-server worker`` and ``repair``: the same without listening to the bus
``reader``   another program that listens to events and reads the log, and can change nothing
"""

import secrets
from hashlib import sha256

import click

from stream_server.commands.output import JSON_OPTION, print_json
from stream_server.store import keys

DATA_COMMANDS = (
    "+@read", "+@write", "+@connection", "+@transaction", "+evalsha", "+script|load", "+publish", "+wait",
    "-@dangerous", "+info", "+time", "+cluster|slots", "+cluster|nodes", "+cluster|info",
    "+readonly",
)  # fmt: skip
"""Commands on data. `-@dangerous` takes away FLUSHALL, KEYS, SORT, RESTORE and the like.

The last four are for a cluster: to find the nodes, to see whether it is down, and to read from replicas.
"""

EVENT_CHANNELS = "&events:*"

CORE_PATTERN = "~{core}:*"
DERIVED_PATTERNS = tuple(f"~{key.prefix}*" for key in keys.DERIVED_KEYS)

RULES_BY_ROLE: dict[str, tuple[str, ...]] = {
    "server": (
        CORE_PATTERN, *DERIVED_PATTERNS, "resetchannels", EVENT_CHANNELS, "&streams:*",
        *DATA_COMMANDS, "+subscribe", "+unsubscribe",
    ),
    "worker": (CORE_PATTERN, *DERIVED_PATTERNS, "resetchannels", EVENT_CHANNELS, *DATA_COMMANDS),
    "reader": (
        f"~{keys.LOG}", "resetchannels", EVENT_CHANNELS, "+@connection", "+xrange", "+xrevrange", "+xread", "+xlen",
        "+subscribe", "+psubscribe", "+unsubscribe", "+punsubscribe",
    ),
}  # fmt: skip
"""The rules of each role, without its password. The channels `streams:` carry questions about open streams."""


def acl_line(role: str, name: str, password_sha256: str) -> str:
    """Return the line of an ACL file for the user ``name`` with the rights of a role.

    ``password_sha256`` is the SHA-256 of the password in hexadecimal, as Redis stores it.
    """
    return " ".join((f"user {name} reset on #{password_sha256} -@all", *RULES_BY_ROLE[role]))


DEFAULT_OFF = "user default off"


@click.command(
    epilog="""
\b
Examples:
  stream-server redis-acl > users.acl     then: redis-server --aclfile users.acl
"""
)
@click.option("--prefix", default="stream-server-", show_default=True, help="Beginning of the names of the users.")
@JSON_OPTION
def redis_acl(*, prefix: str, as_json: bool) -> None:
    """Print an ACL file for Redis: one user for servers, one for workers, one for programs that only listen.

    The file has the SHA-256 of new random passwords. The passwords go to standard error, once; with --json they are in
    the output. The user `default` is switched off.
    """
    users: list[dict[str, str]] = []
    for role in RULES_BY_ROLE:
        name, password = prefix + role, secrets.token_urlsafe(32)
        line = acl_line(role, name, sha256(password.encode()).hexdigest())
        users.append({"role": role, "name": name, "password": password, "line": line})
    if as_json:
        print_json({"acl": [DEFAULT_OFF, *(user["line"] for user in users)], "users": users})
        return
    click.echo(DEFAULT_OFF)
    for user in users:
        click.echo(user["line"])
        click.echo(f"{user['name']}: redis://{user['name']}:{user['password']}@HOST:6379/0", err=True)
