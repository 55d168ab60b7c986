"""The memory of verified tokens forgets what is no longer valid, and the least recently used."""

from dataclasses import replace

import pytest

from stream_server.errors import Unauthorized
from stream_server.security.tokens import TokenAuthority
from tests.stream_server import tokens

NOW = 1_800_000_000.0


def test_the_token_that_was_unused_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_server.security.tokens.MAX_REMEMBERED_TOKENS", 2)
    authority = TokenAuthority(tokens.config())
    first, second, third = (authority.issue(sub, frozenset({"read"}), 60, NOW)[0] for sub in "123")
    known = {token: authority.verify(token, NOW) for token in (first, second, first, third)}
    assert authority.verify(first, NOW) is known[first]
    assert authority.verify(second, NOW) is not known[second]


def test_a_remembered_token_still_expires() -> None:
    authority = TokenAuthority(tokens.config())
    token, claims = authority.issue("7", frozenset({"read"}), 60, NOW)
    assert authority.verify(token, NOW) == claims
    assert authority.verify(token, NOW + 59) is authority.verify(token, NOW + 59), "the second is remembered"
    with pytest.raises(Unauthorized) as refused:
        authority.verify(token, NOW + 60)
    assert refused.value.error_code == "token_expired"


def test_a_remembered_token_is_of_the_future_after_the_clock_was_set_back() -> None:
    authority = TokenAuthority(tokens.config())
    token, claims = authority.issue("7", frozenset({"read"}), 60, NOW)
    assert authority.verify(token, NOW) == claims
    with pytest.raises(Unauthorized, match="`iat`"):
        authority.verify(token, NOW - 3600)
    assert authority.verify(token, NOW) == claims


def test_a_token_of_the_previous_key_is_not_remembered_longer_than_the_key_is_valid() -> None:
    config = tokens.config()
    old = TokenAuthority(replace(config, jwt_secret="the previous secret of at least 32 bytes"))
    token, claims = old.issue("7", frozenset({"read"}), 600, NOW)
    until = "2027-01-15T08:01:00Z"  # NOW + 60 s
    rotated = TokenAuthority(
        replace(config, jwt_previous_secret="the previous secret of at least 32 bytes", jwt_previous_until=until)
    )
    assert rotated.verify(token, NOW) == claims
    assert rotated.verify(token, NOW + 59) == claims
    with pytest.raises(Unauthorized):
        rotated.verify(token, NOW + 61)
