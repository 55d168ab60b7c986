"""The table of settings: each field of :class:`Config` is one row with its default, unit, help text and bounds.

The flags, the environment variables, the settings file, the reload and the documentation derive from :data:`SETTINGS`.
The setting ``token_ttl_seconds`` is the flag ``--token-ttl-seconds``, the environment variable
``STREAM_SERVER_TOKEN_TTL_SECONDS`` and the line ``token_ttl_seconds = …`` of the file.

A number becomes a setting only if operators have a reason to change it. Every other number is a constant beside its
code. All rate limits are words of the one setting ``limits``: they stand in one place, and each can be changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache, partial
from typing import Any, NamedTuple

from filters.suggestion import did_you_mean

VARIABLE_PREFIX = "STREAM_SERVER_"

MAX_LIMIT_DIGITS = 15
"""Most digits of the number of a rate limit. Sums with greater numbers would not be exact."""


class InvalidSetting(ValueError):
    """An unknown setting, or a value that a setting cannot have. The message never contains a secret value."""


LIMIT_DEFAULTS = {
    "reads": 3000, "writes": 1200, "write_bytes": 8 * 2**20, "log_bytes": 32 * 2**20, "statuses": 300, "follows": 2000,
    "reports": 200, "talks": 200, "connects": 300, "dialect_connects": 50, "polls": 1200, "tickets": 120,
    "rule_trials": 60, "webhook_tests": 20, "log_ins": 10, "log_ins_of_account": 100, "log_ins_of_address": 200,
    "sign_ups": 60, "lookups": 60, "files": 6000, "anonymous": 1200,
}  # fmt: skip
"""The rate limits and their default numbers. ``web/limits/rate_limits.py`` says what each counts, and for how long."""


@lru_cache
def parse_limits(text: str) -> Mapping[str, int]:
    """Return the number of each rate limit in the setting ``limits``: ``on``, ``off`` or words such as ``reads=60``.

    A limit that the text does not name has its default. 0 stands for no limit. Raises :class:`InvalidSetting`.
    """
    if text == "off":
        return dict.fromkeys(LIMIT_DEFAULTS, 0)
    numbers = dict(LIMIT_DEFAULTS)
    for word in [] if text == "on" else text.replace(",", " ").split():
        name, _, number = word.partition("=")
        if name not in LIMIT_DEFAULTS or not number.isdecimal() or len(number) > MAX_LIMIT_DIGITS:
            example = "on, off or numbers such as `statuses=600 log_ins=20`"
            meant = "" if name in LIMIT_DEFAULTS else did_you_mean(name, LIMIT_DEFAULTS)
            raise InvalidSetting(f"--limits ({VARIABLE_PREFIX}LIMITS) must be {example}, not {word!r}{meant}")
        numbers[name] = int(number)
    return numbers


class Setting(NamedTuple):
    """One setting: a row of the table of settings.

    Attributes:
        default: Value if the setting is not given. Its type (int, float, str) is the type of all values.
        unit: Unit or kind of the value, such as ``s``, ``bytes`` or ``file``.
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
    def has_flag(self) -> bool:
        """Whether the setting has a flag. A key or token has none, because `ps` shows command lines to all users."""
        return not self.is_secret or self.unit == "URL"

    @property
    def display_name(self) -> str:
        """Flag and environment variable for error messages, such as ``--port (STREAM_SERVER_PORT)``."""
        if not self.has_flag:
            return self.environment_variable
        return f"{self.flag} ({self.environment_variable})"


def row(default: float | str, unit: str, help_text: str, *bounds: Any, **options: Any) -> Any:
    """Return a dataclass field of :class:`Config` that declares one setting.

    ``bounds`` is the pair of minimum and maximum. ``options`` are further attributes of :class:`Setting`.
    """
    return field(metadata={"row": Setting("", default, unit, help_text, *bounds, **options)})


reloadable = partial(row, is_reloadable=True)
secret = partial(row, is_secret=True)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one server, one field for each. :func:`~stream_server.config.config.load` creates the object."""

    host: str = row("127.0.0.1", "address", "Address to listen on; a name stands for all of its addresses.")
    port: int = row(8000, "port", "Port to listen on; 0 takes a free one and prints it.", 0, 65_535)
    workers: int = row(1, "processes", "Server processes that share the port; about one for each core.", 1, 256)
    redis: str = secret(
        "", "URL", "Redis URL: redis://, unix://, redis+sentinel://, redis+cluster:// …; empty starts an embedded one."
    )
    redis_read: str = secret(
        "", "URL", "Replicas that send the events and the log, and answer pages; blanks between their URLs."
    )
    write_replicas: int = row(
        0, "replicas", "Replicas that must confirm a write, else the answer is `outcome_unknown`.", 0
    )
    data_dir: str = row("", "folder", "Folder in which the embedded Redis keeps its data; empty is a temporary folder.")
    redis_memory_bytes: int = row(
        0, "bytes",
        "Memory of the embedded Redis; 0 takes half of what the server may use. Writes are refused at 90 %.",
        0,
    )  # fmt: skip
    settings_file: str = row(
        "", "file", "TOML file of these settings, with `_` in names; flags and environment override it."
    )
    jwt_secret: str = secret("", "text", "Key of HS256 tokens, 32 bytes or more; empty makes one in the data folder.")
    jwt_algorithm: str = row("HS256", "name", "The only accepted algorithm of tokens: HS256, RS256, ES256 or EdDSA.")
    jwt_key_file: str = row("", "file", "PEM key for RS256, ES256, EdDSA: private, or public (which only verifies).")
    jwt_jwks_url: str = row("", "URL", "URL of a key set (RFC 7517) that verifies RS256, ES256, EdDSA tokens.")
    jwt_issuer: str = row("stream-server", "text", "`iss` that tokens must carry.")
    jwt_audience: str = row("stream-server", "text", "`aud` that tokens must carry.")
    jwt_previous_secret: str = secret("", "text", "HS256 key before the present one, which still verifies tokens.")
    jwt_previous_until: str = row("", "date", "Until when the previous key verifies tokens, such as 2026-12-31.")
    sign_up: str = row("on", "name", "Let anybody create an account over HTTP.", choices=("on", "off"))
    external_subjects: str = row(
        "off", "name", "Take `sub` as the issuer's own id, and create its user at first sight.", choices=("on", "off")
    )
    ingest_subjects: str = row(
        "on", "name", "A user's foreign id in ingest is the issuer's `sub`; off keeps two name spaces.",
        choices=("on", "off"),
    )  # fmt: skip
    claims: str = row(
        "", "claims",
        "Other claims than preferred_username, name and email of an issuer's user: `login=nickname scopes=roles.all`.",
    )  # fmt: skip
    scope_rules: str = row(
        "read write stream", "rules",
        "Scopes of an issuer's users: of all, and by values of claims: `read; roles=staff:firehose; ops=on:admin`.",
    )  # fmt: skip
    bus_secret: str = secret("", "text", "Key that signs published entries; empty derives it from the key of tokens.")
    token_ttl_seconds: int = row(3600, "s", "Lifetime of the token that a log-in returns.", 1)
    refresh_ttl_seconds: int = row(
        30 * 86400, "s", "Life of a log-in session that is not used; each refresh token works once.", 1
    )
    password_memory_kib: int = row(19 * 1024, "KiB", "Memory of one argon2id hash, whose two passes are constant.", 8)
    message_max_chars: int = row(280, "code points", "Longest message of a status.", 1)
    edit_seconds: float = row(
        3600.0, "s", "Time after a post in which its author may edit it; 0 lets nobody edit. An ingest may always.", 0
    )
    detect_language: str = row("on", "name", "Detect the language of posts that give none.", choices=("on", "off"))
    compress_streams: str = row("on", "name", "Compress streams for clients that accept gzip.", choices=("on", "off"))
    heartbeat_seconds: float = row(15.0, "s", "Interval of the heartbeats on every stream.", 0.05)
    canary_seconds: float = row(1.0, "s", "Interval of the feed's check against the head of the log.", 0.05)
    log_max_seconds: float = row(
        7 * 86400.0, "s", "Age at which entries leave the log, approximately; 0 sets no limit.", 0
    )
    log_max_bytes: int = row(
        2**30, "bytes", "Approximate Redis memory of the log, at most half of all; 0 takes the half.", 0
    )
    subscription_idle_days: float = row(
        30.0,
        "days",
        "Days after which a named subscription is forgotten that nobody put, opened or acked; 0 keeps all.",
        0,
    )
    webhooks_per_user: int = row(
        10, "webhooks", "Subscriptions of one user whose events the server sends to a URL; 0 sends none.", 0, 100
    )
    webhook_networks: str = row(
        "", "addresses", "Inner addresses or networks that webhooks may reach, also by http; others must be public."
    )
    webhook_timeout_seconds: float = row(10.0, "s", "Time in which the endpoint of a webhook must answer.", 1, 60)
    status_max_days: float = row(0.0, "days", "Age at which statuses leave, in days; 0 keeps them for ever.", 0)
    status_archive_dir: str = row(
        "", "folder", "Folder of the archive of statuses that leave because of their age; `none` keeps no archive."
    )
    timeline_max: int = row(1000, "statuses", "Longest home, list, group and tag timeline.", 4, 10_000)
    fanout_batch_size: int = row(
        1000, "people", "Home timelines that receive a post in one pass; the request itself does the first pass.",
        1, 10_000,
    )  # fmt: skip
    home_idle_days: float = row(
        0.0, "days", "Days without a visit after which a home timeline is kept no longer; 0 keeps all.",
        0,
    )  # fmt: skip
    consent: str = row("on", "name", "Ask users before strangers add them to groups or talks.", choices=("on", "off"))
    job_workers: int = row(1, "tasks", "Job workers per server process; 0 leaves jobs to the `worker` command.", 0, 64)
    ring_bytes: int = row(
        64 * 2**20, "bytes", "Recent entries that each process keeps in memory for clients that reconnect.", 0
    )
    client_buffer_bytes: int = row(
        262_144, "bytes", "Unsent bytes of a live client before it must catch up; a quarter of them in the kernel.",
        4096,
    )  # fmt: skip
    write_timeout_seconds: float = row(30.0, "s", "Disconnect a client that takes no byte for this long.", 0.05)
    idle_seconds: float = row(
        920.0, "s", "Close a connection that is without a request for this long; longer than proxies keep theirs.", 1
    )
    redis_timeout_seconds: float = row(0.9, "s", "Total time that one request may wait for Redis.", 0.01)
    shutdown_seconds: float = row(4.0, "s", "Time for goodbyes when the server stops.", 0.1)
    retry_spread_seconds: float = row(
        5.0, "s", "Time over which the clients of a stopping server spread their reconnects.", 0.5
    )
    retry_ms: int = row(2000, "ms", "`retry:` value sent to EventSource clients.", 0)
    limits: str = reloadable(
        "on", "limits", "Limit what a user or address may ask: on, off, or other numbers: `statuses=600 log_ins=20`."
    )
    streams_per_user: int = reloadable(
        32, "streams", "Open streams of one user; a further one closes the oldest. 0 sets no limit.", 0
    )
    streams_per_address: int = reloadable(
        1000,
        "streams",
        "Open streams from one address in one process, which holds twice as many connections; 0 sets no limit.",
        0,
    )
    connections_max: int = reloadable(
        0, "connections", "Connections of one process; 0 takes what the limit of open files allows.", 0
    )
    trusted_proxies: str = row(
        "", "addresses", "Addresses or networks of proxies whose header `--forwarded-header` is believed."
    )
    forwarded_header: str = row(
        "X-Forwarded-For", "header", "The one header in which trusted proxies name the client; others are not read."
    )
    public_url: str = row(
        "", "URL", "Address of the server for its clients, such as `https://a.example/stream`, if a proxy gives one."
    )
    operations: str = reloadable(
        "auto", "name", "Who reads metrics: open, token, or auto: open only if --host is this machine.",
        choices=("auto", "open", "token"),
    )  # fmt: skip
    operations_token: str = secret("", "text", "Token that reads metrics and details of the readiness.")
    otlp_endpoint: str = row("", "URL", "Collector of OpenTelemetry that gets traces of writes; empty sends none.")
    trace_ratio: float = row(
        0.01, "share", "Share of the writes that is traced, unless their `traceparent` decides.", 0, 1
    )
    cors_origins: str = reloadable(
        "", "origins", "Origins such as `https://a.example`, with commas, whose pages may send requests; * for all."
    )
    v1_url_credentials: str = reloadable(
        "off", "name", "Accept `oauth_token` in URLs of v1.1, where proxies log it.", choices=("on", "off")
    )
    log_level: str = reloadable(
        "info", "name", "Least severe log lines that are written.", choices=("debug", "info", "warning", "error")
    )

    def __repr__(self) -> str:
        """Show all settings except the secret ones, so a log line with this object holds no secret."""
        shown = (f"{s.name}={getattr(self, s.name)!r}" for s in SETTINGS if not s.is_secret)
        return f"Config({', '.join(shown)})"

    def apply_reloadable(self, newer: "Config") -> list[tuple[str, object]]:
        """Copy the reloadable settings of ``newer`` into this object; return name and old value of each changed one.

        Only this method changes the object. Code that reads a setting from the object at each use sees a new value.
        """
        changed = [(s.name, getattr(self, s.name)) for s in self._differences(newer) if s.is_reloadable]
        for name, _ in changed:
            object.__setattr__(self, name, getattr(newer, name))
        return changed

    def settings_needing_restart(self, newer: "Config") -> list[str]:
        """Return the names of the settings whose values differ in ``newer`` and which a reload does not change."""
        return [s.name for s in self._differences(newer) if not s.is_reloadable]

    def _differences(self, newer: "Config") -> list[Setting]:
        return [s for s in SETTINGS if getattr(self, s.name) != getattr(newer, s.name)]


SETTINGS: tuple[Setting, ...] = tuple(column.metadata["row"]._replace(name=column.name) for column in fields(Config))
"""The rows of the table, in the order of the fields of :class:`Config`."""
