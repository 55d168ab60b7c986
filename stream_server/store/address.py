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

PLAIN = ("redis", "rediss", "unix")
WATCHED = ("redis+sentinel", "rediss+sentinel")

SENTINEL_PORT = 26379

SCHEMES = ", ".join(f"{scheme}://" for scheme in (*PLAIN, *WATCHED))


PLAIN_OPTIONS = frozenset({"db", "username", "password"})
THEIR_OPTIONS = frozenset({"sentinel_username", "sentinel_password"})
TLS_OPTIONS = frozenset({
    "ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile", "ssl_password", "ssl_ciphers", "ssl_cert_reqs",
    "ssl_check_hostname",
})  # fmt: skip
"""What may stand behind the question mark."""

VERIFIED = ("none", "optional", "required")
AFFIRMED = ("yes", "true")
SAID = (*AFFIRMED, "no", "false")


class NoAddress(ValueError):
    """It names no Redis; the message says what is wrong, as the end of a sentence about the setting."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A service that Sentinels watch; ``sentinels`` are (host, port). What is secret is not in its repr."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    db: int
    secure: bool
    credentials: Mapping[str, str] = field(repr=False)
    sentinel_credentials: Mapping[str, str] = field(repr=False)
    tls: Mapping[str, str | bool] = field(repr=False)


def check(url: str) -> None:
    """Raises :class:`NoAddress` for what cannot be used."""
    parts = _split(url)
    if parts.scheme in WATCHED:
        watched(url)
    elif parts.scheme == "unix":
        if not parts.path.strip("/"):
            raise NoAddress("must name a socket: unix:///run/redis.sock")
        _options(parts.query, PLAIN_OPTIONS)
    elif parts.scheme in PLAIN:
        _host(parts.netloc.rpartition("@")[2] or "localhost", 6379)
        _database(parts.path.strip("/"))
        _options(parts.query, PLAIN_OPTIONS | (TLS_OPTIONS if parts.scheme == "rediss" else frozenset()))
    else:
        message = f"must begin with one of {SCHEMES}"
        raise NoAddress(message)


def may_hold_secrets(url: str) -> bool:
    """Whether there may be a password in it: before the host, or behind the question mark."""
    return "@" in url or "password=" in unquote(url).lower()


def watched(url: str) -> Watched | None:
    """The service that a URL with Sentinels names, None for any other URL; raises :class:`NoAddress`."""
    parts = _split(url)
    if parts.scheme not in WATCHED:
        return None
    given, _, hosts = parts.netloc.rpartition("@")
    service, _, database = unquote(parts.path).strip("/").partition("/")
    if not service or not hosts:
        raise NoAddress("must name Sentinels and a service: redis+sentinel://host:26379,host:26379/service")
    secure = parts.scheme.startswith("rediss")
    more = _options(parts.query, THEIR_OPTIONS | (TLS_OPTIONS if secure else frozenset()))
    tls: dict[str, str | bool] = {name: value for name, value in more.items() if name in TLS_OPTIONS}
    if "ssl_check_hostname" in tls:
        tls["ssl_check_hostname"] = (
            tls["ssl_check_hostname"] in AFFIRMED
        )  # redis-py reads it as text in plain URLs only
    theirs = {name.removeprefix("sentinel_"): value for name, value in more.items() if name in THEIR_OPTIONS}
    return Watched(
        sentinels=tuple(_host(each, SENTINEL_PORT) for each in hosts.split(",")),
        service=service,
        db=_database(database),
        secure=secure,
        credentials=_credentials(given),
        sentinel_credentials=theirs,
        tls=tls,
    )


def _options(query: str, allowed: frozenset[str]) -> dict[str, str]:
    """What stands behind the question mark; redis-py would take any of its arguments there, in the place of ours."""
    more = dict(parse_qsl(query, keep_blank_values=True))
    if not more.keys() <= allowed:
        raise NoAddress(f"may have {', '.join(sorted(allowed))} behind the question mark, and nothing else")
    _database(more.get("db", ""))
    if more.get("ssl_cert_reqs", "none") not in VERIFIED or more.get("ssl_check_hostname", "yes") not in SAID:
        raise NoAddress(f"takes as ssl_cert_reqs {', '.join(VERIFIED)}, as ssl_check_hostname {', '.join(SAID)}")
    return more


def _split(url: str) -> SplitResult:
    """Some versions of Python take no second host behind brackets, so they are shown none where several may stand."""
    scheme, colon, rest = url.partition("://")
    several = scheme.lower() in WATCHED
    end = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest)) if several else 0
    try:
        parts = urlsplit(f"{scheme}{colon}{rest[end:]}")
    except ValueError:
        raise NoAddress("is no URL") from None
    return parts._replace(netloc=rest[:end]) if several else parts


def _credentials(given: str) -> dict[str, str]:
    username, _, password = given.partition(":")
    both = {"username": unquote(username), "password": unquote(password)}
    return {name: value for name, value in both.items() if value}


def _host(text: str, port: int) -> tuple[str, int]:
    """``host``, ``host:port``, ``[::1]:port``; an unescaped slash in a password ends up here, too."""
    host, colon, number = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, number = text, str(port)
    host = unquote(host).removeprefix("[").removesuffix("]")
    if not host or not number.isdecimal() or not 0 < int(number) < 65_536:
        raise NoAddress("must name hosts as host:port (percent-encode what is special in a password)")
    return host, int(number)


def _database(text: str) -> int:
    if text and not text.isdecimal():
        raise NoAddress("must end with the number of a database, or without one")
    return int(text or 0)
