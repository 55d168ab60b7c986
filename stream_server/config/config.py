"""The settings: one table, from which flags, environment variables and docs derive.

A setting ``token_ttl_seconds`` is the flag ``--token-ttl-seconds``, the environment variable
``STREAM_SERVER_TOKEN_TTL_SECONDS``, a line of the settings file and a row of the README; the flag wins over the
environment, and that over the file. An unknown ``STREAM_SERVER_…`` variable or line is refused, so that a misspelt one
is not silently nothing. Rows with ``reload`` may change while a server runs.
``os.environ`` is read here and nowhere else.
"""

import math
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from stream_server.config import settings_file
from stream_server.downloads import index
from stream_server.store.redis import address

VARIABLE_PREFIX = "STREAM_SERVER_"

TEST_VARIABLES = frozenset({"TEST_DATA", "TEST_REDIS", "CLIENTS_VENV"})
"""Names behind the prefix that belong to the test suite, not to the server."""


RELOADABLE = frozenset({
    "heartbeat_seconds", "canary_seconds", "log_max_seconds", "log_max_bytes", "ring_bytes", "ring_seconds",
    "client_buffer_bytes", "write_timeout_seconds", "behind_max_entries", "slow_window_seconds",
    "retry_spread_seconds", "retry_ms", "limits", "reconnect_limit", "log_level",
})  # fmt: skip
"""Settings that take effect in a server that runs; `app` tells whoever keeps one of them."""

SUPERVISOR_DEFAULTS = VARIABLE_PREFIX + "LEFT_OPEN"
"""In a worker's environment: the settings that only its supervisor gave it, which a reload looks up anew."""

SECRET_SETTINGS = frozenset({"jwt_secret", "redis", "redis_read"})
"""Settings whose values are, or hold, secrets."""


MAX_NUMBER = 1e15
"""Of any number that has no bound of its own: beyond it, sums with a setting would not be exact, or no number."""


class Setting(NamedTuple):
    """One row of the table; ``default`` also fixes the type, ``unit`` is for people, the bounds are inclusive.

    What has ``is_reloadable`` takes effect in a server that runs, when it is told to reload.
    """

    name: str
    default: Any
    unit: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def environment_variable(self) -> str:
        """The environment variable of this setting."""
        return VARIABLE_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The command-line flag of this setting."""
        return "--" + self.name.replace("_", "-")

    @property
    def display_name(self) -> str:
        """How a person is told which setting it is."""
        return f"{self.flag} ({self.environment_variable})"

    @property
    def is_reloadable(self) -> bool:
        """Whether it may change while a server runs."""
        return self.name in RELOADABLE


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address", "Address to listen on."),
    Setting("port", 8000, "port", "Port to listen on; 0 takes a free one and prints it.", 0, 65_535),
    Setting("workers", 1, "processes", "Worker processes on the one port; about one a core.", 1, 256),
    Setting("redis", "", "URL", "Redis to use: redis://, unix://, redis+sentinel:// …; empty starts an embedded one."),
    Setting("redis_read", "", "URL", "Replica to hear and read the log from; empty is the primary."),
    Setting("write_replicas", 0, "replicas", "So many replicas must have a write, else it is `outcome_unknown`.", 0),
    Setting("data_dir", "", "folder", "Where the embedded Redis keeps its data; empty is a temporary folder."),
    Setting(
        "settings_file", "", "file", "TOML file with settings by these names, with `_`; flags and environment win."
    ),
    Setting("jwt_secret", "", "text", "Key of HS256 tokens, 32 bytes or more; empty makes one in the data folder."),
    Setting("jwt_algorithm", "HS256", "name", "The one algorithm accepted: HS256, RS256, ES256 or EdDSA."),
    Setting("jwt_key_file", "", "file", "PEM key of RS256, ES256, EdDSA: private (log-in works) or public (verifies)."),
    Setting("jwt_jwks_url", "", "URL", "Key set (RFC 7517) to verify RS256, ES256, EdDSA tokens with."),
    Setting("jwt_issuer", "stream-server", "text", "`iss` that tokens must carry."),
    Setting("jwt_audience", "stream-server", "text", "`aud` that tokens must carry."),
    Setting("token_ttl_seconds", 3600, "s", "How long a log-in's token is valid.", 1),
    Setting("refresh_ttl_seconds", 30 * 86400, "s", "How long a refresh token is valid; each is used once.", 1),
    Setting("password_memory_kib", 19 * 1024, "KiB", "argon2id memory (OWASP's parameters by default).", 8),
    Setting("password_rounds", 2, "passes", "argon2id time cost.", 1),
    Setting("message_max_chars", 280, "code points", "Longest message of a status.", 1),
    Setting("detect_language", "on", "name", "Tell the `lang` of posts by their words.", choices=("on", "off")),
    Setting("body_max_bytes", 65536, "bytes", "Largest request body.", 1024),
    Setting("heartbeat_seconds", 15.0, "s", "A heartbeat is sent on every stream this often.", 0.05),
    Setting("canary_seconds", 1.0, "s", "How often the feed's position is compared with the log's head.", 0.05),
    Setting("log_max_entries", 1_000_000, "entries", "The log keeps about this many entries.", 1000),
    Setting("log_max_seconds", 7 * 86400.0, "s", "Entries older than this leave the log, about; 0 is no bound.", 0),
    Setting("log_max_bytes", 2**30, "bytes", "About as much of Redis' memory as the log may take; 0 is no bound.", 0),
    Setting("timeline_max", 1000, "statuses", "Longest home, list, group and tag timeline.", 4, 10_000),
    Setting(
        "fanout_batch_size",
        1000,
        "people",
        "Timelines a post reaches in one pass; the first is in the call.",
        1,
        10_000,
    ),
    Setting(
        "job_workers", 1, "tasks", "Job workers in each server process; 0 leaves jobs to the `worker` command.", 0, 64
    ),
    Setting("repair_seconds", 3600.0, "s", "How often timelines and counters are looked over; 0 is never.", 0),
    Setting("ring_bytes", 64 * 2**20, "bytes", "Recent entries each worker keeps in memory for returning clients.", 0),
    Setting("ring_seconds", 600.0, "s", "Age of the oldest entry kept in memory.", 0),
    Setting("client_buffer_bytes", 262_144, "bytes", "Unsent bytes of a live client, the kernel's counted.", 4096),
    Setting("send_buffer_bytes", 65_536, "bytes", "Kernel send buffer of a stream's socket; 0 leaves the system's.", 0),
    Setting("write_timeout_seconds", 30.0, "s", "A client that takes no byte for so long is cut.", 0.05),
    Setting("behind_max_entries", 100_000, "entries", "A client is far behind when it is so far from the head.", 1),
    Setting("slow_window_seconds", 60.0, "s", "Who is far behind and gains nothing for so long is cut.", 0.05),
    Setting("redis_timeout_seconds", 0.9, "s", "A request that waits for Redis for so long in all is given up.", 0.01),
    Setting("shutdown_seconds", 4.0, "s", "Time for goodbyes at the end.", 0.1),
    Setting("retry_spread_seconds", 5.0, "s", "Clients of a stopping server are told to return within so long.", 0.5),
    Setting("retry_ms", 2000, "ms", "`retry:` told to EventSource clients.", 0),
    Setting("limits", "on", "name", "Whether how often one may ask is limited; off for tests.", choices=("on", "off")),
    Setting("reconnect_limit", 50, "connections", "How often a user may connect to a dialect in 15 minutes.", 0),
    Setting("log_level", "info", "name", "How much is logged.", choices=("debug", "info", "warning", "error")),
)


class InvalidSetting(ValueError):
    """A setting that cannot be; the message names it, never its value if that is secret."""


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one server; the fields are the rows of :data:`SETTINGS`."""

    host: str
    port: int
    workers: int
    redis: str
    redis_read: str
    write_replicas: int
    data_dir: str
    settings_file: str
    jwt_secret: str
    jwt_algorithm: str
    jwt_key_file: str
    jwt_jwks_url: str
    jwt_issuer: str
    jwt_audience: str
    token_ttl_seconds: int
    refresh_ttl_seconds: int
    password_memory_kib: int
    password_rounds: int
    message_max_chars: int
    detect_language: str
    body_max_bytes: int
    heartbeat_seconds: float
    canary_seconds: float
    log_max_entries: int
    log_max_seconds: float
    log_max_bytes: int
    timeline_max: int
    fanout_batch_size: int
    job_workers: int
    repair_seconds: float
    ring_bytes: int
    ring_seconds: float
    client_buffer_bytes: int
    send_buffer_bytes: int
    write_timeout_seconds: float
    behind_max_entries: int
    slow_window_seconds: float
    redis_timeout_seconds: float
    shutdown_seconds: float
    retry_spread_seconds: float
    retry_ms: int
    limits: str
    reconnect_limit: int
    log_level: str

    def __repr__(self) -> str:
        """All settings but the secret one, so that a logged config tells nothing."""
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in SECRET_SETTINGS)
        return f"Config({', '.join(shown)})"

    def apply_reloadable(self, newer: "Config") -> list[tuple[str, object]]:
        """From now on have those settings of ``newer`` that may change; gives those that did, with what they were.

        Whoever reads them here at every use need not be told; for everybody else this object never changes.
        """
        told = [(s.name, getattr(self, s.name)) for s in SETTINGS if s.is_reloadable]
        changed = [(name, old) for name, old in told if old != getattr(newer, name)]
        for name, _ in changed:
            object.__setattr__(self, name, getattr(newer, name))
        return changed

    def settings_needing_restart(self, newer: "Config") -> list[str]:
        """The names of the settings that differ and need a restart."""
        return [s.name for s in SETTINGS if not s.is_reloadable and getattr(self, s.name) != getattr(newer, s.name)]


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """The settings from ``flags`` (None means not given), then the environment, then the file, then the defaults.

    Raises :class:`InvalidSetting` for an unknown name, a wrong type or a value out of range.
    """
    environ = os.environ if environ is None else environ
    _refuse_unknown_variables(environ)
    said = _given_values(flags, environ)
    settled: dict[str, Any] = {s.name: _convert_value(s, said.get(s.name, s.default), s.display_name) for s in SETTINGS}
    if settled["settings_file"] and SUPERVISOR_DEFAULTS not in environ:
        settled |= {name: value for name, value in _file_values(settled["settings_file"]).items() if name not in said}
    _check_redis(settled, said)
    return Config(**settled)


def _check_redis(values: Mapping[str, Any], given: Collection[str]) -> None:
    """The URLs are never repeated: they hold passwords."""
    spoken = {s.name: s.display_name if s.name in given else f"{values['settings_file']}: {s.name}" for s in SETTINGS}
    for name in ("redis", "redis_read"):
        try:
            if values[name]:
                address.validate_redis_url(values[name])
        except address.InvalidRedisUrl as error:
            message = f"{spoken[name]} {error}"
            raise InvalidSetting(message) from None
    for name in ("redis_read", "write_replicas"):
        if values[name] and not values["redis"]:
            message = f"{spoken[name]} needs --redis: what is embedded is alone"
            raise InvalidSetting(message)


def load_again(flags: Mapping[str, Any]) -> Config:
    """What the file and the environment say now; raises as :func:`load` does.

    A worker was given all settings in its environment: those that its supervisor had from the file or the table are
    looked up there.
    """
    left_open = os.environ.get(SUPERVISOR_DEFAULTS, "").split()
    return load(
        flags, {name: value for name, value in os.environ.items() if name not in {SUPERVISOR_DEFAULTS, *left_open}}
    )


def worker_environment(config: Config, flags: Mapping[str, Any]) -> dict[str, str]:
    """This process' environment with the variables from which :func:`load` makes the same settings in a child.

    It reads no file, which may be wrong by then, and :func:`load_again` in it finds the same as here, by the same ``flags``.
    """
    said = _given_values(flags, os.environ)
    left_open = " ".join(s.environment_variable for s in SETTINGS if s.name not in said)
    return {
        **os.environ,
        **{s.environment_variable: str(getattr(config, s.name)) for s in SETTINGS},
        SUPERVISOR_DEFAULTS: left_open,
    }


def package_index() -> str:
    """The URL of the package index that this machine is set to use."""
    return index.configured(os.environ) or index.PUBLIC


def _given_values(flags: Mapping[str, Any] | None, environ: Mapping[str, str]) -> dict[str, Any]:
    """What flags and environment say, by name."""
    told = {s.name: environ[s.environment_variable] for s in SETTINGS if s.environment_variable in environ}
    return told | {name: value for name, value in (flags or {}).items() if value is not None}


def _file_values(path: str) -> dict[str, Any]:
    """What the file says, by name."""
    try:
        found, public = settings_file.read(path)
    except settings_file.UnusableSettingsFile as error:
        raise InvalidSetting(str(error)) from None
    rows = {s.name: s for s in SETTINGS if s.name != "settings_file"}
    for name, value in found.items():
        if name not in rows:
            message = f"{path}: {name!r} is no setting; `stream-server serve --help` lists them"
            raise InvalidSetting(message)
        if public and (name == "jwt_secret" or (name in SECRET_SETTINGS and address.may_contain_password(str(value)))):
            message = f"{path} holds {name}, so nobody else may read it: `chmod 600 {path}`"
            raise InvalidSetting(message)
    return {
        name: _convert_value(rows[name], _check_type(rows[name], value, path), f"{path}: {name}")
        for name, value in found.items()
    }


def _check_type(setting: Setting, value: object, path: str) -> object:
    """TOML has types, so text is no number, `true` is none either, and 1.5 is no whole one."""
    wanted = type(setting.default)
    allowed: tuple[type, ...] = (int, float) if wanted is float else (wanted,)
    if type(value) not in allowed:
        kinds = {int: "a whole number", float: "a number", str: "a text"}
        message = f"{path}: {setting.name} must be {kinds[wanted]} ({setting.unit})"
        raise InvalidSetting(message)
    return value


def _refuse_unknown_variables(environ: Mapping[str, str]) -> None:
    known = (
        {s.environment_variable for s in SETTINGS}
        | {VARIABLE_PREFIX + name for name in TEST_VARIABLES}
        | {SUPERVISOR_DEFAULTS}
    )
    for name in environ:
        if name.startswith(VARIABLE_PREFIX) and name not in known:
            message = f"{name} is no setting; `stream-server serve --help` lists them"
            raise InvalidSetting(message)


def _convert_value(setting: Setting, given: object, display_name: str) -> object:
    try:
        value = type(setting.default)(given)
    except (TypeError, ValueError):
        message = f"{display_name} must be a number ({setting.unit})"
        raise InvalidSetting(message) from None
    except OverflowError:
        value = math.inf
    if isinstance(value, float) and not math.isfinite(value):
        message = f"{display_name} must be a finite number ({setting.unit})"
        raise InvalidSetting(message)
    if setting.minimum is not None and not value >= setting.minimum:
        message = f"{display_name} must be {setting.minimum:g} {setting.unit} or more"
        raise InvalidSetting(message)
    most = MAX_NUMBER if setting.maximum is None and not isinstance(value, str) else setting.maximum
    if most is not None and not value <= most:
        message = f"{display_name} must be {most:g} {setting.unit} or less"
        raise InvalidSetting(message)
    if setting.choices and value not in setting.choices:
        message = f"{display_name} must be one of {', '.join(setting.choices)}"
        raise InvalidSetting(message)
    return value
