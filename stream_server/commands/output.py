"""The output of commands: for people on a console, or with ``--json`` for programs."""

from typing import Any

import click
from rich.console import Console

from stream_server.commands.exit_codes import BrokenOutput
from stream_server.events.one_line import encode_json

JSON_OPTION = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text for people.")
"""The option ``--json``; ``docs/reference/commands.md`` describes what each command prints with it."""


FILE_WIDTH = 200
"""Width in columns of tables in a file or a pipe."""


class OutputConsole(Console):
    """A console without markup and without colours of its own. It reports a reader that has left.

    Attributes:
        has_unicode: Whether the output can have any character.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self.has_unicode = self.encoding.startswith("utf")
        if not self.is_terminal:
            self.width = max(self.width, FILE_WIDTH)

    def on_broken_pipe(self) -> None:
        """Raise :class:`BrokenOutput`; rich would end the process with exit code 1."""
        self.quiet = True
        raise BrokenOutput


def print_json(value: Any) -> None:
    """Print one JSON value on one line of standard output."""
    click.echo(encode_json(value))
