"""The keys that sign and verify tokens: from the settings, a PEM file, the data folder, or a key set.

A key that does not fit its algorithm, or is too short, is refused.

The key that signs published entries is derived from the key of tokens.
"""

import codecs
import hmac
import re
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from stream_server.config.data_folder import SECRET_FILE, make_private
from stream_server.config.plain_text import read_clean
from stream_server.config.settings import Config, InvalidSetting

MIN_SECRET_BYTES = 32
"""Least length of an HS256 key in bytes (RFC 7518 §3.2: at least the size of the hash)."""

MIN_RSA_BITS = 2048
"""Least length of an RS256 key in bits (RFC 7518 §3.3)."""

KEY_TYPES: dict[str, tuple[type[Any], type[Any]]] = {
    "RS256": (rsa.RSAPrivateKey, rsa.RSAPublicKey),
    "ES256": (ec.EllipticCurvePrivateKey, ec.EllipticCurvePublicKey),
    "EdDSA": (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey),
}
"""Classes of the private and the public keys of each asymmetric algorithm."""

ALGORITHMS = ("HS256", *KEY_TYPES)

_PEM_BLOCK = re.compile(rb"(-----BEGIN ([A-Z ]+)-----.*?-----END \2-----)", re.DOTALL)

WITHOUT_KID = ""
"""Stands for the key id of the keys of a set that have none."""


def signing_secret(config: Config) -> str:
    """Return the setting ``jwt_secret``. If it is empty and the algorithm is HS256, return the data folder's key."""
    if config.jwt_algorithm != "HS256":
        return config.jwt_secret
    return config.jwt_secret or load_or_create_secret(config.data_dir)


def load_or_create_secret(data_dir: str, file: str = SECRET_FILE) -> str:
    """Return the key in ``file`` of the data folder; create the file with a random key if it is missing.

    If ``data_dir`` is empty, return a new random key. Raises :class:`InvalidSetting` if other users can read the file,
    because they could have copied the key, or if the file system has no hard links.
    """
    if not data_dir:
        return secrets.token_urlsafe(48)
    path = Path(data_dir) / file
    if not path.exists():
        _write_exclusively(path, secrets.token_urlsafe(48))
    if path.stat().st_mode & 0o077:
        raise InvalidSetting(f"other users can read {path}: remove it (this ends all tokens), or `chmod 600` it")
    try:
        return read_clean(path)
    except ValueError:
        raise InvalidSetting(f"{path} is not a text in UTF-8") from None


def _write_exclusively(path: Path, text: str) -> None:
    """Create ``path`` with ``text`` in one step. If another server has created the file meanwhile, keep that file."""
    make_private(path.parent)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    draft.touch(mode=0o600, exist_ok=False)
    try:
        draft.write_text(text, encoding="ascii")
        _link(path, draft)
    finally:
        draft.unlink()


def _link(path: Path, draft: Path) -> None:
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return
    except OSError as error:
        raise InvalidSetting(
            f"{path} cannot be made by a hard link ({error.strerror}): put the data folder on a file system with hard "
            "links, or give the key by the settings"
        ) from None


def load_keys(config: Config, secret: str) -> tuple[Any, Any]:
    """Return the key that signs and the key that verifies tokens. Both are None if ``jwt_jwks_url`` gives the keys."""
    algorithm = config.jwt_algorithm
    if algorithm not in ALGORITHMS:
        raise InvalidSetting(f"--jwt-algorithm must be one of {', '.join(ALGORITHMS)}")
    if algorithm == "HS256":
        if config.jwt_key_file or config.jwt_jwks_url:
            raise InvalidSetting("--jwt-key-file and --jwt-jwks-url need an --jwt-algorithm other than HS256")
        return (_hmac_key(config.jwt_secret or secret),) * 2
    if config.jwt_secret:
        raise InvalidSetting(f"jwt_secret is a key of HS256, not of {algorithm}")
    if bool(config.jwt_key_file) == bool(config.jwt_jwks_url):
        raise InvalidSetting(f"{algorithm} needs one of --jwt-key-file and --jwt-jwks-url")
    if config.jwt_jwks_url:
        parts = urlsplit(config.jwt_jwks_url)
        is_local = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if not parts.hostname or not (parts.scheme == "https" or (parts.scheme == "http" and is_local)):
            # On the way here, others could replace the keys.
            raise InvalidSetting("--jwt-jwks-url must begin with https:// (http:// only for this machine)")
    return _load_pem(config.jwt_key_file, algorithm) if config.jwt_key_file else (None, None)


def load_previous_key(config: Config) -> tuple[bytes | None, float]:
    """Return the HS256 key before the present one, and the Unix time (s) until which it verifies tokens."""
    if not config.jwt_previous_secret and not config.jwt_previous_until:
        return None, 0.0
    if not config.jwt_previous_secret or not config.jwt_previous_until or config.jwt_algorithm != "HS256":
        raise InvalidSetting("jwt_previous_secret and --jwt-previous-until belong together, and to HS256")
    try:
        until = datetime.fromisoformat(config.jwt_previous_until)
    except ValueError:
        raise InvalidSetting("--jwt-previous-until must be a date or time of ISO 8601, such as 2026-12-31") from None
    return _hmac_key(config.jwt_previous_secret), (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()


def _hmac_key(text: str) -> bytes:
    """Return ``text`` as HS256 key. Refuse a public key, because everybody could sign with it (CVE-2022-29217)."""
    key = text.encode()
    if b"-----BEGIN" in key or b'"kty"' in key or key.startswith((b"ssh-", b"ecdsa-")):
        raise InvalidSetting("jwt_secret holds a public or private key, which must not be the secret of HS256")
    if len(key) < MIN_SECRET_BYTES:
        raise InvalidSetting(f"jwt_secret must be {MIN_SECRET_BYTES} bytes or more")
    return key


def _load_pem(file: str, algorithm: str) -> tuple[Any, Any]:
    """Return the private and the public key in a PEM file. The private one is None if it is not in the file.

    A file may have other blocks around the key, such as a certificate beside its private key. Raises
    :class:`InvalidSetting` for a certificate alone: its end and its issuer would be checked by nobody.
    """
    try:
        lines = map(bytes.strip, Path(file).read_bytes().splitlines())  # with blanks at their ends (RFC 7468)
    except OSError as error:
        raise InvalidSetting(f"--jwt-key-file cannot be read ({type(error).__name__})") from None
    blocks = {label: block for block, label in _PEM_BLOCK.findall(b"\n".join(lines))}
    private_label = next((label for label in blocks if label.endswith(b"PRIVATE KEY")), None)
    if private_label is None and b"CERTIFICATE" in blocks:
        advice = "`openssl x509 -pubkey -noout -in CERTIFICATE` prints its public key"
        raise InvalidSetting(f"--jwt-key-file holds a certificate where a key is needed: {advice}")
    try:
        if private_label is None:
            text = next((block for label, block in blocks.items() if label.endswith(b"PUBLIC KEY")), b"")
            return None, _check_public_key(serialization.load_pem_public_key(text), algorithm)
        private = serialization.load_pem_private_key(blocks[private_label], password=None)
    except TypeError:
        raise InvalidSetting("the private key in --jwt-key-file is encrypted, and the server has no password") from None
    except ValueError as error:
        raise InvalidSetting(f"--jwt-key-file holds no usable PEM key ({type(error).__name__})") from None
    if not isinstance(private, KEY_TYPES[algorithm][0]):
        raise InvalidSetting(f"the key in --jwt-key-file is not a key of {algorithm}")
    return private, _check_public_key(private.public_key(), algorithm)


def _check_public_key(key: Any, algorithm: str) -> Any:
    """Return ``key`` if it fits the algorithm and is long enough; raises :class:`InvalidSetting` otherwise."""
    if not isinstance(key, KEY_TYPES[algorithm][1]):
        raise InvalidSetting(f"the key in --jwt-key-file is not a key of {algorithm}")
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        raise InvalidSetting(f"an RSA key must have {MIN_RSA_BITS} bits or more")
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name != "secp256r1":
        raise InvalidSetting("ES256 needs a key on the curve P-256")
    return key


def parse_key_set(document: bytes, algorithm: str) -> dict[str, list[Any]]:
    """Return the keys for ``algorithm`` by their ids. Raises ValueError if ``document`` is not a JWK set.

    Keys may share an id, or have none (RFC 7517 section 4.5): those stand under :data:`WITHOUT_KID`.
    """
    try:
        listed = msgspec.json.decode(document.removeprefix(codecs.BOM_UTF8), type=dict[str, Any])["keys"]
    except (msgspec.MsgspecError, KeyError, UnicodeDecodeError, RecursionError):
        raise ValueError("the document is not a key set (RFC 7517)") from None
    found: dict[str, list[Any]] = {}
    for item in listed if isinstance(listed, list) else ():
        key = _parse_jwk(item, algorithm)
        if key is not None:
            found.setdefault(str(item.get("kid") or WITHOUT_KID), []).append(key)
    return found


def _parse_jwk(item: Any, algorithm: str) -> Any:
    """Return the public key in one item of a JWK set; None if it is not a valid key for ``algorithm`` signatures."""
    if not isinstance(item, dict) or item.get("use", "sig") != "sig" or item.get("alg", algorithm) != algorithm:
        return None
    key: Any
    try:
        key = jwt.PyJWK(item, algorithm=algorithm).key
        return _check_public_key(key.public_key() if isinstance(key, KEY_TYPES[algorithm][0]) else key, algorithm)
    except (jwt.PyJWTError, InvalidSetting, ValueError, TypeError, KeyError):
        return None


def derive_bus_secret(config: Config, secret: str = "") -> str:
    """Return the secret of the bus, or an empty string if this process cannot know it.

    It is the setting ``bus_secret``, else it is derived from ``secret``, the HS256 key of the installation, else it is
    in the data folder. Raises :class:`InvalidSetting` for a short ``bus_secret``.
    """
    if config.bus_secret:
        if len(config.bus_secret.encode()) < MIN_SECRET_BYTES:
            raise InvalidSetting(f"bus_secret must be {MIN_SECRET_BYTES} bytes or more")
        return config.bus_secret
    if config.jwt_algorithm == "HS256" and (config.jwt_secret or secret):
        return hmac.digest((config.jwt_secret or secret).encode(), b"stream-server bus", "sha256").hex()
    if config.data_dir and Path(config.data_dir).is_dir():
        return load_or_create_secret(config.data_dir, "bus.secret")
    return ""


def to_bus_key(secret: str) -> bytes:
    """Return the key of 32 bytes that signs the entries on the Redis channels, derived from ``secret``."""
    return hmac.digest(secret.encode(), b"entries", "sha256")
