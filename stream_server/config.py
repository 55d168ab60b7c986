"""The settings: one table, from which flags, environment variables and docs derive.

A setting ``token_ttl_seconds`` is the flag ``--token-ttl-seconds``, the environment variable
``STREAM_SERVER_TOKEN_TTL_SECONDS`` and a row of the README; the flag wins over the environment.
An unknown ``STREAM_SERVER_…`` variable is refused, so that a misspelt one is not silently nothing.
``os.environ`` is read here and nowhere else.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

PREFIX = "STREAM_SERVER_"

OUTSIDE = frozenset({"TEST_DATA", "TEST_REDIS", "CLIENTS_VENV"})
"""Names behind the prefix that belong to the test suite, not to the server."""


REDIS_SCHEMES = ("redis://", "rediss://", "unix://")


class Setting(NamedTuple):
    """One row of the table; ``default`` also fixes the type, ``unit`` is for people, the bounds are inclusive."""

    name: str
    default: Any
    unit: str
    help: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """The command-line flag of this setting."""
        return "--" + self.name.replace("_", "-")


SETTINGS: tuple[Setting, ...] = (
    Setting("host", "127.0.0.1", "address", "Address to listen on."),
    Setting("port", 8000, "port", "Port to listen on; 0 takes a free one and prints it.", 0, 65_535),
    Setting("workers", 1, "processes", "Worker processes on the one port; about one a core.", 1, 256),
    Setting("redis", "", "URL", "Redis to use (redis://, rediss://, unix://); empty starts an embedded one."),
    Setting("data_dir", "", "folder", "Where the embedded Redis keeps its data; empty is a temporary folder."),
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
    Setting("timeline_max", 1000, "statuses", "Longest home, list, group and tag timeline.", 4, 10_000),
    Setting("pass_size", 1000, "people", "Timelines a post reaches in one pass; the first is in the call.", 1, 10_000),
    Setting("receivers", 1, "receivers", "Receivers of jobs in each worker; 0 leaves jobs to `worker`.", 0, 64),
    Setting("repair_seconds", 3600.0, "s", "How often timelines and counters are looked over; 0 is never.", 0),
    Setting("ring_bytes", 64 * 2**20, "bytes", "Recent entries each worker keeps in memory for returning clients.", 0),
    Setting("ring_seconds", 600.0, "s", "Age of the oldest entry kept in memory.", 0),
    Setting("client_buffer_bytes", 262_144, "bytes", "Unsent bytes of a live client before it must catch up.", 4096),
    Setting("send_buffer_bytes", 65_536, "bytes", "Kernel send buffer of a stream's socket; 0 leaves the system's.", 0),
    Setting("write_timeout_seconds", 30.0, "s", "A client that takes no byte for so long is cut.", 0.05),
    Setting("redis_timeout_seconds", 1.0, "s", "A write that Redis does not answer in this time is given up.", 0.01),
    Setting("shutdown_seconds", 4.0, "s", "Time for goodbyes at the end.", 0.1),
    Setting("retry_ms", 2000, "ms", "`retry:` told to EventSource clients.", 0),
    Setting("limits", "on", "name", "Whether how often one may ask is limited; off for tests.", choices=("on", "off")),
    Setting("connects", 50, "connects", "How often a user may connect to a dialect in 15 minutes.", 0),
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
    data_dir: str
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
    timeline_max: int
    pass_size: int
    receivers: int
    repair_seconds: float
    ring_bytes: int
    ring_seconds: float
    client_buffer_bytes: int
    send_buffer_bytes: int
    write_timeout_seconds: float
    redis_timeout_seconds: float
    shutdown_seconds: float
    retry_ms: int
    limits: str
    connects: int
    log_level: str

    def __repr__(self) -> str:
        """All settings but the secret one, so that a logged config tells nothing."""
        shown = (f"{f.name}={getattr(self, f.name)!r}" for f in fields(self) if f.name not in {"jwt_secret", "redis"})
        return f"Config({', '.join(shown)})"


def load(flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Config:
    """The settings from ``flags`` (None means not given), then the environment, then the defaults.

    Raises :class:`InvalidSetting` for an unknown variable, a wrong type or a value out of range.
    """
    environ = os.environ if environ is None else environ
    _refuse_unknown(environ)
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    settled: dict[str, Any] = {
        s.name: _value(s, given.get(s.name, environ.get(s.variable, s.default))) for s in SETTINGS
    }
    if settled["redis"] and not settled["redis"].startswith(REDIS_SCHEMES):
        message = f"--redis ({PREFIX}REDIS) must begin with one of {', '.join(REDIS_SCHEMES)}"
        raise InvalidSetting(message)
    return Config(**settled)


def environment(config: Config) -> dict[str, str]:
    """This process' environment with the variables from which :func:`load` makes the same settings in a child."""
    return {**os.environ, **{s.variable: str(getattr(config, s.name)) for s in SETTINGS}}


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = {s.variable for s in SETTINGS} | {PREFIX + name for name in OUTSIDE}
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            message = f"{name} is no setting; `stream-server serve --help` lists them"
            raise InvalidSetting(message)


def _value(setting: Setting, given: object) -> object:
    try:
        value = type(setting.default)(given)
    except (TypeError, ValueError):
        message = f"{setting.flag} ({setting.variable}) must be a number ({setting.unit})"
        raise InvalidSetting(message) from None
    if setting.least is not None and not value >= setting.least:
        message = f"{setting.flag} ({setting.variable}) must be {setting.least:g} {setting.unit} or more"
        raise InvalidSetting(message)
    if setting.most is not None and not value <= setting.most:
        message = f"{setting.flag} ({setting.variable}) must be {setting.most:g} {setting.unit} or less"
        raise InvalidSetting(message)
    if setting.choices and value not in setting.choices:
        message = f"{setting.flag} ({setting.variable}) must be one of {', '.join(setting.choices)}"
        raise InvalidSetting(message)
    return value
