"""Options out of the one table of settings."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stream_server.config.settings import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])

CLICK_TYPES: dict[type, click.ParamType[Any]] = {int: click.INT, float: click.FLOAT, str: click.STRING}

LOCATING_SETTINGS = {"redis", "data_dir", "settings_file"}

ACCESS_SETTINGS = tuple(s.name for s in SETTINGS if s.name in LOCATING_SETTINGS or s.name.startswith("jwt_"))
"""The settings by which a command finds a running server's Redis and key."""


def options(*names: str) -> Callable[[Command], Command]:
    """A decorator: the options of the settings with these names, all of them if none is named.

    None is what an option that was not given hands over, so that the environment and the default get their turn.
    """
    chosen = [setting for setting in SETTINGS if not names or setting.name in names]

    def decorate(command: Command) -> Command:
        for setting in reversed(chosen):
            command = _make_option(setting)(command)
        return command

    return decorate


def _make_option(setting: Setting) -> Callable[[Command], Command]:
    return click.option(
        setting.flag,
        setting.name,
        type=CLICK_TYPES[type(setting.default)],
        default=None,
        metavar=setting.unit.upper().replace(" ", "-"),
        help=_help_text(setting),
    )


def _help_text(setting: Setting) -> str:
    default = f"Default {setting.default}. " if setting.default != "" else ""
    return f"{setting.help}  [{default}{setting.environment_variable}]"
