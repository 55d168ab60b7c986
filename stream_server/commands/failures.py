"""Which exceptions are failures that a command can end with: each becomes one sentence and an exit code."""

from filters.registry import PluginError
from stream_server.client import ClientFailure, InvalidAddress, Unreachable
from stream_server.commands.exit_codes import FAILED, UNREACHABLE, USAGE, CommandFailure
from stream_server.config.settings import InvalidSetting


def failure_of(error: Exception) -> CommandFailure | None:
    """Return the message and exit code for an exception that a person can act on; None for a fault of the program."""
    if isinstance(error, InvalidSetting | InvalidAddress):
        return CommandFailure(str(error), USAGE)
    if isinstance(error, PluginError):
        return CommandFailure(str(error))
    if isinstance(error, ClientFailure):
        return CommandFailure(str(error), UNREACHABLE if isinstance(error, Unreachable) else FAILED)
    return None
