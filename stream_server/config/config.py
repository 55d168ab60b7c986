"""Loading the settings: flags win over the environment, the environment over the settings file, the file over defaults.

The table is in :mod:`~stream_server.config.settings`. An unknown ``STREAM_SERVER_…`` variable or an unknown line of the
file is an error, because a misspelt setting would otherwise have no effect. This module alone reads ``os.environ``.
"""

import math
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from filters.suggestion import suggest
from stream_server.config.data_folder import data_folder
from stream_server.config.origins import parse_origins
from stream_server.config.plain_text import clean, read_clean
from stream_server.config.public_url import split_public_url
from stream_server.config.settings import SETTINGS, VARIABLE_PREFIX, Config, InvalidSetting, Setting, parse_limits
from stream_server.store.redis import address

SUPERVISOR_DEFAULTS = VARIABLE_PREFIX + "SUPERVISOR_DEFAULTS"
"""Internal variable of a worker: the names, separated by blanks, of the variables with values of the file or defaults.

A reload in the worker takes these values from the file and the defaults again.
"""

LINKS = (
    (r"(\w+_)?SERVICE_HOST", ""),
    (r"(\w+_)?SERVICE_PORT(_\w+)?", r"\d+$"),
    (r"(\w+_)?PORT", "(tcp|udp|sctp)://"),
    (r"(\w+_)?PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?", ""),
    (r"(\w+_)?NAME", "/"),
    (r"(\w+_)?ENV_\w+", ""),
)
"""Patterns of name and value of the variables by which Kubernetes and Docker tell a container of other services.

The name is what follows the prefix: they make such variables for a service named ``stream-server`` or longer. The
shapes are those of Kubernetes' service environment variables, which each container of the namespace gets, and of
Docker's legacy container links.
"""

FILE_SUFFIX = "_FILE"
"""End of the variables that name a file with a secret, as containers get secrets: ``STREAM_SERVER_JWT_SECRET_FILE``."""

MAX_NUMBER = 1e15
"""Greatest value of a number whose row sets no maximum. Sums with a greater number would not be exact."""


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """Return the settings: flags win over the environment, the environment over the file, the file over the defaults.

    A flag with the value None counts as not given. ``environ`` defaults to the environment of the process. Raises
    :class:`InvalidSetting` for an unknown name, a wrong type or a value out of range.
    """
    return _load(flags, _own_variables(os.environ if environ is None else environ))


def _load(flags: Mapping[str, Any] | None, environ: Mapping[str, str]) -> Config:
    _refuse_visible_secrets(flags)
    given = _given_values(flags, environ)
    values: dict[str, Any] = {s.name: _convert_value(s, given.get(s.name, s.default), s.display_name) for s in SETTINGS}
    if values["settings_file"] and SUPERVISOR_DEFAULTS not in environ:
        values |= {name: value for name, value in _file_values(values["settings_file"]).items() if name not in given}
    _check_redis(values, given)
    if values["status_max_days"] and not values["status_archive_dir"]:
        name = "--status-archive-dir (STREAM_SERVER_STATUS_ARCHIVE_DIR)"
        message = f"--status-max-days needs {name}: a folder, or `none` to delete statuses without an archive"
        raise InvalidSetting(message)
    parse_limits(values["limits"])
    values["cors_origins"] = parse_origins(values["cors_origins"])
    values["public_url"] = "".join(split_public_url(values["public_url"]))
    if values["data_dir"]:
        values["data_dir"] = str(data_folder(Path(values["data_dir"])))
    return Config(**values)


def load_again(flags: Mapping[str, Any]) -> Config:
    """Return the settings for a reload: read the settings file again; the person's flags and variables still win.

    In a worker process, the supervisor has set all settings as environment variables. Those that it took from the file
    or the defaults do not win: they are what the reload replaces. Raises :class:`InvalidSetting` if a setting is
    invalid.
    """
    ignored = {SUPERVISOR_DEFAULTS, *os.environ.get(SUPERVISOR_DEFAULTS, "").split()}
    return _load(flags, {name: value for name, value in _own_variables(os.environ).items() if name not in ignored})


def worker_environment(config: Config, flags: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables that hold all settings, for a worker. :func:`load` there makes an equal ``config``.

    The worker does not read the settings file at its start, so it can start even while the file is invalid.
    """
    given = _given_values(flags, _own_variables(os.environ))
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
    """Return the secrets in files that variables such as ``STREAM_SERVER_JWT_SECRET_FILE`` name.

    Raises :class:`InvalidSetting` if a file cannot be read. The message has the name of the variable only.
    """
    found = {}
    for setting in SETTINGS:
        variable = setting.environment_variable + FILE_SUFFIX
        if setting.is_secret and variable in environ:
            try:
                found[setting.name] = read_clean(Path(_expand_home(clean(environ[variable]), variable)))
            except (OSError, ValueError) as error:
                raise InvalidSetting(f"the file of {variable} cannot be read ({type(error).__name__})") from None
    return found


def _refuse_visible_secrets(flags: Mapping[str, Any] | None) -> None:
    """Raise :class:`InvalidSetting` for a password on the command line, which `ps` shows to all users."""
    for setting in SETTINGS:
        value = (flags or {}).get(setting.name)
        is_url = setting.unit == "URL" and setting.is_secret
        if value and is_url and any(map(address.has_password, str(value).split())):
            place = f"{setting.environment_variable}, {setting.environment_variable}{FILE_SUFFIX} or the settings file"
            raise InvalidSetting(f"{setting.flag} holds a password, which `ps` shows: put it into {place}")


def _hint(meant: str | None) -> str:
    """Return what an error message about an unknown setting suggests: the name that was meant, or where all stand."""
    return f"did you mean {meant}?" if meant else "`stream-server serve --help` lists the settings"


def _own_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with settings. An empty one counts as not given, as templates of containers write it.

    Only a supervisor gives its workers empty ones: they have the value that is set. Raises :class:`InvalidSetting` for
    a variable that is no setting, unless Kubernetes or Docker has set it.
    """
    known = {s.environment_variable for s in SETTINGS} | {SUPERVISOR_DEFAULTS}
    known |= {s.environment_variable + FILE_SUFFIX for s in SETTINGS if s.is_secret}
    known |= {VARIABLE_PREFIX + name for name in ("TEST_DATA", "TEST_REDIS", "CLIENTS_VENV")}  # of the test suite
    found = {}
    for name, value in environ.items():
        short = name.removeprefix(VARIABLE_PREFIX)
        if short == name or any(re.fullmatch(names, short) and re.match(values, value) for names, values in LINKS):
            continue
        if name not in known:
            meant = suggest(short, (each.removeprefix(VARIABLE_PREFIX) for each in known - {SUPERVISOR_DEFAULTS}))
            raise InvalidSetting(f"unknown setting {name}; {_hint(meant and VARIABLE_PREFIX + meant)}")
        if clean(value) or SUPERVISOR_DEFAULTS in environ:
            found[name] = value
    return found


def _check_redis(values: Mapping[str, Any], given: Collection[str]) -> None:
    """Raise :class:`InvalidSetting` for an invalid Redis URL, or for replica settings of the embedded Redis.

    The message never repeats a URL, because a URL may hold a password.
    """
    shown = {s.name: s.display_name if s.name in given else f"{values['settings_file']}: {s.name}" for s in SETTINGS}
    for name in ("redis", "redis_read"):
        urls = [values[name]] if name == "redis" else values[name].split()
        try:
            for url in filter(None, urls):
                address.validate_redis_url(url)
        except address.InvalidRedisUrl as error:
            raise InvalidSetting(f"{shown[name]} {error}") from None
    databases = {address.database_of(url) for url in values["redis_read"].split()}
    if values["redis"] and not databases <= {address.database_of(values["redis"])}:
        raise InvalidSetting(f"{shown['redis_read']} must name the same database as --redis")
    for name in ("redis_read", "write_replicas"):
        if values[name] and not values["redis"]:
            raise InvalidSetting(f"{shown[name]} needs --redis: the embedded Redis has no replicas")


def _expand_home(path: str, display_name: str) -> str:
    """Return ``path`` with the home folder in place of a ``~`` at its beginning. Nothing else expands a path again.

    Raises :class:`InvalidSetting` if there is no such home, as for a user that only a container knows.
    """
    expanded = os.path.expanduser(path)  # noqa: PTH111 - that of `Path` takes "" for "."
    if expanded.startswith("~"):
        raise InvalidSetting(f"{display_name} begins with {path.partition('/')[0]}, whose home folder is unknown")
    return expanded


def _file_values(path: str) -> dict[str, Any]:
    """Return the checked values in the TOML file at ``path`` by name; raises :class:`InvalidSetting` for any fault."""
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            found, readable_by_others = tomllib.loads(file.read()), os.fstat(file.fileno()).st_mode & 0o044
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSetting(f"{path} is not valid TOML: {error}") from None
    rows = {s.name: s for s in SETTINGS if s.name != "settings_file"}
    for name, value in found.items():
        row = rows.get(name)
        if row is None:
            raise InvalidSetting(f"{path}: unknown setting {name!r}; {_hint(suggest(name, rows))}")
        # The key of tokens is always a secret, a Redis URL only if it may hold a password.
        is_secret = row.is_secret and (not row.has_flag or address.may_contain_password(str(value)))
        if readable_by_others and is_secret:
            raise InvalidSetting(f"{path} holds {name}, so other users must not be able to read it: `chmod 600 {path}`")
    for name, value in found.items():
        wanted = type(rows[name].default)
        if type(value) not in ((int, float) if wanted is float else (wanted,)):
            type_name = {int: "a whole number", float: "a number", str: "a text"}[wanted]
            raise InvalidSetting(f"{path}: {name} must be {type_name} ({rows[name].unit})")
        found[name] = _convert_value(rows[name], value, f"{path}: {name}")
    return found


def _convert_value(setting: Setting, given: object, display_name: str) -> object:
    """Return ``given`` converted to the setting's type (int, float or str), and check its range and choices.

    A text loses what editors and shells add to it, such as the carriage return of an environment file from Windows.
    Raises :class:`InvalidSetting` for a wrong type or value. The message names the setting by ``display_name``.
    """
    try:
        value = type(setting.default)(clean(given) if isinstance(given, str) else given)
    except (TypeError, ValueError):
        raise InvalidSetting(f"{display_name} must be a number ({setting.unit})") from None
    except OverflowError:
        value = math.inf
    if setting.choices and value not in setting.choices:
        raise InvalidSetting(f"{display_name} must be one of {', '.join(setting.choices)}")
    if isinstance(value, str):
        return _expand_home(value, display_name) if setting.unit in {"file", "folder"} else value
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidSetting(f"{display_name} must be a finite number ({setting.unit})")
    if setting.minimum is not None and value < setting.minimum:
        raise InvalidSetting(f"{display_name} must be {setting.minimum:g} {setting.unit} or more")
    maximum = MAX_NUMBER if setting.maximum is None else setting.maximum
    if value > maximum:
        raise InvalidSetting(f"{display_name} must be {maximum:g} {setting.unit} or less")
    return value
