"""The commands, and how each kind of failure ends them: one sentence, one exit code, no traceback."""

from typing import Any

import click

from filters.registry import PluginError
from stream_server import __version__
from stream_server.client import ClientFailure, Unreachable
from stream_server.commands.doctor import doctor
from stream_server.commands.exit_codes import FAILED, INTERRUPTED, UNREACHABLE, USAGE, CommandFailure
from stream_server.commands.fetch import fetch
from stream_server.commands.reload import reload
from stream_server.commands.repair import repair
from stream_server.commands.replay import replay
from stream_server.commands.rules import rules
from stream_server.commands.serve import serve
from stream_server.commands.tail import tail
from stream_server.commands.token import token
from stream_server.commands.worker import worker
from stream_server.config.settings import InvalidSetting

EPILOG = """
\b
Examples:
  stream-server serve --demo                      try it: a small world, and what to paste
  stream-server serve --data-dir ./data           a server that keeps its data
  stream-server token --data-dir ./data --user ada --create
  stream-server replay tweets.jsonl --data-dir ./data --rate 50
  stream-server tail --data-dir ./data --user ada --track "redis,postgres"
  stream-server rules explain 'tea -is:reply' --text 'a cup of tea'
  stream-server reload --data-dir ./data          after a change of its --settings-file
  stream-server doctor --data-dir ./data
  stream-server fetch                             a redis-server and the detector of languages, where `make` did not

\b
Exit codes: 0 done, 1 failed, 2 wrong usage or setting, 3 nobody to connect to, 130 Ctrl-C.
Every option of a setting may come from the environment: --data-dir is STREAM_SERVER_DATA_DIR.
"""


class CommandGroup(click.Group):
    """The group of commands; what they raise becomes a sentence here."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
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

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which they are needed, not by name."""
        return list(self.commands)


@click.group(cls=CommandGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stream-server")
def cli() -> None:
    """A real-time streaming API: write over HTTP, and every client whose filters match hears of it.

    Everything a client does is HTTP; these are for who runs the server, and for trying it.
    """


for command in (serve, worker, reload, token, tail, rules, replay, repair, doctor, fetch):
    cli.add_command(command)


def main() -> None:
    """Run the command line of this process."""
    cli(prog_name="stream-server")
