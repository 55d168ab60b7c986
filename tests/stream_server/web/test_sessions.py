"""Log in, refresh, log out."""

from typing import Any

import pytest
from aiohttp import web

from stream_server.security.tokens import MIN_SECRET_BYTES
from stream_server.web.http import app_keys
from tests.stream_server import tokens
from tests.stream_server.web.world import PASSWORD, Answer, World


async def log_in(world: World, **body: Any) -> Answer:
    """Log in once."""
    return await world.call("POST", "/v1/sessions", json=body)


def bearer(answer: Answer) -> dict[str, str]:
    """Return the header with the token of a log-in."""
    return {"Authorization": f"Bearer {answer.json['token']}"}


@pytest.mark.parametrize("name", [{"login": "ann"}, {"login": "ANN"}, {"email": "Ann@example.org"}])
async def test_login_or_email_gives_a_token(world: World, name: dict[str, str]) -> None:
    """201 with the user and a token for read, write and stream, valid for an hour."""
    ann = await world.user("ann")
    answer = await log_in(world, **name, password=PASSWORD)
    assert answer.status == 201
    assert set(answer.json) == {"token", "token_type", "expires_in", "refresh_token", "user"}
    assert (answer.json["token_type"], answer.json["expires_in"]) == ("Bearer", 3600)
    me = await world.call("GET", "/v1/users/me", headers=bearer(answer))
    assert me.json == answer.json["user"]
    assert me.json["id"] == ann


async def test_wrong_passwords_and_wrong_logins_sound_the_same(world: World) -> None:
    """Byte for byte, so clients cannot probe for users or for accounts without password."""
    await world.user("ann")
    admin = {"Authorization": f"Bearer {tokens.fresh('1', 'admin')}"}
    world.redis.hset("{core}:user:1", "id", "1")
    await world.call("POST", "/v1/admin/users", json={"users": [{"login": "bob", "name": "Bob"}]}, headers=admin)
    answers = [
        await log_in(world, **name, password="wrong password")
        for name in ({"login": "ann"}, {"login": "nobody"}, {"login": "bob"}, {"email": "no@x.org"}, {"login": "!"})
    ]
    assert {answer.error for answer in answers} == {(401, "invalid_token", None)}
    assert len({answer.body for answer in answers}) == 1


async def test_an_unknown_login_costs_a_hash_too(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each failed log-in does the same work once."""
    await world.user("ann")
    hashed: list[str] = []
    monkeypatch.setattr(app[app_keys.PASSWORDS], "_verify_hash", lambda one, password: hashed.append(one))
    await log_in(world, login="ann", password="wrong password")
    await log_in(world, login="nobody", password="wrong password")
    assert len(hashed) == 2


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({}, "missing_parameter", "login"),
    ({"password": PASSWORD}, "missing_parameter", "login"),
    ({"login": "ann"}, "missing_parameter", "password"),
    ({"login": "ann", "email": "a@b", "password": PASSWORD}, "conflicting_parameters", "email"),
    ({"refresh_token": "x", "password": PASSWORD}, "conflicting_parameters", "password"),
    ({"login": "ann", "password": 5}, "invalid_parameter", "password"),
    ({"login": "ann", "password": "p" * 257}, "invalid_parameter", "password"),
    ({"login": ["ann"], "password": PASSWORD}, "invalid_parameter", "login"),
    ({"refresh_token": ""}, "invalid_parameter", "refresh_token"),
    ({"login": "ann", "password": PASSWORD, "scope": "admin"}, "unknown_parameter", "scope"),
]


async def test_a_bad_log_in_names_the_member(world: World, subtests: pytest.Subtests) -> None:
    """Each is a 400 that names the member."""
    for body, code, param in BAD:
        with subtests.test(body=body):
            assert (await log_in(world, **body)).error == (400, code, param)


async def test_a_refresh_token_is_used_once(world: World) -> None:
    """It gives the next tokens; a second use is refused; Redis never stores its text."""
    await world.user("ann")
    first = await log_in(world, login="ann", password=PASSWORD)
    refresh = first.json["refresh_token"]
    assert len(refresh) >= MIN_SECRET_BYTES
    assert not [key for key in world.redis.keys("*") if refresh.encode() in key]
    second = await log_in(world, refresh_token=refresh)
    assert second.status == 201
    assert second.json["refresh_token"] != refresh
    assert (await world.call("GET", "/v1/users/me", headers=bearer(second))).status == 200
    assert (await log_in(world, refresh_token=refresh)).error == (401, "invalid_token", None)
    assert (await log_in(world, refresh_token="made up")).error == (401, "invalid_token", None)


async def test_logging_out_ends_the_token_and_its_refresh_token(world: World) -> None:
    """204 and an entry on the log for the streams; both tokens are then refused as revoked."""
    await world.user("ann")
    session = await log_in(world, login="ann", password=PASSWORD)
    other = await log_in(world, login="ann", password=PASSWORD)
    assert (await world.call("DELETE", "/v1/sessions", headers=bearer(session))).status == 204
    assert world.redis.xrevrange("{core}:log", count=1)[0][1][b"k"] == b"revoke"
    (revoked,) = world.redis.keys("{core}:revoked:*")
    assert world.redis.ttl(revoked) > session.json["expires_in"], "remembered for as long as the refresh token lives"
    refused = await world.call("GET", "/v1/users/me", headers=bearer(session))
    assert refused.error == (401, "token_revoked", None)
    refresh = {"refresh_token": session.json["refresh_token"]}
    assert (await log_in(world, **refresh)).error == (401, "token_revoked", None)
    assert (await world.call("GET", "/v1/users/me", headers=bearer(other))).status == 200


async def test_a_flood_of_log_ins_is_sent_away(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If too many hashes wait, a log-in gets 503 with the time to retry."""
    monkeypatch.setattr(app[app_keys.PASSWORDS], "_pending", 100)
    answer = await log_in(world, login="ann", password=PASSWORD)
    assert answer.error == (503, "unavailable", None)
    assert int(answer.headers["Retry-After"]) >= 1
