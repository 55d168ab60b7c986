"""Issuing and verifying JSON Web Tokens (RFC 7519, with the advice of RFC 8725).

PyJWT checks the signature and this module checks the claims, which are all required. A server whose key does not fit
its algorithm does not start. A token of HS256 whose header PyJWT has accepted before is verified
in a shorter way. The module uses neither network nor clock: the caller passes the current time.

The claims of verified tokens are remembered, because a client sends the same token with each request. The memory holds
a digest and not the token. It says nothing about revocation: that is `stream_server.feed.token_validity_cache`.
"""

import binascii
import hmac
import math
import re
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any

import jwt
import msgspec

from stream_server.config.settings import Config, InvalidSetting
from stream_server.errors import Unauthorized, Unavailable
from stream_server.security import signing_keys
from stream_server.security.claims import READER_SCOPES, Claims, Reader
from stream_server.security.clock_check import ClockCheck
from stream_server.security.external_identity import MAX_SUBJECT_CHARS, ExternalIdentity, token_id_of

MAX_HEADERS = 16
"""Number of different headers that are remembered. An issuer uses one, or a few."""


class KnownHeaders:
    """The encoded headers of tokens that PyJWT has accepted with one key, and the way to verify more such tokens.

    PyJWT's checks of a header and of a key depend on nothing else, so they hold for each later token. A token passes if
    its header is one of these to the byte, its signature is the text that the key gives, and its payload is unpadded
    base64url as PyJWT requires it.
    """

    __slots__ = ("_headers", "_key")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._headers: set[str] = set()

    def remember(self, token: str) -> None:
        """Remember the header of a token that PyJWT has accepted with the key."""
        if len(self._headers) < MAX_HEADERS:
            self._headers.add(token.partition(".")[0])

    def verify(self, token: str) -> bytes | None:
        """Return the payload of a token if it passes, otherwise None: then PyJWT must decide."""
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        if header not in self._headers or not token.isascii():
            return None
        expected = _encode_base64url(hmac.digest(self._key, signed.encode(), "sha256"))
        if not hmac.compare_digest(expected, signature.encode()):
            return None
        return _decode_base64url(payload.encode())


def _encode_base64url(data: bytes) -> bytes:
    return urlsafe_b64encode(data).rstrip(b"=")


def _decode_base64url(text: bytes) -> bytes | None:
    """Return the bytes behind unpadded base64url, or None if ``text`` is not the one text that means these bytes."""
    try:
        data = urlsafe_b64decode(text + b"=" * (-len(text) % 4))  # it skips characters that are not of the alphabet
    except binascii.Error:
        return None
    return data if _encode_base64url(data) == text else None


LEEWAY_SECONDS = 10
"""Seconds by which the clock of another issuer may be ahead (``iat``, ``nbf``). ``exp`` has no leeway."""

MAX_TOKEN_SECONDS = 90 * 86_400
"""Longest life of a token in seconds, from ``iat`` to ``exp``. A revoked token is remembered for so long."""

MAX_TOKEN_BYTES = 8192
"""Longest token in bytes; the server does not look into a longer one."""

MAX_CANDIDATES = 16
"""Most keys of a key set that are tried on a token. A signature of RSA takes 30 µs to verify."""

MAX_REMEMBERED_TOKENS = 10_000
"""Number of tokens whose claims are remembered, about 6 MB. The one that was unused for longest is forgotten first."""

USER_ID = re.compile(r"[0-9]{1,20}")

_shared_scopes: Callable[[tuple[str, ...]], frozenset[str]] = lru_cache(256)(frozenset)
"""Returns the scopes as a set. Users have few different ones, so equal ones share a set."""


class _Payload(msgspec.Struct):
    """The claims of a token, decoded but not checked. A missing claim is an error; unknown claims are ignored.

    A token without ``sub`` is that of a reader, who has no account. Only such a token has ``within`` and
    ``max_streams``.

    ``srv_session`` is the id of a log-in session of this server. It is not the registered claim ``sid``, in which
    another issuer writes the id of its own sessions.
    """

    iss: str
    aud: str | list[str]
    iat: float
    exp: float
    jti: str
    scope: str
    sub: str | msgspec.UnsetType = msgspec.UNSET
    nbf: float | msgspec.UnsetType = msgspec.UNSET
    srv_session: str = ""
    within: str | msgspec.UnsetType = msgspec.UNSET
    max_streams: int | msgspec.UnsetType = msgspec.UNSET


_decode_payload = msgspec.json.Decoder(_Payload).decode


class TokenAuthority:
    """Issues and verifies JSON Web Tokens. With HS256 and no key in the settings, it uses the key ``secret``.

    ``clock_check`` hears of the times of new tokens with valid signatures.

    The constructor raises :class:`InvalidSetting` if the key is too short, unreadable, or not of ``jwt_algorithm``.
    """

    def __init__(self, config: Config, secret: str = "") -> None:
        self.algorithm = config.jwt_algorithm
        self.clock_check = ClockCheck()
        self._issuer = config.jwt_issuer
        self._audience = config.jwt_audience
        self._jws = jwt.PyJWS(algorithms=[self.algorithm])
        self._private, self._public = signing_keys.load_keys(config, secret)
        self._previous, self._previous_until = signing_keys.load_previous_key(config)
        self._external = ExternalIdentity.from_config(config)
        if self._external is not None and self.can_issue:
            raise InvalidSetting(
                "--external-subjects needs a public key or a key set: the other issuer has the private one"
            )
        self._keys_by_kid: dict[str, list[Any]] | None = {} if config.jwt_jwks_url else None
        self._has_key_set = not config.jwt_jwks_url
        self._verified: dict[bytes, tuple[Claims, float, float]] = {}  # with the times of verification and end
        self._known_headers = KnownHeaders(self._public) if self.algorithm == "HS256" else None

    @property
    def can_issue(self) -> bool:
        """Whether the authority has a key to sign tokens. With a public key or a key set, others issue them."""
        return self._private is not None

    def issue(
        self, sub: str, scopes: frozenset[str], ttl_seconds: int, now: float, session: str = "",
        reader: Reader | None = None,
    ) -> tuple[str, Claims]:  # fmt: skip
        """Return a new token and its claims, for the user id ``sub``, valid ``ttl_seconds`` from ``now`` (Unix time).

        With ``reader`` it is a reader token: then ``sub`` must be empty, and the scopes those of `READER_SCOPES`.

        Raises :class:`InvalidSetting` if the server has only a public key; the message has the claims that the owner of
        the private key would sign. Raises :class:`InvalidSetting` for a longer life than `MAX_TOKEN_SECONDS`.
        """
        if self._external is not None:
            raise InvalidSetting(
                "with --external-subjects another issuer makes all tokens: let its token name the scopes in the claim "
                "of --claims 'scopes=CLAIM', or give them to one of its users by a rule, such as "
                "--scope-rules 'sub=ID AT THE ISSUER:ingest'"
            )
        if ttl_seconds > MAX_TOKEN_SECONDS:
            raise InvalidSetting(f"a token may live {MAX_TOKEN_SECONDS} s at most")
        issued = int(now)
        claims = Claims(
            sub, scopes, secrets.token_urlsafe(16), issued, issued + ttl_seconds, session, reader=reader
        )
        own = {"sub": sub} if reader is None else msgspec.to_builtins(reader)
        payload = {
            "iss": self._issuer, "aud": self._audience, "jti": claims.jti,
            "iat": claims.iat, "exp": claims.exp, "scope": " ".join(sorted(scopes)),
        } | ({"srv_session": session} if session else {}) | own  # fmt: skip
        encoded = msgspec.json.encode(payload)
        if self._private is None:
            raise InvalidSetting(
                "a public key or a key set cannot sign tokens: name the file with the private key (--jwt-key-file), "
                f"or let its owner sign these claims with {self.algorithm}: {encoded.decode()}"
            )
        return self._jws.encode(encoded, self._private, self.algorithm), claims

    def verify(self, token: str, now: float) -> Claims:
        """Return the claims of the token if it is valid at ``now`` (seconds since 1970).

        Raises :class:`Unauthorized`, with the code ``token_expired`` if only the expiry is wrong. The messages never
        repeat a part of the token.
        """
        digest = sha256(token.encode(errors="surrogateescape")).digest()
        known = self._verified.pop(digest, None)
        if known is None or not known[1] <= now < known[2]:  # before: the clock was set back
            body, valid_until = self._verify_signature(token, now)
            claims = self._read_claims(token, body, now)
            known = claims, now, min(valid_until, claims.exp)
            if len(self._verified) >= MAX_REMEMBERED_TOKENS:
                del self._verified[next(iter(self._verified))]
        self._verified[digest] = known  # behind all that were not used since
        return known[0]

    def _read_claims(self, token: str, body: bytes, now: float) -> Claims:
        """Return the claims in the payload of a token with a valid signature. Raises Unauthorized for wrong ones.

        The token of another issuer may lack ``jti`` and ``scope``, which come from elsewhere.
        """
        external, members = self._external, dict[str, Any]()
        try:
            if external is None:
                payload = _decode_payload(body)
            else:
                members = msgspec.json.decode(body, type=dict[str, Any])
                payload = msgspec.convert({"jti": token_id_of(token), **members, "scope": ""}, _Payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            names = "iss, sub, aud, iat, exp, jti and scope" if external is None else "iss, sub, aud, iat and exp"
            raise Unauthorized(f"the token must carry {names}, each of its type (RFC 7519)") from None
        self._check_claims(payload, now)
        if payload.sub is msgspec.UNSET:
            within, most = payload.within or "", payload.max_streams or 0
            return Claims("", READER_SCOPES, payload.jti, payload.iat, payload.exp, reader=Reader(within, most))
        if external is not None:
            profile, scopes = external.profile(payload.sub, members), external.scopes(members)
            return Claims(payload.sub, scopes, payload.jti, payload.iat, payload.exp, profile=profile)
        scopes = _shared_scopes(tuple(payload.scope.split()))
        return Claims(payload.sub, scopes, payload.jti, payload.iat, payload.exp, payload.srv_session)

    def has_key_for(self, token: str) -> bool:
        """Return whether the authority has the key that the token names. If not, fetching the key set may help."""
        if self._keys_by_kid is None:
            return True
        try:
            header = self._read_header(token)
        except Unauthorized:
            return True
        return self._has_key_set and (header.get("kid") is None or header["kid"] in self._keys_by_kid)

    def replace_keys(self, document: bytes) -> int:
        """Replace the keys by the usable ones of the JWK set ``document`` (RFC 7517); return the number of usable keys.

        Keys for another algorithm or use are not usable. If the set has no usable key, the current keys stay. If
        ``document`` is not a key set, they stay too, and the method raises ValueError.
        """
        found = signing_keys.parse_key_set(document, self.algorithm)
        if found:
            self._keys_by_kid = found
            self._has_key_set = True
            self._verified.clear()
        return sum(map(len, found.values()))

    def forget_keys(self) -> None:
        """Drop the keys of the key set. Until :meth:`replace_keys` gives others, no token can be verified."""
        if self._keys_by_kid is not None:
            self._keys_by_kid, self._has_key_set = {}, False
            self._verified.clear()

    def _verify_signature(self, token: str, now: float) -> tuple[bytes, float]:
        """Return the payload, undecoded, and the Unix time until which the key that verified it is valid.

        Raises :class:`Unauthorized` if the header or the signature is not valid.
        """
        known_headers = self._known_headers
        if known_headers is not None and len(token) <= MAX_TOKEN_BYTES:
            known_body = known_headers.verify(token)
            if known_body is not None:
                return known_body, math.inf
        header = self._read_header(token)
        # It may be absent (RFC 7519 §5.1). The types with `at` are those of RFC 9068.
        if str(header.get("typ", "jwt")).lower() not in {"jwt", "at+jwt", "application/at+jwt"}:
            raise Unauthorized("the token's `typ` must be JWT or at+jwt, or absent")
        if "crit" in header:
            raise Unauthorized("the token's `crit` names extensions that this server does not support")
        bodies = (self._decode_with(token, key) for key in self._candidate_keys(header))
        body, valid_until = next((body for body in bodies if body is not None), None), math.inf
        if body is not None and known_headers is not None:
            known_headers.remember(token)
        if body is None and self._previous is not None and now < self._previous_until:
            body, valid_until = self._decode_with(token, self._previous), self._previous_until
        if body is None:
            raise Unauthorized("the token's signature is not valid")
        return body, valid_until

    def _decode_with(self, token: str, key: Any) -> bytes | None:
        """Return the token's payload if ``key`` verifies its signature, otherwise None."""
        try:
            body: bytes = self._jws.decode(token, key, algorithms=[self.algorithm])
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            return None
        return body

    def _read_header(self, token: str) -> dict[str, Any]:
        """Return the token's unverified header; raises :class:`Unauthorized` if ``alg`` is not that of the settings."""
        if len(token) > MAX_TOKEN_BYTES:
            raise Unauthorized("the token is longer than 8 KiB")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            raise Unauthorized("the token is not a JSON Web Token") from None
        if header.get("alg") != self.algorithm:
            raise Unauthorized(f"the token must be signed with {self.algorithm}")
        return header

    def _candidate_keys(self, header: dict[str, Any]) -> list[Any]:
        """Return the keys of which one may have signed a token with this header, `MAX_CANDIDATES` at most.

        These are the keys with the token's key id, else those without one. A token without a key id may be signed with
        any key. Raises Unauthorized for an unknown key, Unavailable without any key set.
        """
        if self._keys_by_kid is None:
            return [self._public]
        if not self._has_key_set:
            raise Unavailable("the key set is not available yet", retry_after=5)
        kid = header.get("kid")
        if kid is None:
            found = [key for keys in self._keys_by_kid.values() for key in keys]
        else:
            found = self._keys_by_kid.get(kid) or self._keys_by_kid.get(signing_keys.WITHOUT_KID, [])
        if not found:
            raise Unauthorized("the token's key (`kid`) is unknown")
        return found[:MAX_CANDIDATES]

    def _check_claims(self, payload: _Payload, now: float) -> None:
        """Raise :class:`Unauthorized` if a claim is wrong at ``now`` (Unix time)."""
        audiences = [payload.aud] if isinstance(payload.aud, str) else payload.aud
        is_reader, subject = payload.sub is msgspec.UNSET, payload.sub or ""
        if self._external is None:
            is_subject = is_reader or USER_ID.fullmatch(subject) is not None
        else:
            is_subject = 0 < len(subject) <= MAX_SUBJECT_CHARS and subject.isprintable()
        has_reader_claims = payload.within is not msgspec.UNSET or payload.max_streams is not msgspec.UNSET
        faults = {
            "iss": payload.iss != self._issuer,
            "aud": self._audience not in audiences,
            "sub": not is_subject,
            "jti": not 0 < len(payload.jti) <= 128,
            "iat": payload.iat > now + LEEWAY_SECONDS,
            "nbf": payload.nbf is not msgspec.UNSET and payload.nbf > now + LEEWAY_SECONDS,
            # Python's dates end before the year 10000.
            "exp": payload.exp >= 253_402_300_800 or payload.exp - payload.iat > MAX_TOKEN_SECONDS,
            "srv_session": len(payload.srv_session) > 64 or (is_reader and payload.srv_session != ""),
            "scope": is_reader and frozenset(payload.scope.split()) != READER_SCOPES,
            # A token would show more than its issuer meant if these were ignored, or if "" or 0 meant no limit.
            "within": (has_reader_claims and not is_reader) or payload.within == "",
            "max_streams": payload.max_streams is not msgspec.UNSET and payload.max_streams < 1,
        }
        for claim, wrong in faults.items():
            if wrong:
                if claim in {"iat", "nbf"}:
                    self._suspect_clock(subject, now)
                raise Unauthorized(f"the token's `{claim}` is not acceptable")
        if now >= payload.exp:
            self._suspect_clock(subject, now)
            raise Unauthorized("the token has expired", code="token_expired")
        self.clock_check.accept_token()

    def _suspect_clock(self, user: str, now: float) -> None:
        """Note that a token of ``user`` has wrong times, unless a remembered token speaks for the clock."""
        if not any(valid_until > now for _, _, valid_until in self._verified.values()):
            self.clock_check.refuse_token(user)
