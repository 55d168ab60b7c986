"""The short way to verify tokens of HS256: it accepts nothing that PyJWT refuses, and changes no answer."""

import json
from typing import Any

import jwt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stream_server.errors import Unauthorized
from stream_server.security.claims import Claims
from stream_server.security.tokens import MAX_HEADERS, KnownHeaders, TokenAuthority
from tests.stream_server.tokens import NOW, SECRET, config, payload, token

PYJWT = jwt.PyJWS(algorithms=["HS256"])
ALPHABET = st.characters(codec="utf-8") | st.sampled_from("=.-_+/ \n%AZaz09") | st.sampled_from("\udc80\u0660é")
TIMES: st.SearchStrategy[Any] = st.sampled_from(
    [NOW - 60, NOW - 10, NOW, NOW + 10, NOW + 10.5, NOW + 60, 1e300, "soon", None, True, [], "60"]
)
CLAIMS = st.fixed_dictionaries(
    {},
    optional={
        "iat": TIMES, "nbf": TIMES, "exp": TIMES, "sub": st.sampled_from(["42", "", "x", 42]),
        "aud": st.sampled_from(["stream-server", "other", ["stream-server"], ["other"], [], 5, {"a": 1}]),
        "iss": st.sampled_from(["stream-server", "other", 5]), "jti": st.sampled_from(["", "j", "j" * 129, 5]),
        "scope": st.sampled_from(["", "read", ["read"]]), "more": st.text(max_size=9),
    },
)  # fmt: skip


def pyjwt_payload(text: str) -> bytes | None:
    """Return the payload of a token as PyJWT verifies it, or None if PyJWT refuses the token."""
    try:
        body: bytes = PYJWT.decode(text, SECRET, algorithms=["HS256"])
    except (jwt.PyJWTError, ValueError):
        return None
    return body


def signed_token(claims: dict[str, Any]) -> str:
    """Return a signed token with changed claims, which may be of any type: `jwt.encode` would refuse some."""
    return PYJWT.encode(json.dumps(payload(**claims)).encode(), SECRET, "HS256")


def known_headers() -> KnownHeaders:
    """Return the short way after PyJWT has accepted a token."""
    known = KnownHeaders(SECRET.encode())
    known.remember(token(payload()))
    return known


def outcome(authority: TokenAuthority, text: str) -> Claims | tuple[str, str]:
    """Return the claims of a token, or the code and the message of its refusal."""
    try:
        return authority.verify(text, NOW)
    except Unauthorized as error:
        return error.error_code, error.message


def used_authority() -> TokenAuthority:
    """Return an authority that has accepted a token, so that it knows the usual header."""
    authority = TokenAuthority(config())
    authority.verify(token(payload()), NOW)
    return authority


@st.composite
def changed_tokens(draw: st.DrawFn) -> str:
    """Draw a token with a valid signature, of which some characters are replaced, inserted or removed."""
    text = signed_token(draw(CLAIMS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)) | st.sampled_from([text.find("."), text.rfind("."), len(text)]))
        text = text[:at] + draw(st.text(ALPHABET, max_size=2)) + text[at + draw(st.integers(0, 2)) :]
    return text


@given(changed_tokens())
@example(token(payload()) + "=")
@example(token(payload()) + ".")
@example("." + token(payload()))
@example(token(payload()).replace(".", "..", 1))
def test_the_short_way_accepts_only_what_pyjwt_accepts(text: str) -> None:
    found = known_headers().verify(text)
    assert found in (None, pyjwt_payload(text))


@given(CLAIMS)
def test_the_short_way_takes_each_token_that_pyjwt_makes(claims: dict[str, Any]) -> None:
    made = signed_token(claims)
    assert known_headers().verify(made) == pyjwt_payload(made)


@given(st.text("ABCDwxyz0189-_+/=.", max_size=8))
def test_a_signed_payload_that_is_no_unpadded_base64url_is_left_to_pyjwt(text: str) -> None:
    header = token(payload()).partition(".")[0]
    signed = f"{header}.{text}"
    made = f"{signed}.{sign(signed)}"
    assert known_headers().verify(made) in (None, pyjwt_payload(made))  # PyJWT accepts padding, too


@given(changed_tokens())
def test_a_used_authority_answers_as_a_new_one(text: str) -> None:
    assert outcome(used_authority(), text) == outcome(TokenAuthority(config()), text)


@pytest.mark.parametrize("headers", [{"typ": "at+jwt"}, {"kid": "1"}, {"typ": "x"}, {"crit": ["x"]}, {"cty": "JWT"}])
def test_another_header_is_verified_by_pyjwt_first(headers: dict[str, Any]) -> None:
    made = token(payload(), **headers)
    assert known_headers().verify(made) is None
    assert outcome(used_authority(), made) == outcome(TokenAuthority(config()), made)


def test_a_header_with_another_algorithm_never_becomes_known() -> None:
    authority = used_authority()
    made = token(payload(), None, algorithm="none")
    assert outcome(authority, made) == outcome(authority, made) == outcome(TokenAuthority(config()), made)


def test_a_token_over_8_kib_is_refused_after_a_short_one() -> None:
    assert outcome(used_authority(), token(payload(more="x" * 8192))) == (
        "invalid_token", "the token is longer than 8 KiB",
    )  # fmt: skip


def test_the_previous_key_is_no_short_way() -> None:
    previous = "the key before, with 32 bytes or more"
    authority = TokenAuthority(config(jwt_previous_secret=previous, jwt_previous_until="2100-01-01"))
    old = [token(payload(jti=jti), previous) for jti in "ab"]
    assert [authority.verify(made, NOW).jti for made in (old[0], token(payload()), old[1])] == ["a", "j1", "b"]
    ended = TokenAuthority(config(jwt_previous_secret=previous, jwt_previous_until="2000-01-01"))
    ended.verify(token(payload()), NOW)
    assert outcome(ended, old[0]) == ("invalid_token", "the token's signature is not valid")


def test_few_headers_are_remembered() -> None:
    known = KnownHeaders(SECRET.encode())
    made = [token(payload(), kid=str(number)) for number in range(MAX_HEADERS + 1)]
    for each in made:
        known.remember(each)
    assert sum(known.verify(each) is not None for each in made) == MAX_HEADERS


def sign(signed: str) -> str:
    """Return the signature of a text in base64url, made by PyJWT's algorithm."""
    algorithm = jwt.get_algorithm_by_name("HS256")
    return jwt.utils.base64url_encode(algorithm.sign(signed.encode(), SECRET.encode())).decode()
