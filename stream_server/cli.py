"""The command line: all commands, and how a failure ends one: with one sentence, one exit code and no traceback."""

import os
import sys
from typing import Any

import click

from filters.registry import PluginError
from stream_server import __version__
from stream_server.client import ClientFailure, Unreachable
from stream_server.commands.admin import admin
from stream_server.commands.completion import completion
from stream_server.commands.doctor import doctor
from stream_server.commands.exit_codes import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.export import export
from stream_server.commands.fetch import fetch
from stream_server.commands.load import load
from stream_server.commands.output import BrokenOutput
from stream_server.commands.redis_acl import redis_acl
from stream_server.commands.reload import reload
from stream_server.commands.repair import repair
from stream_server.commands.replay import replay
from stream_server.commands.rules import rules
from stream_server.commands.serve import serve
from stream_server.commands.sign_in import sign_in
from stream_server.commands.stats import stats
from stream_server.commands.tail import tail
from stream_server.commands.token import token
from stream_server.commands.worker import worker
from stream_server.config.settings import InvalidSetting

EPILOG = """
\b
Examples:
  stream-server serve --demo                      try it with sample content and commands to copy
  stream-server serve --data-dir ./data           a server that keeps its data
  stream-server token --data-dir ./data --user ada --create
  stream-server sign-in --data-dir ./data --user ada
  stream-server replay tweets.jsonl --data-dir ./data --rate 50
  stream-server tail --data-dir ./data --user ada --track "redis,postgres"
  stream-server stats --data-dir ./data --user ada
  stream-server load --data-dir ./data --streams 100 --rate 50
  stream-server export --data-dir ./data --user ada --since -24h --to day.parquet
  stream-server rules explain 'tea -is:reply' --text 'a cup of tea'
  stream-server reload --data-dir ./data          after you changed its --settings-file
  stream-server doctor --data-dir ./data
  stream-server fetch                             download a redis-server and the language detector

\b
Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 server or Redis unreachable, 130 Ctrl-C.
The environment can give every setting: --data-dir is STREAM_SERVER_DATA_DIR.
"""


class CommandGroup(click.Group):
    """The click group of all commands. A command that fails ends with one sentence, an exit code and no traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the chosen command. Raise its known errors as :class:`CommandFailure`, Ctrl-C as click's Exit (130)."""
        try:
            return super().invoke(ctx)
        except InvalidSetting as error:
            raise CommandFailure(str(error), USAGE) from None
        except PluginError as error:
            raise CommandFailure(str(error)) from None
        except ClientFailure as error:
            raise CommandFailure(str(error), UNREACHABLE if isinstance(error, Unreachable) else FAILED) from None
        except KeyboardInterrupt:
            raise click.exceptions.Exit(INTERRUPTED) from None
        except (BrokenPipeError, BrokenOutput):
            # The reader has seen enough, such as `head`. What is left in the buffer would fail again at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(OK) from None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the signature that click calls
        """Return the names of the commands in the order in which a person needs them, not in alphabetical order."""
        return list(self.commands)


@click.group(cls=CommandGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stream-server")
def cli() -> None:
    """Run a real-time streaming API, or work with a running server.

    Clients use HTTP for everything. These commands are for operators, and for trying the server.
    """


COMMANDS = (
    serve, worker, reload, token, sign_in, admin, tail, stats, export, rules, replay, load, repair, doctor, redis_acl,
    fetch, completion,
)  # fmt: skip
for command in COMMANDS:
    cli.add_command(command)


def main() -> None:
    """Run the command ``stream-server`` with the arguments of this process."""
    cli(prog_name="stream-server")
