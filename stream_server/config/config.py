"""Loading the settings: flags win over the environment, the environment over the settings file, the file over defaults.

The table is in :mod:`~stream_server.config.settings`. An unknown ``STREAM_SERVER_…`` variable or an unknown line of the
file is an error, because a misspelt setting would otherwise have no effect. This module alone reads ``os.environ``.
"""

import math
import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from stream_server.config.settings import SETTINGS, VARIABLE_PREFIX, Config, InvalidSetting, Setting, parse_limits
from stream_server.store.redis import address

TEST_VARIABLES = frozenset({"TEST_DATA", "TEST_REDIS", "CLIENTS_VENV"})
"""Names after the prefix that belong to the test suite. The server accepts and ignores them."""

SUPERVISOR_DEFAULTS = VARIABLE_PREFIX + "SUPERVISOR_DEFAULTS"
"""Internal variable of a worker: the names, separated by blanks, of the variables with values of the file or defaults.

A reload in the worker takes these values from the file and the defaults again.
"""

FILE_SUFFIX = "_FILE"
"""End of the variables that name a file with a secret, as containers get secrets: ``STREAM_SERVER_JWT_SECRET_FILE``."""

MAX_NUMBER = 1e15
"""Greatest value of a number whose row sets no maximum. Sums with a greater number would not be exact."""

TYPE_NAMES = {int: "a whole number", float: "a number", str: "a text"}


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Return the settings: flags win over the environment, the environment over the file, the file over the defaults.

    A flag with the value None counts as not given. ``environ`` defaults to the environment of the process. Raises
    :class:`InvalidSetting` for an unknown name, a wrong type or a value out of range.
    """
    environ = os.environ if environ is None else environ
    _refuse_unknown_variables(environ)
    _refuse_visible_secrets(flags)
    given = _given_values(flags, environ)
    values: dict[str, Any] = {s.name: _convert_value(s, given.get(s.name, s.default), s.display_name) for s in SETTINGS}
    if values["settings_file"] and SUPERVISOR_DEFAULTS not in environ:
        values |= {name: value for name, value in _file_values(values["settings_file"]).items() if name not in given}
    _check_redis(values, given)
    _check_archive(values)
    parse_limits(values["limits"])
    return Config(**values)


def load_again(flags: Mapping[str, Any]) -> Config:
    """Return the settings for a reload: read the settings file again; the person's flags and variables still win.

    In a worker process, the supervisor has set all settings as environment variables. Those that it took from the file
    or the defaults do not win: they are what the reload replaces. Raises :class:`InvalidSetting` if a setting is
    invalid.
    """
    ignored = {SUPERVISOR_DEFAULTS, *os.environ.get(SUPERVISOR_DEFAULTS, "").split()}
    return load(flags, {name: value for name, value in os.environ.items() if name not in ignored})


def worker_environment(config: Config, flags: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables that hold all settings, for a worker. :func:`load` there makes an equal ``config``.

    The worker does not read the settings file at its start, so it can start even while the file is invalid.
    """
    given = _given_values(flags, os.environ)
    return {
        **os.environ,
        **{s.environment_variable: str(getattr(config, s.name)) for s in SETTINGS},
        SUPERVISOR_DEFAULTS: " ".join(s.environment_variable for s in SETTINGS if s.name not in given),
    }


def _given_values(flags: Mapping[str, Any] | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the unchecked values of environment variables and flags by setting name. A flag wins over a variable."""
    from_environment = {s.name: environ[s.environment_variable] for s in SETTINGS if s.environment_variable in environ}
    return (
        _secrets_from_files(environ)
        | from_environment
        | {name: value for name, value in (flags or {}).items() if value is not None}
    )


def _secrets_from_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in files that variables such as ``STREAM_SERVER_JWT_SECRET_FILE`` name, without line ends.

    Raises :class:`InvalidSetting` if a file cannot be read. The message has the name of the variable only.
    """
    found = {}
    for setting in SETTINGS:
        variable = setting.environment_variable + FILE_SUFFIX
        if setting.is_secret and variable in environ:
            try:
                found[setting.name] = Path(environ[variable]).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise InvalidSetting(f"the file of {variable} cannot be read ({type(error).__name__})") from None
    return found


def _refuse_visible_secrets(flags: Mapping[str, Any] | None) -> None:
    """Raise :class:`InvalidSetting` for a password on the command line, which `ps` shows to all users."""
    for setting in SETTINGS:
        value = (flags or {}).get(setting.name)
        if value and setting.unit == "URL" and setting.is_secret and address.has_password(str(value)):
            place = f"{setting.environment_variable}, {setting.environment_variable}{FILE_SUFFIX} or the settings file"
            raise InvalidSetting(f"{setting.flag} holds a password, which `ps` shows: put it into {place}")


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = {s.environment_variable for s in SETTINGS}
    known |= {s.environment_variable + FILE_SUFFIX for s in SETTINGS if s.is_secret}
    known |= {VARIABLE_PREFIX + name for name in TEST_VARIABLES}
    for name in environ:
        if name.startswith(VARIABLE_PREFIX) and name not in known and name != SUPERVISOR_DEFAULTS:
            raise InvalidSetting(f"unknown setting {name}; `stream-server serve --help` lists the settings")


def _check_redis(values: Mapping[str, Any], given: Collection[str]) -> None:
    """Raise :class:`InvalidSetting` for an invalid Redis URL, or for replica settings of the embedded Redis.

    The message never repeats a URL, because a URL may hold a password.
    """
    shown = {s.name: s.display_name if s.name in given else f"{values['settings_file']}: {s.name}" for s in SETTINGS}
    for name in ("redis", "redis_read"):
        try:
            if values[name]:
                address.validate_redis_url(values[name])
        except address.InvalidRedisUrl as error:
            raise InvalidSetting(f"{shown[name]} {error}") from None
    for name in ("redis_read", "write_replicas"):
        if values[name] and not values["redis"]:
            raise InvalidSetting(f"{shown[name]} needs --redis: the embedded Redis has no replicas")


def _check_archive(values: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidSetting` for a maximum age of statuses without a decision about the archive."""
    if values["status_max_days"] and not values["status_archive_dir"]:
        name = "--status-archive-dir (STREAM_SERVER_STATUS_ARCHIVE_DIR)"
        message = f"--status-max-days needs {name}: a folder, or `none` to delete statuses without an archive"
        raise InvalidSetting(message)


def _file_values(path: str) -> dict[str, Any]:
    """Return the checked values in the TOML file at ``path`` by name; raises :class:`InvalidSetting` for any fault."""
    try:
        with Path(path).expanduser().open("rb") as file:
            found, readable_by_others = tomllib.load(file), os.fstat(file.fileno()).st_mode & 0o044
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSetting(f"{path} is not valid TOML: {error}") from None
    rows = {s.name: s for s in SETTINGS if s.name != "settings_file"}
    for name, value in found.items():
        if name not in rows:
            raise InvalidSetting(f"{path}: unknown setting {name!r}; `stream-server serve --help` lists the settings")
        if readable_by_others and _holds_secret(rows[name], value):
            raise InvalidSetting(f"{path} holds {name}, so other users must not be able to read it: `chmod 600 {path}`")
    return {
        name: _convert_value(rows[name], _check_type(rows[name], value, path), f"{path}: {name}")
        for name, value in found.items()
    }


def _holds_secret(setting: Setting, value: object) -> bool:
    """Return whether ``value`` is secret: the key of tokens always, a Redis URL only if it may hold a password."""
    return setting.is_secret and (not setting.has_flag or address.may_contain_password(str(value)))


def _check_type(setting: Setting, value: object, path: str) -> object:
    """Return the TOML value unchanged. Raises :class:`InvalidSetting` if its type in TOML does not fit the setting."""
    wanted = type(setting.default)
    allowed: tuple[type, ...] = (int, float) if wanted is float else (wanted,)
    if type(value) not in allowed:
        raise InvalidSetting(f"{path}: {setting.name} must be {TYPE_NAMES[wanted]} ({setting.unit})")
    return value


def _convert_value(setting: Setting, given: object, display_name: str) -> object:
    """Return ``given`` converted to the setting's type (int, float or str), and check its range and choices.

    Raises :class:`InvalidSetting` for a wrong type or value. The message names the setting by ``display_name``.
    """
    try:
        value = type(setting.default)(given)
    except (TypeError, ValueError):
        raise InvalidSetting(f"{display_name} must be a number ({setting.unit})") from None
    except OverflowError:
        value = math.inf
    if setting.choices and value not in setting.choices:
        raise InvalidSetting(f"{display_name} must be one of {', '.join(setting.choices)}")
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSetting(f"{display_name} must be a finite number ({setting.unit})")
    if setting.minimum is not None and value < setting.minimum:
        raise InvalidSetting(f"{display_name} must be {setting.minimum:g} {setting.unit} or more")
    maximum = MAX_NUMBER if setting.maximum is None else setting.maximum
    if value > maximum:
        raise InvalidSetting(f"{display_name} must be {maximum:g} {setting.unit} or less")
    return value


PRIVATE_MODE = 0o700
OTHERS = 0o077


def make_private(folder: Path) -> None:
    """Create the data folder with the mode 0700, or take the rights of other users away from an existing one.

    Raises :class:`InvalidSetting` if other users have rights that this process cannot take away, and OSError if the
    folder cannot be created.
    """
    folder.mkdir(mode=PRIVATE_MODE, parents=True, exist_ok=True)
    if folder.stat().st_mode & OTHERS:
        try:
            folder.chmod(PRIVATE_MODE)
        except PermissionError:
            owner = f"it belongs to user {folder.stat().st_uid} and this process runs as {os.geteuid()}"
            message = f"other users can read the data folder {folder}, and {owner}: `chmod 700` it"
            raise InvalidSetting(message) from None


def write_private(file: Path, content: bytes) -> None:
    """Write a file that only its owner can read. A reader sees the old or the new content, never a part."""
    partial = file.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_bytes(content)
    partial.replace(file)
