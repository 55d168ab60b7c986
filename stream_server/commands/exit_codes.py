"""The exit codes of the commands, and the exceptions that end a command: with one sentence, or quietly."""

from typing import IO, Any

import click

OK, FAILED, USAGE, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 130
"""Exit codes: success, failure, wrong usage or setting, unreachable server, Redis or package index, and Ctrl-C."""


class BrokenOutput(Exception):
    """Raised when the reader of the output has left, such as ``head``. The command ends quietly."""


class CommandFailure(click.ClickException):
    """Raised to end a command with one sentence on standard error and an exit code, without a traceback."""

    def __init__(self, sentence: str, code: int = FAILED) -> None:
        super().__init__(sentence)
        self.exit_code = code  # type: ignore[misc]  # click documents an instance attribute but types a class attribute

    def show(self, file: IO[Any] | None = None) -> None:
        """Print ``stream-server:`` and the sentence of the failure to ``file``, by default standard error."""
        click.echo(f"stream-server: {self.format_message()}", file=file, err=file is None)


def failure_of(error: Exception) -> CommandFailure | None:
    """Return the message and exit code for an exception that a person can act on; None for a fault of the program."""
    from filters.registry import PluginError  # noqa: PLC0415 - a command that succeeds does not need these
    from stream_server.client import ClientFailure, InvalidAddress, Unreachable  # noqa: PLC0415 - see above
    from stream_server.config.settings import InvalidSetting  # noqa: PLC0415 - see above

    if isinstance(error, InvalidSetting | InvalidAddress):
        return CommandFailure(str(error), USAGE)
    if isinstance(error, PluginError):
        return CommandFailure(str(error))
    if isinstance(error, ClientFailure):
        return CommandFailure(str(error), UNREACHABLE if isinstance(error, Unreachable) else FAILED)
    return None
