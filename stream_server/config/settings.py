"""The table of settings: each field of :class:`Config` is one row with its default, unit, help text and bounds.

The rows are written once. The flags, the environment variables, the settings file, the reload and the tables of the
documentation all derive from :data:`SETTINGS`. The setting ``token_ttl_seconds`` is the flag ``--token-ttl-seconds``,
the environment variable ``STREAM_SERVER_TOKEN_TTL_SECONDS`` and the line ``token_ttl_seconds = …`` of the file.
"""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

VARIABLE_PREFIX = "STREAM_SERVER_"


class InvalidSetting(ValueError):
    """An unknown setting or a value that it cannot have. The message names the setting, but never a secret value."""


class Setting(NamedTuple):
    """One row of the table of settings.

    Attributes:
        name: Name of the field of :class:`Config`.
        default: Value of a setting that nobody sets. It also fixes the type: int, float or str.
        unit: Unit of the value, shown to people.
        help: One sentence for ``--help`` and the documentation.
        minimum: Least allowed number, inclusive; None sets no limit.
        maximum: Greatest allowed number, inclusive; None means :data:`~stream_server.config.config.MAX_NUMBER`.
        choices: The allowed texts; empty allows any.
        is_reloadable: Whether a running server takes a new value when it reloads its settings.
        is_secret: Whether the value is a secret or may hold one, such as a password in a URL.
    """

    name: str
    default: Any
    unit: str
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    is_reloadable: bool = False
    is_secret: bool = False

    @property
    def environment_variable(self) -> str:
        """Name of the environment variable, such as ``STREAM_SERVER_PORT``."""
        return VARIABLE_PREFIX + self.name.upper()

    @property
    def flag(self) -> str:
        """Name of the command-line flag, such as ``--port``."""
        return "--" + self.name.replace("_", "-")

    @property
    def display_name(self) -> str:
        """The flag and the variable of this setting, for error messages."""
        return f"{self.flag} ({self.environment_variable})"


def setting(
    default: float | str,
    unit: str,
    help_text: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    choices: tuple[str, ...] = (),
    reloadable: bool = False,
    secret: bool = False,
) -> Any:
    """Declare a field of :class:`Config` as a row of the table; the parameters are those of :class:`Setting`."""
    row = Setting("", default, unit, help_text, minimum, maximum, choices, reloadable, secret)
    return field(metadata={"row": row})


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one server, and the table of all settings. :func:`~stream_server.config.config.load` makes it."""

    host: str = setting("127.0.0.1", "address", "Address to listen on.")
    port: int = setting(8000, "port", "Port to listen on; 0 takes a free one and prints it.", minimum=0, maximum=65_535)
    workers: int = setting(
        1, "processes", "Server processes that share the port; about one for each core.", minimum=1, maximum=256
    )
    redis: str = setting(
        "", "URL", "Redis to use: redis://, unix://, redis+sentinel:// …; empty starts an embedded one.", secret=True
    )
    redis_read: str = setting(
        "", "URL", "Replica that sends the events and from which the log is read; empty uses the primary.", secret=True
    )
    write_replicas: int = setting(
        0, "replicas", "Replicas that must acknowledge a write; otherwise the answer is `outcome_unknown`.", minimum=0
    )
    data_dir: str = setting(
        "", "folder", "Folder in which the embedded Redis keeps its data; empty is a temporary folder."
    )
    settings_file: str = setting(
        "", "file", "TOML file with settings by these names, with `_`; flags and environment win."
    )
    jwt_secret: str = setting(
        "", "text", "Key of HS256 tokens, 32 bytes or more; empty makes one in the data folder.", secret=True
    )
    jwt_algorithm: str = setting(
        "HS256", "name", "The only accepted algorithm of tokens: HS256, RS256, ES256 or EdDSA."
    )
    jwt_key_file: str = setting(
        "", "file", "PEM key of RS256, ES256, EdDSA: private (signs and verifies) or public (verifies only)."
    )
    jwt_jwks_url: str = setting("", "URL", "URL of a key set (RFC 7517) that verifies RS256, ES256, EdDSA tokens.")
    jwt_issuer: str = setting("stream-server", "text", "`iss` that tokens must carry.")
    jwt_audience: str = setting("stream-server", "text", "`aud` that tokens must carry.")
    token_ttl_seconds: int = setting(3600, "s", "Lifetime of the token that a log-in returns.", minimum=1)
    refresh_ttl_seconds: int = setting(
        30 * 86400, "s", "Lifetime of a refresh token; each can be used once.", minimum=1
    )
    password_memory_kib: int = setting(
        19 * 1024, "KiB", "Memory of one argon2id hash (OWASP's parameters by default).", minimum=8
    )
    password_rounds: int = setting(2, "passes", "Time cost of one argon2id hash.", minimum=1)
    message_max_chars: int = setting(280, "code points", "Longest message of a status.", minimum=1)
    detect_language: str = setting(
        "on", "name", "Detect the language of posts whose author gives none.", choices=("on", "off")
    )
    body_max_bytes: int = setting(65536, "bytes", "Largest request body.", minimum=1024)
    heartbeat_seconds: float = setting(
        15.0, "s", "Interval of the heartbeats on every stream.", minimum=0.05, reloadable=True
    )
    canary_seconds: float = setting(
        1.0, "s", "Interval at which the feed compares its position with the log's head.", minimum=0.05, reloadable=True
    )
    log_max_entries: int = setting(
        1_000_000, "entries", "Number of entries that the log keeps, approximately.", minimum=1000
    )
    log_max_seconds: float = setting(
        7 * 86400.0,
        "s",
        "Age at which entries leave the log, approximately; 0 sets no limit.",
        minimum=0,
        reloadable=True,
    )
    log_max_bytes: int = setting(
        2**30, "bytes", "Redis memory that the log may use, approximately; 0 sets no limit.", minimum=0, reloadable=True
    )
    timeline_max: int = setting(
        1000, "statuses", "Longest home, list, group and tag timeline.", minimum=4, maximum=10_000
    )
    fanout_batch_size: int = setting(
        1000,
        "people",
        "Home timelines that receive a post in one batch; the request itself does the first batch.",
        minimum=1,
        maximum=10_000,
    )
    job_workers: int = setting(
        1, "tasks", "Job workers in each server process; 0 leaves jobs to the `worker` command.", minimum=0, maximum=64
    )
    repair_seconds: float = setting(
        3600.0, "s", "Interval of the automatic repair of timelines and counters; 0 disables it.", minimum=0
    )
    ring_bytes: int = setting(
        64 * 2**20,
        "bytes",
        "Recent entries that each process keeps in memory for clients that reconnect.",
        minimum=0,
        reloadable=True,
    )
    ring_seconds: float = setting(600.0, "s", "Age of the oldest entry kept in memory.", minimum=0, reloadable=True)
    client_buffer_bytes: int = setting(
        262_144,
        "bytes",
        "Unsent bytes of a live client before it must catch up, kernel buffer included.",
        minimum=4096,
        reloadable=True,
    )
    send_buffer_bytes: int = setting(
        65_536, "bytes", "Kernel send buffer of a stream's socket; 0 keeps the system's default.", minimum=0
    )
    write_timeout_seconds: float = setting(
        30.0, "s", "Disconnect a client whose socket takes no byte for this long.", minimum=0.05, reloadable=True
    )
    behind_max_entries: int = setting(
        100_000, "entries", "Distance from the head at which a client counts as far behind.", minimum=1, reloadable=True
    )
    slow_window_seconds: float = setting(
        60.0,
        "s",
        "Disconnect a client that is far behind and does not catch up within this time.",
        minimum=0.05,
        reloadable=True,
    )
    redis_timeout_seconds: float = setting(0.9, "s", "Total time that one request may wait for Redis.", minimum=0.01)
    shutdown_seconds: float = setting(4.0, "s", "Time for goodbyes when the server stops.", minimum=0.1)
    retry_spread_seconds: float = setting(
        5.0,
        "s",
        "Time over which the clients of a stopping server spread their reconnects.",
        minimum=0.5,
        reloadable=True,
    )
    retry_ms: int = setting(2000, "ms", "`retry:` value sent to EventSource clients.", minimum=0, reloadable=True)
    limits: str = setting(
        "on", "name", "Limit the rate of requests; off for tests.", choices=("on", "off"), reloadable=True
    )
    reconnect_limit: int = setting(
        50, "connections", "Connections of one user to a dialect within 15 minutes.", minimum=0, reloadable=True
    )
    log_level: str = setting(
        "info",
        "name",
        "Least severe log lines that are written.",
        choices=("debug", "info", "warning", "error"),
        reloadable=True,
    )

    def __repr__(self) -> str:
        """Show all settings except the secret ones, so a log line with this object holds no secret."""
        shown = (f"{row.name}={getattr(self, row.name)!r}" for row in SETTINGS if not row.is_secret)
        return f"Config({', '.join(shown)})"

    def apply_reloadable(self, newer: "Config") -> list[tuple[str, object]]:
        """Take the reloadable settings from ``newer``; return the changed ones, each with its old value.

        Code that reads this object at every use sees the new values at once. Otherwise this object never changes.
        """
        old_values = [(row.name, getattr(self, row.name)) for row in SETTINGS if row.is_reloadable]
        changed = [(name, old) for name, old in old_values if old != getattr(newer, name)]
        for name, _ in changed:
            object.__setattr__(self, name, getattr(newer, name))
        return changed

    def settings_needing_restart(self, newer: "Config") -> list[str]:
        """Return the names of the settings that differ in ``newer`` and take effect only after a restart."""
        return [
            row.name
            for row in SETTINGS
            if not row.is_reloadable and getattr(self, row.name) != getattr(newer, row.name)
        ]


SETTINGS: tuple[Setting, ...] = tuple(column.metadata["row"]._replace(name=column.name) for column in fields(Config))
"""The rows of the table, in the order of the fields of :class:`Config`."""
