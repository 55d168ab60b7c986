"""The key set at a URL: fetched when needed, not more often, and kept while the URL is down."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec

from stream_server.errors import Unauthorized, Unavailable
from stream_server.security import key_set as jwks
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.tokens import TokenAuthority
from tests.stream_server.test_auth import jwk
from tests.stream_server.tokens import NOW, config, payload, token

KEYS = {kid: ec.generate_private_key(ec.SECP256R1()) for kid in "ab"}


def signed(kid: str) -> str:
    """A good token of one of the keys."""
    return token(payload(), KEYS[kid], "ES256", kid=kid)


@dataclass
class Keys:
    """The other side: what it answers, how often it was asked; and the clock of this side."""

    answer: web.Response | None = None
    kids: str = "a"
    asked: int = 0
    now: float = 0.0
    moved: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    async def serve(self, request: web.Request) -> web.Response:
        """The key set, or what the test wants instead."""
        self.asked += 1
        if self.answer is not None:
            return self.answer
        return web.json_response({"keys": [jwk(KEYS[kid], kid=kid) for kid in self.kids]})

    async def elsewhere(self, request: web.Request) -> web.Response:
        """Where a redirect leads."""
        self.moved += 1
        return web.json_response({"keys": [jwk(KEYS["a"], kid="a")]})


@pytest.fixture
def keys() -> Keys:
    """The other side."""
    return Keys()


@pytest.fixture
def auth() -> TokenAuthority:
    """What is kept in keys."""
    return TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))


@pytest.fixture
async def key_set(keys: Keys, auth: TokenAuthority) -> AsyncIterator[RemoteKeySet]:
    """The fetcher, with a clock that stands still."""
    app = web.Application()
    app.router.add_get("/keys", keys.serve)
    app.router.add_get("/elsewhere", keys.elsewhere)
    async with TestServer(app) as server:
        made = RemoteKeySet(str(server.make_url("/keys")), auth, clock=lambda: keys.now)
        yield made
        await made.close()


async def test_the_first_token_fetches_the_keys(key_set: RemoteKeySet, auth: TokenAuthority, keys: Keys) -> None:
    """Once, also for many tokens."""
    for _ in range(3):
        await key_set.ensure_key_for(signed("a"))
        assert auth.verify(signed("a"), NOW).sub == "42"
    assert keys.asked == 1


async def test_a_new_key_is_found_and_made_up_ones_cost_little(
    key_set: RemoteKeySet, auth: TokenAuthority, keys: Keys
) -> None:
    """An unknown name looks again, at most once in 30 s, however many come."""
    await key_set.ensure_key_for(signed("a"))
    keys.kids = "ab"
    await key_set.ensure_key_for(signed("b"))
    with pytest.raises(Unauthorized):
        auth.verify(signed("b"), NOW)
    keys.now += jwks.MIN_REFRESH_SECONDS
    for number in range(100):
        await key_set.ensure_key_for(token(payload(), KEYS["a"], "ES256", kid=f"made up {number}"))
    await key_set.ensure_key_for(signed("b"))
    assert auth.verify(signed("b"), NOW).sub == "42"
    assert keys.asked == 2


BAD = {
    "an error": lambda: web.Response(status=500),
    "no JSON": lambda: web.Response(text="<html>"),
    "no keys": lambda: web.json_response({"keys": []}),
    "too long": lambda: web.json_response({"keys": [jwk(KEYS["b"], kid="b")], "more": "x" * jwks.MAX_KEY_SET_BYTES}),
    "a redirect": lambda: web.Response(status=302, headers={"Location": "/elsewhere"}),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_keys_at_hand_stay(
    key_set: RemoteKeySet, auth: TokenAuthority, keys: Keys, answer: "type[web.Response]"
) -> None:
    """Whatever the URL answers later, known keys go on; a redirect is not followed."""
    await key_set.ensure_key_for(signed("a"))
    keys.answer, keys.now = answer(), jwks.MIN_REFRESH_SECONDS
    await key_set.ensure_key_for(signed("b"))
    assert keys.asked == 2
    assert keys.moved == 0
    assert auth.verify(signed("a"), NOW).sub == "42"


async def test_a_url_that_is_down_is_told_as_unavailable(auth: TokenAuthority) -> None:
    """Before any key was fetched nobody can be verified: 503, not 401."""
    nowhere = RemoteKeySet("http://127.0.0.1:1/keys", auth)
    await nowhere.ensure_key_for(signed("a"))
    await nowhere.close()
    with pytest.raises(Unavailable):
        auth.verify(signed("a"), NOW)


async def test_rubbish_asks_nobody(key_set: RemoteKeySet, keys: Keys) -> None:
    """What is no token does not reach the URL."""
    for text in ("", "a.b.c", "é", json.dumps({"kid": "a"}), token(payload(), "s" * 32)):
        await key_set.ensure_key_for(text)
    assert keys.asked == 0
