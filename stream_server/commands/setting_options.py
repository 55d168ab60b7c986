"""Makes command-line options from the table of settings."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stream_server.config.settings import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])

CLICK_TYPES: dict[type, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT, str: click.STRING}
"""The click type of each type of setting."""

LOCATING_SETTINGS = {"redis", "data_dir", "settings_file"}
"""Settings that locate a server's Redis and data."""

ACCESS_SETTINGS = tuple(s.name for s in SETTINGS if s.name in LOCATING_SETTINGS or s.name.startswith("jwt_"))
"""Settings by which a command finds the Redis and the key of a running server."""


def options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of the named settings, or of all settings.

    An option that is not given has the value None, so the environment, the file and the default apply.
    """
    chosen = [setting for setting in SETTINGS if not names or setting.name in names]

    def decorate(command: Command) -> Command:
        """Add the options to the command."""
        for setting in reversed(chosen):
            command = _make_option(setting)(command)
        return command

    return decorate


def _make_option(setting: Setting) -> Callable[[Command], Command]:
    """Return the option of one setting."""
    return click.option(
        setting.flag,
        setting.name,
        type=CLICK_TYPES[type(setting.default)],
        default=None,
        metavar=setting.unit.upper().replace(" ", "-"),
        help=_help_text(setting),
    )


def _help_text(setting: Setting) -> str:
    """Return the help text of one setting with its default and its variable."""
    default = f"Default {setting.default}. " if setting.default != "" else ""
    return f"{setting.help}  [{default}{setting.environment_variable}]"
