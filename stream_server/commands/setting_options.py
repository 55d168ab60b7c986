"""Makes command-line options from the table of settings."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from stream_server.commands.completion import complete_setting
from stream_server.config.settings import SETTINGS, Setting

Command = TypeVar("Command", bound=Callable[..., Any])

ACCESS_SETTINGS = tuple(
    s.name
    for s in SETTINGS
    if s.has_flag and (s.name in {"redis", "data_dir", "settings_file"} or s.name.startswith("jwt_"))
)
"""Settings by which a command finds the Redis and the key of a running server."""

URL_OPTION = click.option(
    "--url",
    help="URL of the server; default: the one on --data-dir, else the one that runs here, else http://127.0.0.1:8000.",
)


def options(*names: str) -> Callable[[Command], Command]:
    """Return a decorator that adds a command-line option for each named setting; without names, for all settings.

    Keys and tokens have no option: their variables, files or lines in the settings file give them.

    If the person does not give an option, it is None, and the setting has its value from the environment, the settings
    file or the default.
    """
    chosen = [each for each in SETTINGS if each.has_flag and (not names or each.name in names)]

    def decorate(command: Command) -> Command:
        for setting in reversed(chosen):
            command = _make_option(setting)(command)
        return command

    return decorate


def _make_option(setting: Setting) -> Callable[[Command], Command]:
    default = f"Default {setting.default}. " if setting.default != "" else ""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return complete_setting(setting, incomplete)

    return click.option(
        setting.flag,
        setting.name,
        type=type(setting.default),
        default=None,
        shell_complete=complete,
        metavar=setting.unit.upper().replace(" ", "-"),
        help=f"{setting.help}  [{default}{setting.environment_variable}]",
    )
