"""The exit codes, and the failures that end a command with one sentence."""

from typing import IO, Any

import click

OK = 0
FAILED = 1
"""It was tried and did not work."""

USAGE = 2
"""The command line or a setting is wrong."""

UNREACHABLE = 3
"""There is nobody to talk to: no server, or no Redis."""

INTERRUPTED = 130
"""Ended by Ctrl-C, as shells count it."""


class CommandFailure(click.ClickException):
    """One sentence on stderr and an exit code, without a traceback."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = code  # type: ignore[misc]  # click documents the attribute for both, and types it for one

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence, under the command's name."""
        click.echo(f"stream-server: {self.format_message()}", file=file, err=file is None)
