"""Log in, refresh and log out over HTTP."""

from typing import Any

import pytest
from aiohttp import web

from stream_server.security.signing_keys import MIN_SECRET_BYTES
from stream_server.web.http import app_keys
from tests.stream_server import tokens
from tests.stream_server.web.world import PASSWORD, Answer, World


async def log_in(world: World, **body: Any) -> Answer:
    return await world.call("POST", "/v1/sessions", json=body)


def authorization(answer: Answer) -> dict[str, str]:
    return {"Authorization": f"Bearer {answer.json['token']}"}


@pytest.mark.parametrize("name", [{"login": "ann"}, {"login": "ANN"}, {"email": "Ann@example.org"}])
async def test_login_or_email_gives_a_token(world: World, name: dict[str, str]) -> None:
    ann = await world.user("ann")
    answer = await log_in(world, **name, password=PASSWORD)
    assert answer.status == 201
    assert set(answer.json) == {"token", "token_type", "expires_in", "refresh_token", "user"}
    assert (answer.json["token_type"], answer.json["expires_in"]) == ("Bearer", 3600)
    me = await world.call("GET", "/v1/users/me", headers=authorization(answer))
    assert me.json == answer.json["user"]
    assert me.json["id"] == ann


async def test_wrong_passwords_and_unknown_logins_get_the_same_answer(world: World) -> None:
    await world.user("ann")
    world.redis.hset("{core}:user:1", "id", "1")
    bob = {"users": [{"login": "bob", "name": "Bob"}]}
    await world.call("POST", "/v1/admin/users", "1", scope="admin", json=bob)
    answers = [
        await log_in(world, **name, password="wrong password")
        for name in ({"login": "ann"}, {"login": "nobody"}, {"login": "bob"}, {"email": "no@x.org"}, {"login": "!"})
    ]
    assert {answer.error for answer in answers} == {(401, "invalid_token", None)}
    assert len({answer.body for answer in answers}) == 1


async def test_unknown_logins_cost_a_hash(world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_an_invalid_log_in_is_refused_by_name(world: World, subtests: pytest.Subtests) -> None:
    for body, code, param in BAD:
        with subtests.test(body=body):
            assert (await log_in(world, **body)).error == (400, code, param)


async def test_a_refresh_token_is_used_once(world: World) -> None:
    await world.user("ann")
    first = await log_in(world, login="ann", password=PASSWORD)
    refresh = first.json["refresh_token"]
    assert len(refresh) >= MIN_SECRET_BYTES
    assert not [key for key in world.redis.keys("*") if refresh.encode() in key]
    second = await log_in(world, refresh_token=refresh)
    assert second.status == 201
    assert second.json["refresh_token"] != refresh
    assert (await world.call("GET", "/v1/users/me", headers=authorization(second))).status == 200
    assert (await log_in(world, refresh_token="made up")).error == (401, "invalid_token", None)


async def test_a_refresh_token_that_is_used_twice_ends_the_session(world: World) -> None:
    await world.user("ann")
    first = await log_in(world, login="ann", password=PASSWORD)
    second = await log_in(world, refresh_token=first.json["refresh_token"])
    thief = await log_in(world, refresh_token=first.json["refresh_token"])
    assert thief.error == (401, "token_revoked", None)
    assert (await log_in(world, refresh_token=second.json["refresh_token"])).error == (401, "invalid_token", None)
    for session in (first, second):
        refused = await world.call("GET", "/v1/users/me", headers=authorization(session))
        assert refused.error == (401, "token_revoked", None)


async def test_logging_out_ends_the_session(world: World) -> None:
    await world.user("ann")
    session = await log_in(world, login="ann", password=PASSWORD)
    renewed = await log_in(world, refresh_token=session.json["refresh_token"])
    other = await log_in(world, login="ann", password=PASSWORD)
    assert (await world.call("DELETE", "/v1/sessions", headers=authorization(renewed))).status == 204
    assert world.redis.xrevrange("{core}:log", count=1)[0][1][b"k"] == b"revoke"
    for ended in (session, renewed):
        refused = await world.call("GET", "/v1/users/me", headers=authorization(ended))
        assert refused.error == (401, "token_revoked", None), "also the access token before the refresh"
    refresh = {"refresh_token": renewed.json["refresh_token"]}
    assert (await log_in(world, **refresh)).error == (401, "invalid_token", None)
    assert (await world.call("GET", "/v1/users/me", headers=authorization(other))).status == 200


async def test_logging_out_everywhere_ends_all_sessions_and_tokens(world: World) -> None:
    ann = await world.user("ann")
    sessions = [await log_in(world, login="ann", password=PASSWORD) for _ in range(3)]
    other_token = {"Authorization": f"Bearer {tokens.fresh(ann)}"}
    assert (await world.call("DELETE", "/v1/sessions?all=true", headers=authorization(sessions[0]))).status == 204
    for headers in (*map(authorization, sessions), other_token):
        refused = await world.call("GET", "/v1/users/me", headers=headers)
        assert refused.error == (401, "token_revoked", None)
    again = await log_in(world, login="ann", password=PASSWORD)
    assert (await world.call("GET", "/v1/users/me", headers=authorization(again))).status == 200


async def test_sessions_are_listed_and_ended_one_by_one(world: World) -> None:
    await world.user("ann")
    bob = await world.user("bob")
    phone = await world.call(
        "POST", "/v1/sessions", json={"login": "ann", "password": PASSWORD}, headers={"User-Agent": "phone\t1"}
    )
    laptop = await log_in(world, login="ann", password=PASSWORD)
    listed = (await world.call("GET", "/v1/sessions", headers=authorization(laptop))).json["sessions"]
    assert [session["current"] for session in listed] == [True, False]
    assert listed[1]["agent"] == "phone1"
    path = f"/v1/sessions/{listed[1]['id']}"
    assert (await world.call("DELETE", path, bob)).error == (404, "not_found", "id")
    assert (await world.call("DELETE", path, headers=authorization(laptop))).status == 204
    assert (await world.call("DELETE", path, headers=authorization(laptop))).error == (404, "not_found", "id")
    refused = await world.call("GET", "/v1/users/me", headers=authorization(phone))
    assert refused.error == (401, "token_revoked", None)
    assert (await world.call("DELETE", "/v1/sessions/a%20b", headers=authorization(laptop))).status == 404


async def test_a_new_password_ends_all_other_sessions(world: World) -> None:
    await world.user("ann")
    mine, other = [await log_in(world, login="ann", password=PASSWORD) for _ in range(2)]
    change = {"password": PASSWORD, "new_password": "battery staple"}
    wrong = {**change, "password": "wrong"}
    path, headers = "/v1/users/me/password", authorization(mine)
    assert (await world.call("PUT", path, headers=headers, json=wrong)).error == (
        403, "wrong_password", "password",
    )  # fmt: skip
    short = {**change, "new_password": "short"}
    refused = await world.call("PUT", path, headers=headers, json=short)
    assert refused.error == (400, "invalid_parameter", "new_password")
    assert (await world.call("PUT", path, headers=headers, json=change)).status == 204
    assert (await world.call("GET", "/v1/users/me", headers=headers)).status == 200
    refused = await world.call("GET", "/v1/users/me", headers=authorization(other))
    assert refused.error == (401, "token_revoked", None)
    assert (await log_in(world, login="ann", password=PASSWORD)).status == 401
    assert (await log_in(world, login="ann", password="battery staple")).status == 201


async def test_a_session_ends_with_a_suspension_and_stays_ended(world: World) -> None:
    ann, root = await world.user("ann"), await world.user("root")
    session = await log_in(world, login="ann", password=PASSWORD)
    for method in ("PUT", "DELETE"):
        assert (await world.call(method, f"/v1/admin/suspensions/{ann}", root, scope="admin")).status == 200
    refused = await world.call("GET", "/v1/users/me", headers=authorization(session))
    assert refused.error == (401, "token_revoked", None)
    assert (await log_in(world, refresh_token=session.json["refresh_token"])).error == (401, "invalid_token", None)


async def test_too_many_log_ins_get_503(world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app[app_keys.PASSWORDS].thread, "_pending", 100)
    answer = await log_in(world, login="ann", password=PASSWORD)
    assert answer.error == (503, "unavailable", None)
    assert int(answer.headers["Retry-After"]) >= 1
