"""The command line: all commands, and how a failure ends one: with one sentence, one exit code and no traceback."""

import codecs
import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from io import TextIOWrapper
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from filters.suggestion import suggest
from stream_server.build import full_version
from stream_server.commands.exit_codes import INTERRUPTED, OK, BrokenOutput, failure_of
from stream_server.runtime.output_thread import open_closed_descriptors

COMMANDS: Mapping[str, str] = MappingProxyType({
    "serve": "Run the server, with an embedded Redis unless --redis names another one.",
    "worker": "Do background jobs without a server.",
    "token": "Print a token, signed with the running server's key.",
    "sign-in": "Print a link that signs a user in to the console once, within 15 minutes.",
    "admin": "Give a user the scope `admin` in addition to those of the user's log-ins, or of an identity provider's "
    "tokens.",
    "tail": "Show a stream in the terminal.",
    "subscriptions": "List, put, delete and acknowledge a user's named subscriptions.",
    "stats": "Show what a running server does: workers, streams, rates, lag, Redis, the log, slow clients, limits and "
    "errors.",
    "export": "Write past events into a file, for notebooks and other programs.",
    "count": "Count the past posts that match each RULE, as far as the log goes back.",
    "rules": "Try rules on a status without a server.",
    "replay": "Post the statuses in FILE (JSON lines) as their authors.",
    "load": "Put a synthetic load on a server, and measure.",
    "repair": "Find and repair faults in Redis.",
    "mend": "Cut the damaged end of the append-only file of Redis, such as zeros after a power cut.",
    "doctor": "Check this machine, a Redis and a running server.",
    "redis-acl": "Print an ACL file for Redis: one user for servers, one for workers, one for programs that only "
    "listen.",
    "completion": "Print a script that lets the shell complete commands, options and values.",
})  # fmt: skip
"""The commands in the order in which a person needs them, and what each one does: the first sentence of its help.

``redis-acl`` is ``redis_acl`` of the module ``commands.redis_acl``, and so on, see `MODULES`. A module is imported when
its command is used: to import all of them takes a second, and the shell asks for completions at each press of a key.
"""

MODULES = {"sign-in": "token", "admin": "token", "repair": "worker"}
"""The modules of the commands that are not the only one of their module."""


class CommandGroup(click.Group):
    """The click group of all commands. A command that fails ends with one sentence, an exit code and no traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command. Raise its known errors as :class:`CommandFailure`, Ctrl-C as click's Exit (130)."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):  # which click itself shows
            raise
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except (BrokenPipeError, BrokenOutput):
            # The reader has seen enough, such as `head`. What is left in the buffer would fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(OK) from None
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise failure from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature that click calls
        """Return the names of the commands in the order in which a person needs them, not in alphabetical order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - see above
        """Return the command, whose module is imported now; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        module = import_module(f"stream_server.commands.{MODULES.get(cmd_name, name)}")
        found: click.Command = getattr(module, name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name. Raises UsageError for an unknown one, with the nearest name."""
        if args and args[0] not in COMMANDS and (meant := suggest(args[0], COMMANDS)):
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{meant}'?")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin with ``incomplete``.

        Imports no command, because that takes long.
        """
        found = [CompletionItem(name, help=about) for name, about in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - see above
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001 - click's call
    if is_asked:
        click.echo(f"stream-server, version {full_version()}")
        context.exit()


@click.group(
    cls=CommandGroup,
    epilog="""
\b
Examples:
  stream-server serve --demo                      try it with sample content and commands to copy
  stream-server serve --data-dir ./data           a server that keeps its data
  stream-server token --user ada --create
  stream-server sign-in --user ada
  stream-server replay tweets.jsonl --rate 50
  stream-server tail --user ada --track "redis,postgres"
  stream-server subscriptions list --user ada
  stream-server stats --user ada
  stream-server load --streams 100 --rate 50
  stream-server export --user ada --since -24h --to day.parquet
  stream-server rules explain 'tea -is:reply' --text 'a cup of tea'
  stream-server doctor --data-dir ./data          also if that server does not run

\b
A command takes the server that you run on this machine. Of several sites, --data-dir names one.

\b
Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 server or Redis unreachable, 130 Ctrl-C.
The environment can give every setting: --data-dir is STREAM_SERVER_DATA_DIR.
The documentation: the link Guide on the page /docs of a running server.
""",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version, with a digest of the code that tells builds apart, and exit.",
)
def cli() -> None:
    """Run a real-time streaming API, or work with a running server.

    Clients use HTTP for everything. These commands are for operators, and for trying the server.
    """


def main() -> None:
    """Run the command ``stream-server`` with the arguments of this process."""
    open_closed_descriptors()
    codecs.register_error(ESCAPE, _escape_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=ESCAPE)
    cli(prog_name="stream-server")


ESCAPE = "stream_server_escape"
"""Name of the error handler that prints what the encoding of the terminal lacks as in JSON: ``\\u2615``."""


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return JSON escapes for the characters that the output cannot encode, and the index after them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
