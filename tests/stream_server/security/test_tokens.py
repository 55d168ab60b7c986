"""Tokens: what is accepted, and an error for each kind of invalid token."""

import base64
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from stream_server.config.settings import InvalidSetting
from stream_server.errors import Unauthorized, Unavailable
from stream_server.security.signing_keys import load_or_create_secret, signing_secret
from stream_server.security.tokens import TokenAuthority
from tests.stream_server.tokens import NOW, SECRET, config, payload, token

PRIVATE: dict[str, Any] = {
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}
OTHERS: dict[str, Any] = {
    "short RSA": rsa.generate_private_key(public_exponent=65537, key_size=1024),
    "P-384": ec.generate_private_key(ec.SECP384R1()),
}


def private_pem(key: Any) -> bytes:
    plain = serialization.NoEncryption()
    made: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return made


def public_pem(key: Any) -> bytes:
    shape = serialization.PublicFormat.SubjectPublicKeyInfo
    made: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, shape)
    return made


def authority_with_key_file(folder: Path, algorithm: str, text: bytes) -> TokenAuthority:
    file = folder / "key.pem"
    file.write_bytes(text)
    return TokenAuthority(config(jwt_secret="", jwt_algorithm=algorithm, jwt_key_file=str(file)))


def refusal(auth: TokenAuthority, made: str, now: float = NOW) -> str:
    """Return the error code for ``made``. The message must not repeat the token."""
    with pytest.raises(Unauthorized) as caught:
        auth.verify(made, now)
    assert made not in caught.value.message
    return caught.value.error_code


def test_an_issued_token_is_verified() -> None:
    auth = TokenAuthority(config())
    made, claims = auth.issue("42", frozenset({"read", "stream"}), 60, NOW)
    assert auth.verify(made, NOW) == claims
    assert (claims.sub, claims.scopes, claims.exp) == ("42", frozenset({"read", "stream"}), NOW + 60)
    assert auth.issue("42", frozenset(), 60, NOW)[1].jti != claims.jti


@pytest.mark.parametrize("algorithm", sorted(PRIVATE))
def test_a_private_key_file_issues_and_verifies(tmp_path: Path, algorithm: str) -> None:
    made, claims = authority_with_key_file(tmp_path, algorithm, private_pem(PRIVATE[algorithm])).issue(
        "42", frozenset(), 60, NOW
    )
    verifier = authority_with_key_file(tmp_path, algorithm, public_pem(PRIVATE[algorithm]))
    assert verifier.verify(made, NOW) == claims
    with pytest.raises(InvalidSetting, match=f'owner sign these claims with {algorithm}: .*"sub":"42"'):
        verifier.issue("42", frozenset(), 60, NOW)


@pytest.mark.parametrize("pinned", sorted(PRIVATE))
@pytest.mark.parametrize("used", [*sorted(PRIVATE), "HS256", "HS512", "none"])
def test_only_the_configured_algorithm_is_accepted(tmp_path: Path, pinned: str, used: str) -> None:
    auth = authority_with_key_file(tmp_path, pinned, public_pem(PRIVATE[pinned]))
    made = token(payload(), None if used == "none" else PRIVATE.get(used, SECRET * 2), used)
    if used == pinned:
        assert auth.verify(made, NOW).sub == "42"
    else:
        assert refusal(auth, made) == "invalid_token"


@pytest.mark.parametrize("used", [*sorted(PRIVATE), "HS384", "HS512", "none"])
def test_hs256_takes_no_other_algorithm(used: str) -> None:
    made = token(payload(), None if used == "none" else PRIVATE.get(used, SECRET * 2), used)
    assert refusal(TokenAuthority(config()), made) == "invalid_token"


def sign_by_hand(header: dict[str, Any], key: bytes) -> str:
    """Return a token with an HMAC-SHA256 signature, whatever the header says and the key is."""
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, payload()))
    signature = jwt.get_algorithm_by_name("HS256").sign(head + b"." + body, key)
    return b".".join((head, body, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


def test_a_crit_header_is_refused_even_for_a_known_extension() -> None:
    header = {"typ": "JWT", "alg": "HS256"}
    assert TokenAuthority(config()).verify(sign_by_hand(header, SECRET.encode()), NOW).sub == "42"
    extended = sign_by_hand({**header, "crit": ["b64"], "b64": True}, SECRET.encode())
    assert refusal(TokenAuthority(config()), extended) == "invalid_token"


def test_a_token_signed_with_the_public_key_as_hmac_secret_is_refused(tmp_path: Path) -> None:
    text = public_pem(PRIVATE["RS256"])
    forged = sign_by_hand({"typ": "JWT", "alg": "HS256"}, text)
    assert refusal(authority_with_key_file(tmp_path, "RS256", text), forged) == "invalid_token"


@pytest.mark.parametrize("algorithm", sorted(PRIVATE))
@pytest.mark.parametrize("held", [*sorted(PRIVATE), *OTHERS])
@pytest.mark.parametrize("shape", [private_pem, public_pem])
def test_a_key_of_another_family_or_too_weak_is_refused(
    tmp_path: Path, algorithm: str, held: str, shape: Callable[[Any], bytes]
) -> None:
    text = shape({**PRIVATE, **OTHERS}[held])
    if held == algorithm:
        assert authority_with_key_file(tmp_path, algorithm, text).algorithm == algorithm
    else:
        with pytest.raises(InvalidSetting):
            authority_with_key_file(tmp_path, algorithm, text)


@pytest.mark.parametrize("text", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_key_file_without_a_key_is_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(InvalidSetting, match="--jwt-key-file"):
        authority_with_key_file(tmp_path, "RS256", text)


@pytest.mark.parametrize(
    "settings",
    [
        {"jwt_secret": "x" * 31},
        {"jwt_secret": ""},
        {"jwt_secret": public_pem(PRIVATE["RS256"]).decode()},
        {"jwt_secret": private_pem(PRIVATE["EdDSA"]).decode()},
        {"jwt_secret": '{"kty":"oct","k":"' + "a" * 43 + '"}'},
        {"jwt_key_file": "/some/key.pem"},
        {"jwt_jwks_url": "https://keys.test/"},
        {"jwt_algorithm": "none"},
        {"jwt_algorithm": "HS512"},
        {"jwt_algorithm": "RS256"},
        {"jwt_algorithm": "RS256", "jwt_secret": ""},
        {"jwt_algorithm": "RS256", "jwt_secret": "", "jwt_key_file": "/no/such/file"},
        {"jwt_algorithm": "RS256", "jwt_secret": "", "jwt_key_file": "/k", "jwt_jwks_url": "https://keys.test/"},
    ],
    ids=lambda settings: " ".join(f"{k}={v[:12]}" for k, v in settings.items()),
)
def test_invalid_token_settings_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting) as caught:
        TokenAuthority(config(**settings))
    assert SECRET not in str(caught.value)


WRONG: dict[str, Any] = {
    "iss": ["someone-else", None, 5, ["stream-server"]],
    "aud": ["someone-else", None, 5, [], ["someone-else"], [5]],
    "sub": ["", "me", "-1", "4 2", "٤٢", "1" * 21, None, 42],
    "jti": ["", "j" * 129, None, 5],
    "iat": [NOW + 11, None, "1795197600", True],
    "nbf": [NOW + 11, "soon", None],
    "exp": [None, "1795197660", True, 253402300800, 10**400, 1e300, [NOW + 60]],
    "scope": [None, ["read"], 5],
}


WRONG_ONES = [(claim, value) for claim, values in WRONG.items() for value in values]


@pytest.mark.parametrize(("claim", "value"), WRONG_ONES, ids=lambda value: str(value)[:16])
def test_each_claim_is_required_and_typed(claim: str, value: Any) -> None:
    """A missing claim is invalid too, except `nbf`, which may be missing but not null."""
    claims = payload(**{claim: value})
    if claim == "nbf" and value is None:
        claims["nbf"] = None
    body = json.dumps(claims).encode()
    assert refusal(TokenAuthority(config()), jwt.PyJWS().encode(body, SECRET.encode(), "HS256")) == "invalid_token"


@pytest.mark.parametrize("body", [b"[]", b"5", b"{", b"\xff", b"[" * 3000, b'{"exp":NaN}'])
def test_a_signed_body_that_is_not_claims_is_refused(body: bytes) -> None:
    assert refusal(TokenAuthority(config()), jwt.PyJWS().encode(body, SECRET.encode(), "HS256")) == "invalid_token"


def test_the_audience_may_be_a_list() -> None:
    claims = payload(aud=["someone-else", "stream-server"])
    assert TokenAuthority(config()).verify(token(claims), NOW).sub == "42"


def test_expiry_has_no_leeway_and_iat_and_nbf_have_ten_seconds() -> None:
    auth = TokenAuthority(config())
    made = token(payload(iat=NOW + 10, nbf=NOW + 10))
    assert auth.verify(made, NOW).iat == NOW + 10
    assert auth.verify(made, NOW + 59.9).sub == "42"
    assert refusal(auth, made, NOW + 60) == "token_expired"


def test_a_forged_expired_token_is_invalid_and_not_expired() -> None:
    forged = token(payload(exp=NOW - 1), "another secret of 32 bytes or more")
    for made in (forged, token(payload(exp=NOW - 1, aud="someone-else"))):
        assert refusal(TokenAuthority(config()), made) == "invalid_token"


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "application/at+jwt", "AT+JWT"])
def test_access_token_types_are_accepted_in_any_case(typ: str) -> None:
    assert TokenAuthority(config()).verify(token(payload(), typ=typ), NOW).sub == "42"


def test_a_token_may_leave_its_type_out() -> None:
    """Some identity providers do (RFC 7519 §5.1). PyJWT leaves it out for None."""
    made = token(payload(), typ=None)
    assert b"typ" not in base64.urlsafe_b64decode(made.partition(".")[0] + "===")
    auth = TokenAuthority(config())
    for _ in range(2):  # the second time its header is known
        assert auth.verify(made, NOW).sub == "42"


@pytest.mark.parametrize(
    "headers",
    [
        {"typ": None},
        {"typ": ""},
        {"typ": 1},
        {"typ": ["JWT"]},
        {"typ": {}},
        {"typ": "JOSE"},
        {"typ": "dpop+jwt"},
        {"typ": "JWE"},
        {"crit": ["exp"]},
        {"crit": []},
    ],
    ids=str,
)
def test_other_types_and_extensions_are_refused(headers: dict[str, Any]) -> None:
    made = sign_by_hand({"alg": "HS256", **headers}, SECRET.encode())
    assert refusal(TokenAuthority(config()), made) == "invalid_token"


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_any_other_text_is_an_invalid_token(text: str) -> None:
    assert refusal(TokenAuthority(config()), text + "!") == "invalid_token"


def jwk(key: Any, **members: Any) -> dict[str, Any]:
    """Return a public key as a key set has it."""
    made: dict[str, Any] = jwt.get_algorithm_by_name("ES256").to_jwk(key.public_key(), as_dict=True)
    return {**made, **members}


def authority_with_key_set() -> TokenAuthority:
    return TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))


def test_a_key_of_a_key_set_is_found_by_kid() -> None:
    auth = authority_with_key_set()
    old, new = PRIVATE["ES256"], ec.generate_private_key(ec.SECP256R1())
    by_old, by_new = token(payload(), old, "ES256", kid="a"), token(payload(), new, "ES256", kid="b")
    with pytest.raises(Unavailable):
        auth.verify(by_old, NOW)
    assert auth.replace_keys(json.dumps({"keys": [jwk(old, kid="a"), jwk(new, kid="b")]}).encode()) == 2
    assert auth.verify(by_old, NOW).sub == auth.verify(by_new, NOW).sub == "42"
    assert refusal(auth, token(payload(), new, "ES256", kid="a")) == "invalid_token"
    assert refusal(auth, token(payload(), new, "ES256", kid="../b")) == "invalid_token"
    assert auth.verify(token(payload(), new, "ES256"), NOW).sub == "42"
    auth.replace_keys(json.dumps({"keys": [jwk(new, kid="b")]}).encode())
    assert refusal(auth, by_old) == "invalid_token"
    assert auth.verify(token(payload(), new, "ES256"), NOW).sub == "42"


def test_unusable_keys_of_a_set_are_skipped_and_replace_no_key() -> None:
    auth = authority_with_key_set()
    good = PRIVATE["ES256"]
    auth.replace_keys(json.dumps({"keys": [jwk(good, kid="a")]}).encode())
    useless = [
        jwk(good, kid="a", use="enc"), jwk(good, kid="a", alg="RS256"), jwk(OTHERS["P-384"], kid="a"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "a"}, {"kty": "EC"}, 5, None, {"kty": "EC", "crv": "P-256", "x": 1},
    ]  # fmt: skip
    assert auth.replace_keys(json.dumps({"keys": useless}).encode()) == 0
    assert auth.verify(token(payload(), good, "ES256", kid="a"), NOW).sub == "42"


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b"\xff", b"[" * 5000, b'{"keys"'])
def test_another_document_is_not_a_key_set(document: bytes) -> None:
    with pytest.raises(ValueError, match="not a key set"):
        authority_with_key_set().replace_keys(document)


def test_the_secret_of_a_data_folder_is_created_once(tmp_path: Path) -> None:
    first = load_or_create_secret(str(tmp_path / "data"))
    assert load_or_create_secret(str(tmp_path / "data")) == first
    assert (tmp_path / "data" / "jwt.secret").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["jwt.secret"]
    assert TokenAuthority(config(jwt_secret=""), first).issue("42", frozenset(), 60, NOW)


def test_servers_that_start_together_agree_on_one_secret(tmp_path: Path) -> None:
    found: list[str] = []
    gate = threading.Barrier(20)

    def begin() -> None:
        gate.wait()
        found.append(load_or_create_secret(str(tmp_path)))

    threads = [threading.Thread(target=begin) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert len(set(found)) == 1


def test_a_secret_that_other_users_can_read_is_refused(tmp_path: Path) -> None:
    load_or_create_secret(str(tmp_path))
    (tmp_path / "jwt.secret").chmod(0o644)
    with pytest.raises(InvalidSetting, match="chmod"):
        load_or_create_secret(str(tmp_path))


def test_only_hs256_has_a_secret(tmp_path: Path) -> None:
    assert signing_secret(config()) == SECRET
    assert signing_secret(config(jwt_secret="", data_dir=str(tmp_path))) == load_or_create_secret(str(tmp_path))
    assert signing_secret(config(jwt_secret="", jwt_algorithm="RS256", data_dir=str(tmp_path))) == ""


def test_without_a_data_folder_each_start_has_its_own_secret() -> None:
    assert load_or_create_secret("") != load_or_create_secret("")


OTHER_SECRET = "the key before, which has 32 bytes or more"


def rotated(until: str, **settings: Any) -> TokenAuthority:
    return TokenAuthority(config(jwt_previous_secret=OTHER_SECRET, jwt_previous_until=until, **settings))


def test_a_previous_key_verifies_until_its_date() -> None:
    old = token(payload(), OTHER_SECRET)
    assert rotated("2026-11-21T00:00:00+00:00").verify(old, NOW).sub == "42"
    assert rotated("2026-11-21").verify(token(payload()), NOW).sub == "42"
    for authority in (rotated("2026-11-19"), TokenAuthority(config())):
        with pytest.raises(Unauthorized, match="signature"):
            authority.verify(old, NOW)
    with pytest.raises(Unauthorized, match="signature"):
        TokenAuthority(config()).verify(rotated("2026-11-21").issue("42", frozenset(), 60, NOW)[0] + "x", NOW)


@pytest.mark.parametrize(
    "settings",
    [
        {"jwt_previous_secret": OTHER_SECRET},
        {"jwt_previous_until": "2026-12-31"},
        {"jwt_previous_secret": "short", "jwt_previous_until": "2026-12-31"},
        {"jwt_previous_secret": OTHER_SECRET, "jwt_previous_until": "next year"},
    ],
)
def test_a_wrong_previous_key_stops_the_start(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting):
        TokenAuthority(config(**settings))


def test_a_token_lives_only_so_long() -> None:
    authority, days = TokenAuthority(config()), 90 * 86_400
    assert authority.verify(token(payload(exp=int(NOW) + days)), NOW).exp == int(NOW) + days
    with pytest.raises(Unauthorized, match="exp"):
        authority.verify(token(payload(exp=int(NOW) + days + 1)), NOW)
    with pytest.raises(InvalidSetting, match="7776000 s"):
        authority.issue("42", frozenset(), days + 1, NOW)
