"""The address of Redis: parse and validate its URL.

redis-py itself understands ``redis://``, ``rediss://`` (TLS) and ``unix://`` with credentials and a database number.
``redis+sentinel://[user:password@]host:port[,host:port…]/service[/db]`` names Sentinels and their service. These
credentials are for the Redis servers. Credentials for the Sentinels are the query parameters ``sentinel_username`` and
``sentinel_password``. ``rediss+sentinel://`` uses TLS for both, and allows :data:`TLS_OPTIONS` as query parameters.
``redis+cluster://[user:password@]host:port[,host:port…]`` names some nodes of a Redis Cluster, which name the others.
``rediss+cluster://`` uses TLS with the same query parameters. A cluster has no database but 0.

No error message contains any part of a URL, because the URL may contain a password.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

PLAIN_SCHEMES = ("redis", "rediss", "unix")
SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")
CLUSTER_SCHEMES = ("redis+cluster", "rediss+cluster")
REDIS_PORT = 6379
PLAIN_OPTIONS = frozenset({"db", "username", "password"})
SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
TLS_OPTIONS = frozenset({
    "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_ciphers", "ssl_cert_reqs",
    "ssl_check_hostname",
})  # fmt: skip
CERT_REQS_VALUES = ("none", "optional", "required")
TRUE_VALUES = ("yes", "true")
BOOLEAN_VALUES = (*TRUE_VALUES, "no", "false")


class InvalidRedisUrl(ValueError):
    """Raised when a Redis URL is invalid. The message (``must name a socket``) needs the setting's name before it."""


@dataclass(frozen=True, slots=True)
class RedisGroup:
    """The parts of a URL that names Sentinels, or nodes of a Redis Cluster. It has no secrets in its repr.

    Attributes:
        hosts: The addresses of the Sentinels or nodes.
        is_cluster: Whether they are nodes of a cluster.
        credentials: User name and password for the Redis servers.
        service: Name of the Redis service that the Sentinels watch. Empty for a cluster.
        db: Number of the database.
        sentinel_credentials: User name and password for the Sentinels.
    """

    hosts: tuple[tuple[str, int], ...]
    is_cluster: bool
    use_tls: bool
    credentials: Mapping[str, str] = field(repr=False)
    tls_options: Mapping[str, str | bool] = field(repr=False)
    service: str = ""
    db: int = 0
    sentinel_credentials: Mapping[str, str] = field(default_factory=dict, repr=False)


def validate_redis_url(url: str) -> None:
    """Check the syntax of a Redis URL, without connecting. Raises :class:`InvalidRedisUrl` if the URL is invalid."""
    parts = _split_url(url)
    if parse_group_url(url) is not None:
        return
    if parts.scheme == "unix":
        if not parts.path.strip("/"):
            raise InvalidRedisUrl("must name a socket: unix:///run/redis.sock")
        _parse_options(parts.query, PLAIN_OPTIONS)
    elif parts.scheme in PLAIN_SCHEMES:
        _parse_host(parts.netloc.rpartition("@")[2] or "localhost", REDIS_PORT)
        _parse_database(parts.path.strip("/"))
        _parse_options(parts.query, PLAIN_OPTIONS | (TLS_OPTIONS if parts.scheme == "rediss" else frozenset()))
    else:
        schemes = ", ".join(f"{scheme}://" for scheme in (*PLAIN_SCHEMES, *SENTINEL_SCHEMES, *CLUSTER_SCHEMES))
        message = f"must begin with one of {schemes}"
        raise InvalidRedisUrl(message)


def may_contain_password(url: str) -> bool:
    """Return whether a Redis URL may contain a password, before the host or in the query."""
    return "@" in url or "password=" in unquote(url).lower()


def has_password(url: str) -> bool:
    """Return whether a Redis URL contains a password, before the host or in the query. False for an invalid URL."""
    try:
        parts = _split_url(url)
    except InvalidRedisUrl:
        return False
    return ":" in parts.netloc.rpartition("@")[0] or "password=" in unquote(url).lower()


def database_of(url: str) -> int:
    """Return the number of the database that a valid Redis URL names, 0 if it names none."""
    group = parse_group_url(url)
    if group is not None:
        return group.db
    parts = _split_url(url)
    named = dict(parse_qsl(parts.query)).get("db")  # redis-py prefers it to the path
    return _parse_database(named or ("" if parts.scheme == "unix" else parts.path.strip("/")))


def parse_group_url(url: str) -> RedisGroup | None:
    """Parse a URL that names Sentinels or nodes of a cluster, or return None for another scheme.

    Raises :class:`InvalidRedisUrl`.
    """
    parts = _split_url(url)
    is_cluster = parts.scheme in CLUSTER_SCHEMES
    if not is_cluster and parts.scheme not in SENTINEL_SCHEMES:
        return None
    user_info, _, hosts = parts.netloc.rpartition("@")
    path = unquote(parts.path).strip("/")
    service, _, database = ("", "", path) if is_cluster else path.partition("/")
    if is_cluster and not hosts:
        raise InvalidRedisUrl("must name nodes of a cluster: redis+cluster://host:6379,host:6379")
    if not is_cluster and not (service and hosts):
        raise InvalidRedisUrl("must name Sentinels and a service: redis+sentinel://host:26379,host:26379/service")
    use_tls = parts.scheme.startswith("rediss")
    allowed = (TLS_OPTIONS if use_tls else frozenset()) | (frozenset() if is_cluster else SENTINEL_OPTIONS)
    db, options = _parse_database(database), _parse_options(parts.query, allowed)
    if is_cluster and db:
        raise InvalidRedisUrl("must name no database but 0, because a cluster has no other")
    port = REDIS_PORT if is_cluster else 26379
    username, _, password = user_info.partition(":")
    given = {"username": username, "password": password}
    sentinel_options = SENTINEL_OPTIONS & options.keys()
    return RedisGroup(
        hosts=tuple(_parse_host(host, port) for host in hosts.split(",")),
        is_cluster=is_cluster,
        use_tls=use_tls,
        credentials={name: unquote(value) for name, value in given.items() if value},
        tls_options=_select_tls_options(options),
        service=service,
        db=db,
        sentinel_credentials={name.removeprefix("sentinel_"): options[name] for name in sentinel_options},
    )


def _select_tls_options(options: Mapping[str, str]) -> dict[str, str | bool]:
    selected: dict[str, str | bool] = {name: value for name, value in options.items() if name in TLS_OPTIONS}
    if "ssl_check_hostname" in selected:
        # redis-py parses this text in plain URLs only.
        selected["ssl_check_hostname"] = selected["ssl_check_hostname"] in TRUE_VALUES
    return selected


def _parse_options(query: str, allowed: frozenset[str]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if not options.keys() <= allowed:
        names = ", ".join(sorted(allowed))
        raise InvalidRedisUrl(f"allows only the query parameters {names}" if names else "allows no query parameters")
    _parse_database(options.get("db", ""))
    cert_reqs, check_hostname = options.get("ssl_cert_reqs", "none"), options.get("ssl_check_hostname", "yes")
    if cert_reqs not in CERT_REQS_VALUES or check_hostname not in BOOLEAN_VALUES:
        raise InvalidRedisUrl(
            f"allows {', '.join(CERT_REQS_VALUES)} as ssl_cert_reqs "
            f"and {', '.join(BOOLEAN_VALUES)} as ssl_check_hostname"
        )
    return options


def _split_url(url: str) -> SplitResult:
    scheme, colon, rest = url.partition("://")
    has_hosts = scheme.lower() in (*SENTINEL_SCHEMES, *CLUSTER_SCHEMES)
    hosts_end = min((index for index in map(rest.find, "/?#") if index >= 0), default=len(rest)) if has_hosts else 0
    try:
        parts = urlsplit(f"{scheme}{colon}{rest[hosts_end:]}")
    except ValueError:
        raise InvalidRedisUrl("is not a valid URL") from None
    return parts._replace(netloc=rest[:hosts_end]) if has_hosts else parts


def _parse_host(text: str, default_port: int) -> tuple[str, int]:
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, number = text, str(default_port)
    host = unquote(host).removeprefix("[").removesuffix("]")
    if not host or not number.isdecimal() or not 0 < int(number) < 65_536:
        raise InvalidRedisUrl("must name hosts as host:port (percent-encode special characters in a password)")
    return host, int(number)


def _parse_database(text: str) -> int:
    if text and not text.isdecimal():
        raise InvalidRedisUrl("must end with a database number or nothing")
    return int(text or 0)
