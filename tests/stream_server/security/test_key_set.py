"""The key set at a URL: fetched when needed, not more often, and kept while the URL fails."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.asymmetric import ec

from stream_server.config.settings import InvalidSetting
from stream_server.errors import Unauthorized, Unavailable
from stream_server.security import key_set as jwks
from stream_server.security.key_set import RemoteKeySet
from stream_server.security.tokens import TokenAuthority
from tests.stream_server.security.test_tokens import jwk
from tests.stream_server.tokens import NOW, config, payload, token
from tests.waiting import eventually

KEYS = {kid: ec.generate_private_key(ec.SECP256R1()) for kid in "ab"}


def signed(kid: str) -> str:
    return token(payload(), KEYS[kid], "ES256", kid=kid)


@dataclass
class KeyServer:
    """The server of the keys, the number of its requests, and the clock of the client."""

    answer: web.Response | None = None
    kids: str = "a"
    asked: int = 0
    now: float = 0.0
    moved: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    async def serve(self, request: web.Request) -> web.Response:
        self.asked += 1
        if self.answer is not None:
            return self.answer
        return web.json_response({"keys": [jwk(KEYS[kid], kid=kid) for kid in self.kids]})

    async def redirected(self, request: web.Request) -> web.Response:
        self.moved += 1
        return web.json_response({"keys": [jwk(KEYS["a"], kid="a")]})


@pytest.fixture
def key_server() -> KeyServer:
    return KeyServer()


@pytest.fixture
def auth() -> TokenAuthority:
    return TokenAuthority(config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url="https://keys.test/"))


@pytest.fixture
async def key_set(key_server: KeyServer, auth: TokenAuthority) -> AsyncIterator[RemoteKeySet]:
    """The client, with a manual clock."""
    app = web.Application()
    app.router.add_get("/keys", key_server.serve)
    app.router.add_get("/elsewhere", key_server.redirected)
    async with TestServer(app) as server:
        made = RemoteKeySet(str(server.make_url("/keys")), auth, monotonic=lambda: key_server.now)
        yield made
        await made.close()


async def test_the_first_token_fetches_keys(key_set: RemoteKeySet, auth: TokenAuthority, key_server: KeyServer) -> None:
    for _ in range(3):
        await key_set.ensure_key_for(signed("a"))
        assert auth.verify(signed("a"), NOW).sub == "42"
    assert key_server.asked == 1


async def test_an_unknown_kid_fetches_the_keys_at_most_once_in_30_seconds(
    key_set: RemoteKeySet, auth: TokenAuthority, key_server: KeyServer
) -> None:
    await key_set.ensure_key_for(signed("a"))
    key_server.kids = "ab"
    await key_set.ensure_key_for(signed("b"))
    with pytest.raises(Unauthorized):
        auth.verify(signed("b"), NOW)
    key_server.now += jwks.MIN_REFRESH_SECONDS
    for number in range(100):
        await key_set.ensure_key_for(token(payload(), KEYS["a"], "ES256", kid=f"made up {number}"))
    await key_set.ensure_key_for(signed("b"))
    assert auth.verify(signed("b"), NOW).sub == "42"
    assert key_server.asked == 2


BAD = {
    "an error": lambda: web.Response(status=500),
    "no JSON": lambda: web.Response(text="<html>"),
    "no keys": lambda: web.json_response({"keys": []}),
    "too long": lambda: web.json_response({"keys": [jwk(KEYS["b"], kid="b")], "more": "x" * jwks.MAX_KEY_SET_BYTES}),
    "a redirect": lambda: web.Response(status=302, headers={"Location": "/elsewhere"}),
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_known_keys_stay_if_the_url_fails(
    key_set: RemoteKeySet, auth: TokenAuthority, key_server: KeyServer, answer: "type[web.Response]"
) -> None:
    await key_set.ensure_key_for(signed("a"))
    key_server.answer, key_server.now = answer(), jwks.MIN_REFRESH_SECONDS
    await key_set.ensure_key_for(signed("b"))
    assert key_server.asked == 2
    assert key_server.moved == 0
    assert auth.verify(signed("a"), NOW).sub == "42"


async def test_without_any_fetched_key_verification_is_unavailable(auth: TokenAuthority) -> None:
    nowhere = RemoteKeySet("http://127.0.0.1:1/keys", auth)
    await nowhere.ensure_key_for(signed("a"))
    await nowhere.close()
    with pytest.raises(Unavailable):
        auth.verify(signed("a"), NOW)


async def test_an_invalid_token_fetches_no_keys(key_set: RemoteKeySet, key_server: KeyServer) -> None:
    for text in ("", "a.b.c", "é", json.dumps({"kid": "a"}), token(payload(), "s" * 32)):
        await key_set.ensure_key_for(text)
    assert key_server.asked == 0


async def test_a_withdrawn_key_ends_after_five_minutes(
    key_set: RemoteKeySet, auth: TokenAuthority, key_server: KeyServer
) -> None:
    await key_set.ensure_key_for(signed("a"))
    key_server.kids = "b"
    key_server.now += jwks.REFRESH_SECONDS
    await key_set.ensure_key_for(signed("a"))
    assert (auth.verify(signed("a"), NOW).sub, key_server.asked) == ("42", 1)
    key_server.now += 1
    await key_set.ensure_key_for(signed("a"))
    await eventually(lambda: not auth.has_key_for(signed("a")))
    with pytest.raises(Unauthorized):
        auth.verify(signed("a"), NOW)
    assert auth.verify(signed("b"), NOW).sub == "42"


@pytest.mark.parametrize("answer", [BAD["an error"], BAD["no keys"]], ids=["an error", "no keys"])
async def test_old_keys_are_not_used_while_the_url_fails_for_an_hour(
    key_set: RemoteKeySet, auth: TokenAuthority, key_server: KeyServer, answer: "type[web.Response]"
) -> None:
    await key_set.ensure_key_for(signed("a"))
    key_server.answer, key_server.now = answer(), jwks.MAX_KEY_AGE_SECONDS
    await key_set.ensure_key_for(signed("a"))
    assert auth.verify(signed("a"), NOW).sub == "42"
    await eventually(lambda: key_server.asked == 2)
    key_server.now += 1
    await key_set.ensure_key_for(signed("a"))
    with pytest.raises(Unavailable):
        auth.verify(signed("a"), NOW)
    key_server.answer, key_server.now = None, key_server.now + jwks.MIN_REFRESH_SECONDS
    await key_set.ensure_key_for(signed("a"))
    assert auth.verify(signed("a"), NOW).sub == "42"


@pytest.mark.parametrize(
    ("url", "accepted"),
    [
        ("https://keys.test/", True), ("http://127.0.0.1:8/keys", True), ("http://[::1]/keys", True),
        ("http://localhost/keys", True), ("http://keys.test/", False), ("http://127.0.0.1.keys.test/", False),
        ("http://localhost@keys.test/", False), ("file:///keys", False), ("keys.test", False),
    ],
)  # fmt: skip
def test_a_key_set_comes_by_https_or_from_this_machine(url: str, accepted: bool) -> None:  # noqa: FBT001 - a parameter
    settings = config(jwt_secret="", jwt_algorithm="ES256", jwt_jwks_url=url)
    if accepted:
        TokenAuthority(settings)
        return
    with pytest.raises(InvalidSetting, match="--jwt-jwks-url must begin with https://"):
        TokenAuthority(settings)
