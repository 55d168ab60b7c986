"""A file of settings: TOML, names as in the table of settings, values of its types. What they mean is ``config``'s."""

import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

OTHERS_READ_BITS = 0o044
"""Permission bits: the group and everybody else may read it."""


class UnusableSettingsFile(ValueError):
    """The file cannot be used as it is; the message says why and begins with its path. It repeats no value."""


class SettingsFileContent(NamedTuple):
    """What is in a file; ``readable_by_others`` says that others than its owner may read it."""

    values: dict[str, Any]
    readable_by_others: bool


def read(path: str) -> SettingsFileContent:
    """The names and values of the file; raises :class:`UnusableSettingsFile` for one that cannot be read, or is no TOML."""
    try:
        with Path(path).expanduser().open("rb") as file:
            return SettingsFileContent(tomllib.load(file), bool(os.fstat(file.fileno()).st_mode & OTHERS_READ_BITS))
    except OSError as error:
        raise UnusableSettingsFile(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UnusableSettingsFile(f"{path} is no TOML: {error}") from None
