"""Reading a TOML file of settings. The names and types are those of the table of settings; ``config`` checks them."""

import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

OTHERS_READ_BITS = 0o044
"""Permission bits that let the group and all other users read a file."""


class UnusableSettingsFile(ValueError):
    """The file cannot be read or is not TOML. The message begins with the file's path and repeats no value."""


class SettingsFileContent(NamedTuple):
    """The content of a settings file.

    Attributes:
        values: Values by the names in the file, not yet checked.
        readable_by_others: Whether the file's mode lets other users than the owner read it.
    """

    values: dict[str, Any]
    readable_by_others: bool


def read(path: str) -> SettingsFileContent:
    """Read the settings file; raises :class:`UnusableSettingsFile` if it cannot be read or is not TOML."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return SettingsFileContent(tomllib.load(file), bool(os.fstat(file.fileno()).st_mode & OTHERS_READ_BITS))
    except OSError as error:
        raise UnusableSettingsFile(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UnusableSettingsFile(f"{path} is not valid TOML: {error}") from None
