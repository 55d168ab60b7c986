"""A changed token is refused, also in the shorter way for tokens with a known header."""

import base64
import json
import string
from collections.abc import Callable

import jwt
import pytest

from stream_server.errors import Unauthorized
from stream_server.security.tokens import TokenAuthority
from tests.stream_server.tokens import NOW, SECRET, config, payload, token

ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
"""The characters of base64url, in the order of their values."""


def is_refused(auth: TokenAuthority, made: str) -> bool:
    """Return whether the authority calls the token invalid."""
    try:
        auth.verify(made, NOW)
    except Unauthorized as refusal:
        return refusal.error_code == "invalid_token"
    return False


def authority_that_knows_the_header() -> TokenAuthority:
    """Return an authority that verifies tokens of the tests in the shorter way."""
    auth = TokenAuthority(config())
    assert auth.verify(token(payload(jti="first")), NOW).jti == "first"
    return auth


@pytest.mark.parametrize("make", [lambda: TokenAuthority(config()), authority_that_knows_the_header])
def test_a_token_with_a_changed_signature_is_refused(make: Callable[[], TokenAuthority]) -> None:
    auth, made = make(), token(payload())
    for place in range(made.rindex(".") + 1, len(made)):
        other = ALPHABET[ALPHABET.index(made[place]) ^ 32]  # a bit that counts in the last one, too
        assert is_refused(auth, made[:place] + other + made[place + 1 :])
    assert is_refused(auth, made[: made.rindex(".") + 1])
    assert is_refused(auth, made[:-1])
    assert auth.verify(made, NOW).sub == "42"


@pytest.mark.parametrize("change", ["bits", "junk", "blanks", "padding"])
def test_a_payload_has_one_spelling_also_behind_a_known_header(change: str) -> None:
    text = base64.urlsafe_b64encode(json.dumps(payload(jti="j12")).encode()).decode()
    plain = text.rstrip("=")  # the last character has bits without a meaning
    spelled = {
        "bits": plain[:-1] + ALPHABET[ALPHABET.index(plain[-1]) ^ 1],
        "junk": plain[:4] + "!!!!" + plain[4:],
        "blanks": plain + "    ",
        "padding": text + "=",
    }[change]
    signed = f"{token(payload()).partition('.')[0]}.{spelled}"
    signature = jwt.get_algorithm_by_name("HS256").sign(signed.encode(), SECRET.encode())
    made = f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"
    for auth in (TokenAuthority(config()), authority_that_knows_the_header()):
        assert is_refused(auth, made)
