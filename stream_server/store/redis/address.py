"""Where Redis is, as one writes it down: the URL, taken apart.

``redis://``, ``rediss://`` (TLS) and ``unix://`` are redis-py's own, with credentials and the number of the database in
them. ``redis+sentinel://[user:password@]host:port[,host:port…]/service[/db]`` names Sentinels and what they watch: the
credentials are those of the Redis servers; the Sentinels' own, where they have some, are ``sentinel_username`` and
``sentinel_password`` behind a question mark. ``rediss+sentinel://`` speaks TLS to both, and what redis-py knows of
:data:`TLS_OPTIONS` may stand there as well.

No sentence in here repeats any part of a URL, which may hold a password.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

PLAIN_SCHEMES = ("redis", "rediss", "unix")
SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")

SENTINEL_PORT = 26379

SCHEMES = ", ".join(f"{scheme}://" for scheme in (*PLAIN_SCHEMES, *SENTINEL_SCHEMES))


PLAIN_OPTIONS = frozenset({"db", "username", "password"})
SENTINEL_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
TLS_OPTIONS = frozenset({
    "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_ciphers", "ssl_cert_reqs",
    "ssl_check_hostname",
})  # fmt: skip
"""What may stand behind the question mark."""

CERT_REQS_VALUES = ("none", "optional", "required")
TRUE_VALUES = ("yes", "true")
BOOLEAN_VALUES = (*TRUE_VALUES, "no", "false")


class InvalidRedisUrl(ValueError):
    """It names no Redis; the message says what is wrong, as the end of a sentence about the setting."""


@dataclass(frozen=True, slots=True)
class SentinelService:
    """A service that Sentinels watch; ``sentinels`` are (host, port). What is secret is not in its repr."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    db: int
    use_tls: bool
    credentials: Mapping[str, str] = field(repr=False)
    sentinel_credentials: Mapping[str, str] = field(repr=False)
    tls_options: Mapping[str, str | bool] = field(repr=False)


def validate_redis_url(url: str) -> None:
    """Raises :class:`InvalidRedisUrl` for what cannot be used."""
    parts = _split_url(url)
    if parts.scheme in SENTINEL_SCHEMES:
        parse_sentinel_url(url)
    elif parts.scheme == "unix":
        if not parts.path.strip("/"):
            raise InvalidRedisUrl("must name a socket: unix:///run/redis.sock")
        _parse_options(parts.query, PLAIN_OPTIONS)
    elif parts.scheme in PLAIN_SCHEMES:
        _parse_host(parts.netloc.rpartition("@")[2] or "localhost", 6379)
        _parse_database(parts.path.strip("/"))
        _parse_options(parts.query, PLAIN_OPTIONS | (TLS_OPTIONS if parts.scheme == "rediss" else frozenset()))
    else:
        message = f"must begin with one of {SCHEMES}"
        raise InvalidRedisUrl(message)


def may_contain_password(url: str) -> bool:
    """Whether there may be a password in it: before the host, or behind the question mark."""
    return "@" in url or "password=" in unquote(url).lower()


def parse_sentinel_url(url: str) -> SentinelService | None:
    """The service that a URL with Sentinels names, None for any other URL; raises :class:`InvalidRedisUrl`."""
    parts = _split_url(url)
    if parts.scheme not in SENTINEL_SCHEMES:
        return None
    given, _, hosts = parts.netloc.rpartition("@")
    service, _, database = unquote(parts.path).strip("/").partition("/")
    if not service or not hosts:
        raise InvalidRedisUrl("must name Sentinels and a service: redis+sentinel://host:26379,host:26379/service")
    secure = parts.scheme.startswith("rediss")
    more = _parse_options(parts.query, SENTINEL_OPTIONS | (TLS_OPTIONS if secure else frozenset()))
    tls: dict[str, str | bool] = {name: value for name, value in more.items() if name in TLS_OPTIONS}
    if "ssl_check_hostname" in tls:
        tls["ssl_check_hostname"] = (
            tls["ssl_check_hostname"] in TRUE_VALUES
        )  # redis-py reads it as text in plain URLs only
    theirs = {name.removeprefix("sentinel_"): value for name, value in more.items() if name in SENTINEL_OPTIONS}
    return SentinelService(
        sentinels=tuple(_parse_host(each, SENTINEL_PORT) for each in hosts.split(",")),
        service=service,
        db=_parse_database(database),
        use_tls=secure,
        credentials=_parse_credentials(given),
        sentinel_credentials=theirs,
        tls_options=tls,
    )


def _parse_options(query: str, allowed: frozenset[str]) -> dict[str, str]:
    """What stands behind the question mark; redis-py would take any of its arguments there, in the place of ours."""
    more = dict(parse_qsl(query, keep_blank_values=True))
    if not more.keys() <= allowed:
        raise InvalidRedisUrl(f"may have {', '.join(sorted(allowed))} behind the question mark, and nothing else")
    _parse_database(more.get("db", ""))
    if (
        more.get("ssl_cert_reqs", "none") not in CERT_REQS_VALUES
        or more.get("ssl_check_hostname", "yes") not in BOOLEAN_VALUES
    ):
        raise InvalidRedisUrl(
            f"takes as ssl_cert_reqs {', '.join(CERT_REQS_VALUES)}, as ssl_check_hostname {', '.join(BOOLEAN_VALUES)}"
        )
    return more


def _split_url(url: str) -> SplitResult:
    """Some versions of Python take no second host behind brackets, so they are shown none where several may stand."""
    scheme, colon, rest = url.partition("://")
    several = scheme.lower() in SENTINEL_SCHEMES
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest)) if several else 0
    try:
        parts = urlsplit(f"{scheme}{colon}{rest[end:]}")
    except ValueError:
        raise InvalidRedisUrl("is no URL") from None
    return parts._replace(netloc=rest[:end]) if several else parts


def _parse_credentials(user_info: str) -> dict[str, str]:
    username, _, password = user_info.partition(":")
    both = {"username": unquote(username), "password": unquote(password)}
    return {name: value for name, value in both.items() if value}


def _parse_host(text: str, default_port: int) -> tuple[str, int]:
    """``host``, ``host:port``, ``[::1]:port``; an unescaped slash in a password ends up here, too."""
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, number = text, str(default_port)
    host = unquote(host).removeprefix("[").removesuffix("]")
    if not host or not number.isdecimal() or not 0 < int(number) < 65_536:
        raise InvalidRedisUrl("must name hosts as host:port (percent-encode what is special in a password)")
    return host, int(number)


def _parse_database(text: str) -> int:
    if text and not text.isdecimal():
        raise InvalidRedisUrl("must end with the number of a database, or without one")
    return int(text or 0)
