"""Users of another identity provider: what a token of its issuer says about a user, and which scopes it gives.

The issuer names a user by its own id (``sub``, such as ``auth0|abc``). Claims name the login, name and e-mail address
with which the user is created here at first sight. Scopes come from a claim, from rules, or are the same for all.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import msgspec

from stream_server.config.settings import Config, InvalidSetting

SCOPES = ("read", "write", "stream", "firehose", "ingest", "admin")
"""All scopes of this server."""

MAX_SUBJECT_CHARS = 255
"""Longest id of a user at the issuer, in characters (OpenID Connect Core §2)."""

MAX_LOGIN_CHARS = 20
MAX_NAME_CHARS = 50

DEFAULT_CLAIMS = {"login": "preferred_username", "name": "name", "email": "email", "scopes": ""}
"""The claims that the setting ``claims`` does not name. No claim has scopes by default."""

_RULE = re.compile(r"\s*(?:([^=\s]+)\s*=\s*([^:]+?)\s*:)?\s*([a-z ,]+?)\s*")


class Profile(NamedTuple):
    """The claims of a token about its user. ``email`` is empty unless the issuer has verified it.

    ``logins`` are the wanted logins, the best first.
    """

    logins: tuple[str, ...]
    name: str
    email: str


class ScopeRule(NamedTuple):
    """A rule of the settings: a user has ``scopes`` if the token's claim ``claim`` is ``value``, or a list with it.

    Values are compared as a whole. Only a claim that consists of scopes is split into words.
    """

    claim: str
    value: str
    scopes: frozenset[str]


class ExternalIdentity:
    """Reads the claims of another issuer's tokens as the settings say."""

    def __init__(self, claims: Mapping[str, str], rules: tuple[ScopeRule, ...], default_scopes: frozenset[str]) -> None:
        """Each token gets ``default_scopes``.

        ``claims`` gives, for each member of `DEFAULT_CLAIMS`, the name or path of the claim of the token to read it
        from.
        """
        self._claims = claims
        self._rules = rules
        self._default_scopes = default_scopes

    @classmethod
    def from_config(cls, config: Config) -> Self | None:
        """Return the reader of claims, or None if users are of this server only.

        Raises :class:`InvalidSetting` for an unknown scope, or a rule that cannot be read.
        """
        if config.external_subjects != "on":
            return None
        rules, everybody = [], frozenset[str]()
        for text in filter(str.strip, config.scope_rules.split(";")):
            match = _RULE.fullmatch(text)
            if match is None:
                raise InvalidSetting("--scope-rules must be `scope scope; claim=value:scope; claim=value:scope`")
            scopes = frozenset(match[3].replace(",", " ").split())
            if unknown := scopes.difference(SCOPES):
                raise InvalidSetting(f"--scope-rules names unknown scopes: {' '.join(sorted(unknown))}")
            if match[1] is None:
                everybody |= scopes
            else:
                rules.append(ScopeRule(match[1], match[2], scopes))
        return cls(_parse_claims(config.claims), tuple(rules), everybody)

    def scopes(self, claims: Mapping[str, Any]) -> frozenset[str]:
        """Return the scopes that the claims give. A scope that this server does not know gives nothing."""
        found = set(self._default_scopes)
        scopes_claim = self._claims["scopes"]
        if scopes_claim:
            found.update(_texts(_find(claims, scopes_claim)))
        for rule in self._rules:
            value = _find(claims, rule.claim)
            is_scope_claim = rule.claim in {"scope", scopes_claim}  # `scope` is a list of scopes (RFC 8693 §4.2)
            if rule.value in (_texts(value) if is_scope_claim else _values(value)):
                found |= rule.scopes
        return frozenset(found.intersection(SCOPES))

    def profile(self, subject: str, claims: Mapping[str, Any]) -> Profile:
        """Return login, name and e-mail address for a user who is seen for the first time."""
        wanted = self._text(claims, "login").partition("@")[0]
        base = re.sub(r"[^A-Za-z0-9_]+", "_", wanted).strip("_")[:MAX_LOGIN_CHARS]
        if not base:
            base = f"u{hashlib.sha256(subject.encode()).hexdigest()[:8]}"
        # Thirty logins are tried if other users have the first ones. Then the login is made of the user's id.
        more = (f"{base[: MAX_LOGIN_CHARS - len(str(nth))]}{nth}" for nth in range(2, 31))
        name = "".join(filter(str.isprintable, self._text(claims, "name"))).strip()[:MAX_NAME_CHARS]
        is_verified = _find(claims, "email_verified") in (True, "true")
        email = self._text(claims, "email") if is_verified else ""
        return Profile((base, *more), name or base, email)

    def _text(self, claims: Mapping[str, Any], member: str) -> str:
        """Return the text of the claim that the settings name for ``member``; empty if there is none."""
        value = _find(claims, self._claims[member])
        return value if isinstance(value, str) else ""


def token_id_of(token: str) -> str:
    """Return a digest of a token as its id, for a token without the claim ``jti``."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def _parse_claims(text: str) -> dict[str, str]:
    """Return the claim by member of `DEFAULT_CLAIMS`, of a text such as ``login=nickname scopes=permissions``."""
    pairs = [word.partition("=") for word in text.split()]
    if any(member not in DEFAULT_CLAIMS or not claim for member, _, claim in pairs):
        raise InvalidSetting("--claims must be `login=claim name=claim email=claim scopes=claim`, or some of these")
    return DEFAULT_CLAIMS | {member: claim for member, _, claim in pairs}


def _find(claims: Mapping[str, Any], path: str) -> object:
    """Return the claim with this name.

    Without one, return the value at this path, such as ``realm_access.roles``, or None.
    """
    if path in claims:
        return claims[path]
    found: object = claims
    for step in path.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(step)
    return found


def _values(value: object) -> list[str]:
    """Return a claim, or the members of a list, as texts. Numbers and truth values have their JSON text."""
    members = value if isinstance(value, list) else [value]
    plain = [member for member in members if isinstance(member, str | int | float)]
    return [member if isinstance(member, str) else msgspec.json.encode(member).decode() for member in plain]


def _texts(value: object) -> list[str]:
    """Return the scopes of a claim: the words of a text (RFC 6749 §3.3, RFC 8693 §4.2), or the texts of a list."""
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
