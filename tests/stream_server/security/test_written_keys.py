"""Secrets and keys as editors, shells and tools write them, and keys of a set that share an id or have none."""

import codecs
import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from stream_server.config.settings import InvalidSetting
from stream_server.errors import Unauthorized
from stream_server.security.signing_keys import load_or_create_secret
from stream_server.security.tokens import MAX_CANDIDATES, TokenAuthority
from tests.stream_server.security.test_tokens import (
    PRIVATE,
    authority_with_key_file,
    jwk,
    private_pem,
    public_pem,
)
from tests.stream_server.tokens import NOW, config, payload, token

KEY = PRIVATE["ES256"]
KEYS = [ec.generate_private_key(ec.SECP256R1()) for _ in range(3)]


def _certificate(key: Any) -> bytes:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start + dt.timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _as_windows(text: bytes) -> bytes:
    return codecs.BOM_UTF8 + text.replace(b"\n", b" \r\n") + b"\r\n "


@pytest.mark.parametrize("pem", [private_pem(KEY), public_pem(KEY)])
def test_a_key_file_of_windows_is_read(tmp_path: Path, pem: bytes) -> None:
    auth = authority_with_key_file(tmp_path, "ES256", _as_windows(pem))
    assert auth.verify(token(payload(), KEY, "ES256"), NOW).sub == "42"


def test_a_private_key_may_stand_beside_its_certificate(tmp_path: Path) -> None:
    auth = authority_with_key_file(tmp_path, "ES256", _certificate(KEY) + private_pem(KEY))
    assert auth.can_issue


def test_a_certificate_in_the_place_of_a_key_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"holds a certificate where a key is needed.*openssl x509 -pubkey"):
        authority_with_key_file(tmp_path, "ES256", _certificate(KEY))


def test_an_encrypted_key_is_named(tmp_path: Path) -> None:
    password = serialization.BestAvailableEncryption(b"secret")
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, password)
    with pytest.raises(InvalidSetting, match="is encrypted"):
        authority_with_key_file(tmp_path, "ES256", pem)


def test_a_secret_of_the_data_folder_loses_what_an_editor_added(tmp_path: Path) -> None:
    made = load_or_create_secret(str(tmp_path))
    file = tmp_path / "jwt.secret"
    file.write_bytes(_as_windows(made.encode()))
    assert load_or_create_secret(str(tmp_path)) == made
    file.write_bytes(b"\xff\xfe" + made.encode("utf-16-le"))
    with pytest.raises(InvalidSetting, match="not a text in UTF-8"):
        load_or_create_secret(str(tmp_path))


def _with_key_set(*kids: str | None, padding: int = 0) -> TokenAuthority:
    auth = TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))
    others = [ec.generate_private_key(ec.SECP256R1()) for _ in range(padding)]
    keys = [*others, *KEYS[: len(kids)]]
    names: list[str | None] = [kids[0]] * padding + [*kids]
    listed = [jwk(key) if kid is None else jwk(key, kid=kid) for key, kid in zip(keys, names, strict=True)]
    assert auth.replace_keys(codecs.BOM_UTF8 + json.dumps({"keys": listed}).encode()) == len(listed)
    return auth


@pytest.mark.parametrize(
    ("kids", "named", "verified"),
    [
        (("a", "b"), "b", [1]),
        (("a", "b"), None, [0, 1]),
        (("a", "a", "b"), "a", [0, 1]),
        ((None, None), None, [0, 1]),
        ((None, None), "a", [0, 1]),
        ((None, "a"), "a", [1]),
        ((None, "a"), "b", [0]),
        (("a", "b"), "c", []),
    ],
)
def test_each_key_that_may_have_signed_is_tried(
    kids: tuple[str | None, ...], named: str | None, verified: list[int]
) -> None:
    auth, headers = _with_key_set(*kids), {} if named is None else {"kid": named}
    for number, key in enumerate(KEYS):
        made = token(payload(), key, "ES256", **headers)
        if number in verified:
            assert auth.verify(made, NOW).sub == "42"
        else:
            with pytest.raises(Unauthorized):
                auth.verify(made, NOW)


def test_an_id_of_null_is_no_id() -> None:
    """Some programs write each member that is missing as null."""
    auth = _with_key_set("a")
    auth.replace_keys(json.dumps({"keys": [jwk(KEYS[0]) | {"kid": None}]}).encode())
    assert auth.verify(token(payload(), KEYS[0], "ES256", kid="b"), NOW).sub == "42"


def test_few_keys_are_tried() -> None:
    """A token costs little processor time, however many keys a set has."""
    made = token(payload(), KEYS[0], "ES256", kid="a")
    assert _with_key_set("a", padding=MAX_CANDIDATES - 1).verify(made, NOW).sub == "42"
    with pytest.raises(Unauthorized):
        _with_key_set("a", padding=MAX_CANDIDATES).verify(made, NOW)
