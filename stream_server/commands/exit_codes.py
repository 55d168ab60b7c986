"""The exit codes of the commands, and the exception that ends a command with one sentence."""

from typing import IO, Any

import click

OK = 0
"""The command succeeded."""
FAILED = 1
"""The command was tried and failed."""

USAGE = 2
"""The command line or a setting is wrong."""

UNREACHABLE = 3
"""The server, Redis or the package index cannot be reached."""

INTERRUPTED = 130
"""Ctrl-C ended the command; shells use this code."""


class CommandFailure(click.ClickException):
    """Ends a command with one sentence on standard error and an exit code, without a traceback."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = code  # type: ignore[misc]  # click documents an instance attribute but types a class attribute

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence after the program's name."""
        click.echo(f"stream-server: {self.format_message()}", file=file, err=file is None)
