"""Tokens: what is accepted, and one refusal for each way of being wrong."""

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
from stream_server.security.tokens import ALGORITHMS, TokenAuthority, load_or_create_secret, signing_secret
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
    """A private key as a file has it."""
    plain = serialization.NoEncryption()
    made: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    return made


def public_pem(key: Any) -> bytes:
    """Its public half as a file has it."""
    shape = serialization.PublicFormat.SubjectPublicKeyInfo
    made: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, shape)
    return made


def keyed(folder: Path, algorithm: str, text: bytes) -> TokenAuthority:
    """An Auth whose key file holds ``text``."""
    file = folder / "key.pem"
    file.write_bytes(text)
    return TokenAuthority(config(jwt_secret="", jwt_algorithm=algorithm, jwt_key_file=str(file)))


def refusal(auth: TokenAuthority, made: str, now: float = NOW) -> str:
    """The code with which ``made`` is refused; nothing of it is repeated."""
    with pytest.raises(Unauthorized) as caught:
        auth.verify(made, now)
    assert made not in caught.value.message
    return caught.value.error_code


def test_what_is_issued_is_verified() -> None:
    """A token that was issued says the same when it is verified, in HS256 from the settings' secret."""
    auth = TokenAuthority(config())
    made, claims = auth.issue("42", frozenset({"read", "stream"}), 60, NOW)
    assert auth.verify(made, NOW) == claims
    assert (claims.sub, claims.scopes, claims.exp) == ("42", frozenset({"read", "stream"}), NOW + 60)


def test_two_tokens_have_two_names() -> None:
    """Each token has a jti of its own, by which it can be revoked."""
    auth = TokenAuthority(config())
    assert auth.issue("42", frozenset(), 60, NOW)[1].jti != auth.issue("42", frozenset(), 60, NOW)[1].jti


@pytest.mark.parametrize("algorithm", sorted(PRIVATE))
def test_a_private_key_file_issues_and_verifies(tmp_path: Path, algorithm: str) -> None:
    """With a private PEM key log-in works, and the public half verifies what was issued but issues nothing."""
    made, claims = keyed(tmp_path, algorithm, private_pem(PRIVATE[algorithm])).issue("42", frozenset(), 60, NOW)
    verifier = keyed(tmp_path, algorithm, public_pem(PRIVATE[algorithm]))
    assert verifier.verify(made, NOW) == claims
    with pytest.raises(Unavailable, match="only verifies tokens"):
        verifier.issue("42", frozenset(), 60, NOW)


@pytest.mark.parametrize("pinned", sorted(PRIVATE))
@pytest.mark.parametrize("used", [*sorted(PRIVATE), "HS256", "HS512", "none"])
def test_only_the_pinned_algorithm_counts(tmp_path: Path, pinned: str, used: str) -> None:
    """A well-made token of any other algorithm is refused, each against each; the same algorithm passes."""
    auth = keyed(tmp_path, pinned, public_pem(PRIVATE[pinned]))
    made = token(payload(), None if used == "none" else PRIVATE.get(used, SECRET * 2), used)
    if used == pinned:
        assert auth.verify(made, NOW).sub == "42"
    else:
        assert refusal(auth, made) == "invalid_token"


@pytest.mark.parametrize("used", [*sorted(PRIVATE), "HS384", "HS512", "none"])
def test_hs256_takes_no_other_algorithm(used: str) -> None:
    """The same secret in another algorithm, an unsigned token, or any public key: refused."""
    made = token(payload(), None if used == "none" else PRIVATE.get(used, SECRET * 2), used)
    assert refusal(TokenAuthority(config()), made) == "invalid_token"


def by_hand(header: dict[str, Any], key: bytes) -> str:
    """A token that no library would make: HMAC-SHA256 whatever the header says and the key is."""
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, payload()))
    signature = jwt.get_algorithm_by_name("HS256").sign(head + b"." + body, key)
    return b".".join((head, body, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


def test_extensions_that_the_library_knows_are_refused_too() -> None:
    """Made by hand it would pass: the same token without ``crit`` does."""
    header = {"typ": "JWT", "alg": "HS256"}
    assert TokenAuthority(config()).verify(by_hand(header, SECRET.encode()), NOW).sub == "42"
    extended = by_hand({**header, "crit": ["b64"], "b64": True}, SECRET.encode())
    assert refusal(TokenAuthority(config()), extended) == "invalid_token"


def test_a_public_key_is_no_hmac_secret(tmp_path: Path) -> None:
    """The classic forgery: HS256 with the server's public key as the secret."""
    text = public_pem(PRIVATE["RS256"])
    forged = by_hand({"typ": "JWT", "alg": "HS256"}, text)
    assert refusal(keyed(tmp_path, "RS256", text), forged) == "invalid_token"


@pytest.mark.parametrize("algorithm", sorted(PRIVATE))
@pytest.mark.parametrize("held", [*sorted(PRIVATE), *OTHERS])
@pytest.mark.parametrize("shape", [private_pem, public_pem])
def test_key_and_algorithm_are_of_one_family(
    tmp_path: Path, algorithm: str, held: str, shape: Callable[[Any], bytes]
) -> None:
    """A server whose key file is of another family, or too weak, does not start."""
    text = shape({**PRIVATE, **OTHERS}[held])
    if held == algorithm:
        assert keyed(tmp_path, algorithm, text).algorithm == algorithm
    else:
        with pytest.raises(InvalidSetting):
            keyed(tmp_path, algorithm, text)


@pytest.mark.parametrize("text", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_a_file_without_a_key_is_refused(tmp_path: Path, text: bytes) -> None:
    """Rubbish in the key file is told in a sentence, not in a traceback of the library."""
    with pytest.raises(InvalidSetting, match="--jwt-key-file"):
        keyed(tmp_path, "RS256", text)


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
def test_wrong_settings_stop_the_start(settings: dict[str, str]) -> None:
    """Short secrets, keys in the secret's place, and mixed families: refused before anybody is served."""
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
    """One wrong claim is enough; a missing one is wrong, but for nbf, which may be missing and not null."""
    claims = payload(**{claim: value})
    if claim == "nbf" and value is None:
        claims["nbf"] = None
    body = json.dumps(claims).encode()
    assert refusal(TokenAuthority(config()), jwt.PyJWS().encode(body, SECRET.encode(), "HS256")) == "invalid_token"


@pytest.mark.parametrize("body", [b"[]", b"5", b"{", b"\xff", b"[" * 3000, b'{"exp":NaN}'])
def test_a_signed_body_that_is_no_claims_is_refused(body: bytes) -> None:
    """A good signature does not make rubbish into claims."""
    assert refusal(TokenAuthority(config()), jwt.PyJWS().encode(body, SECRET.encode(), "HS256")) == "invalid_token"


def test_an_audience_may_be_one_of_several() -> None:
    """``aud`` may be a list that holds ours."""
    claims = payload(aud=["someone-else", "stream-server"])
    assert TokenAuthority(config()).verify(token(claims), NOW).sub == "42"


def test_expiry_has_no_leeway_and_clocks_have_ten_seconds() -> None:
    """A token ends at its second; iat and nbf may be 10 s ahead of this clock."""
    auth = TokenAuthority(config())
    made = token(payload(iat=NOW + 10, nbf=NOW + 10))
    assert auth.verify(made, NOW).iat == NOW + 10
    assert auth.verify(made, NOW + 59.9).sub == "42"
    assert refusal(auth, made, NOW + 60) == "token_expired"


def test_a_forged_token_is_never_called_expired() -> None:
    """Only who holds a true token is told that it has expired."""
    assert (
        refusal(TokenAuthority(config()), token(payload(exp=NOW - 1), "another secret of 32 bytes or more"))
        == "invalid_token"
    )
    assert refusal(TokenAuthority(config()), token(payload(exp=NOW - 1, aud="someone-else"))) == "invalid_token"


@pytest.mark.parametrize("typ", ["JWT", "jwt", "at+jwt", "application/at+jwt", "AT+JWT"])
def test_types_of_access_tokens_pass(typ: str) -> None:
    """``typ`` is compared without regard to case."""
    assert TokenAuthority(config()).verify(token(payload(), typ=typ), NOW).sub == "42"


@pytest.mark.parametrize(
    "headers", [{"typ": "dpop+jwt"}, {"typ": "JWE"}, {"crit": ["exp"]}, {"crit": ["b64"]}, {"typ": None}]
)
def test_other_headers_are_refused(headers: dict[str, Any]) -> None:
    """A token of another type, without one, or with extensions that must be understood."""
    assert refusal(TokenAuthority(config()), token(payload(), **headers)) == "invalid_token"


def test_a_long_token_is_refused_unread() -> None:
    """More than 8 KiB is no token, also when it is signed well."""
    assert refusal(TokenAuthority(config()), token(payload(more="x" * 8192))) == "invalid_token"


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "surrogateescape")))
def test_rubbish_is_refused_cleanly(text: str) -> None:
    """Whatever stands in the header is refused as no token, never with another error."""
    assert refusal(TokenAuthority(config()), text + "!") == "invalid_token"


@given(st.integers(0, 400), st.integers(1, 255))
def test_one_changed_byte_ends_it(place: int, change: int) -> None:
    """A token with any byte changed is refused, or decodes to the very same token (padding bits)."""
    auth = TokenAuthority(config())
    made = token(payload())
    place %= len(made)
    changed = made[:place] + chr(ord(made[place]) ^ change) + made[place + 1 :]
    try:
        claims = auth.verify(changed, NOW)
    except Unauthorized:
        return
    assert claims == auth.verify(made, NOW)


def test_there_are_no_other_algorithms() -> None:
    """The list of the settings' help."""
    assert ALGORITHMS == ("HS256", "RS256", "ES256", "EdDSA")


def jwk(key: Any, **members: Any) -> dict[str, Any]:
    """A public key as a key set has it."""
    made: dict[str, Any] = jwt.get_algorithm_by_name("ES256").to_jwk(key.public_key(), as_dict=True)
    return {**made, **members}


def key_set_auth() -> TokenAuthority:
    """An Auth that waits for a key set."""
    return TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))


def test_keys_of_a_set_are_found_by_name() -> None:
    """Two keys by kid; each verifies its own tokens, a third name is unknown, the next set replaces the first."""
    auth = key_set_auth()
    old, new = PRIVATE["ES256"], ec.generate_private_key(ec.SECP256R1())
    by_old, by_new = token(payload(), old, "ES256", kid="a"), token(payload(), new, "ES256", kid="b")
    with pytest.raises(Unavailable):
        auth.verify(by_old, NOW)
    assert auth.replace_keys(json.dumps({"keys": [jwk(old, kid="a"), jwk(new, kid="b")]}).encode()) == 2
    assert auth.verify(by_old, NOW).sub == auth.verify(by_new, NOW).sub == "42"
    assert refusal(auth, token(payload(), new, "ES256", kid="a")) == "invalid_token"
    assert refusal(auth, token(payload(), new, "ES256", kid="../b")) == "invalid_token"
    assert refusal(auth, token(payload(), new, "ES256")) == "invalid_token"
    auth.replace_keys(json.dumps({"keys": [jwk(new, kid="b")]}).encode())
    assert refusal(auth, by_old) == "invalid_token"
    assert auth.verify(token(payload(), new, "ES256"), NOW).sub == "42"


def test_useless_keys_of_a_set_are_passed_over() -> None:
    """Keys for encryption, of other algorithms, symmetric or broken ones are none; the keys at hand stay."""
    auth = key_set_auth()
    good = PRIVATE["ES256"]
    auth.replace_keys(json.dumps({"keys": [jwk(good, kid="a")]}).encode())
    useless = [
        jwk(good, kid="a", use="enc"), jwk(good, kid="a", alg="RS256"), jwk(OTHERS["P-384"], kid="a"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "a"}, {"kty": "EC"}, 5, None, {"kty": "EC", "crv": "P-256", "x": 1},
    ]  # fmt: skip
    assert auth.replace_keys(json.dumps({"keys": useless}).encode()) == 0
    assert auth.verify(token(payload(), good, "ES256", kid="a"), NOW).sub == "42"


@pytest.mark.parametrize("document", [b"", b"[]", b"{}", b"\xff", b"[" * 5000, b'{"keys"'])
def test_what_is_no_key_set_is_told(document: bytes) -> None:
    """Anything else at the URL is a ValueError."""
    with pytest.raises(ValueError, match="not a key set"):
        key_set_auth().replace_keys(document)


def test_the_secret_of_a_data_folder_stays(tmp_path: Path) -> None:
    """Made once, readable by its owner alone, the same at the next start, and no draft is left."""
    first = load_or_create_secret(str(tmp_path / "data"))
    assert load_or_create_secret(str(tmp_path / "data")) == first
    assert (tmp_path / "data" / "jwt.secret").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / "data").iterdir()] == ["jwt.secret"]
    assert TokenAuthority(config(jwt_secret=""), first).issue("42", frozenset(), 60, NOW)


def test_racing_starters_agree_on_one_secret(tmp_path: Path) -> None:
    """Twenty starters of one folder at once: all hold the same secret."""
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


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Whoever has read it can be anybody, so the server does not start with it."""
    load_or_create_secret(str(tmp_path))
    (tmp_path / "jwt.secret").chmod(0o644)
    with pytest.raises(InvalidSetting, match="chmod"):
        load_or_create_secret(str(tmp_path))


def test_only_hs256_has_a_secret(tmp_path: Path) -> None:
    """A secret is made where tokens are signed with one, and never beside another algorithm's key."""
    assert signing_secret(config()) == SECRET
    assert signing_secret(config(jwt_secret="", data_dir=str(tmp_path))) == load_or_create_secret(str(tmp_path))
    assert signing_secret(config(jwt_secret="", jwt_algorithm="RS256", data_dir=str(tmp_path))) == ""


def test_a_temporary_server_keeps_no_secret() -> None:
    """Without a data folder each start has a secret of its own."""
    assert load_or_create_secret("") != load_or_create_secret("")
