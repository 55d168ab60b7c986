"""Sign-in links: a code begins one session, once, with the scopes of the code."""

import asyncio
from typing import Any

import jwt
import pytest
from aiohttp import web

from stream_server.store.social.sessions import CODE_TTL_SECONDS, SignIn
from stream_server.web.http import app_keys
from tests.stream_server.web.world import PASSWORD, Answer, World

REFUSED = {"login": "login", "email": "email", "password": "password", "refresh_token": "code"}
"""The member that is refused beside a code."""

SCOPES = frozenset({"read", "write", "stream", "firehose", "admin"})


@pytest.fixture
async def code(app: web.Application, world: World) -> str:
    return await app[app_keys.STORE].sign_ins.issue(SignIn(await world.user("ann"), SCOPES))


async def exchange(world: World, **body: Any) -> Answer:
    return await world.call("POST", "/v1/sessions", json=body)


def scopes(answer: Answer) -> set[str]:
    return set(jwt.decode(answer.json["token"], options={"verify_signature": False})["scope"].split())


async def test_the_session_keeps_the_scopes_of_the_code(world: World, code: str) -> None:
    first = await exchange(world, code=code)
    assert (first.status, first.json["user"]["login"]) == (201, "ann")
    assert scopes(first) == SCOPES
    for _ in range(2):
        first = await exchange(world, refresh_token=first.json["refresh_token"])
        assert scopes(first) == SCOPES
    headers = {"Authorization": f"Bearer {first.json['token']}"}
    assert (await world.call("GET", "/v1/admin/audit", headers=headers)).status == 200
    (session,) = (await world.call("GET", "/v1/sessions", headers=headers)).json["sessions"]
    assert session["agent"].startswith("Python")
    plain = await exchange(world, login="ann", password=PASSWORD)
    assert scopes(plain) == scopes(await exchange(world, refresh_token=plain.json["refresh_token"])) == SCOPES - {
        "firehose", "admin"
    }  # fmt: skip


async def test_a_code_works_once_also_at_the_same_time(world: World, code: str) -> None:
    answers = await asyncio.gather(*(exchange(world, code=code) for _ in range(5)))
    assert sorted(answer.status for answer in answers) == [201, 401, 401, 401, 401]
    refused = await exchange(world, code=code)
    assert refused.error == (401, "invalid_token", "code")
    assert "stream-server sign-in" in refused.json["error"]["message"]


async def test_a_code_ends_by_time_and_redis_has_its_digest_only(world: World, code: str) -> None:
    (key,) = world.redis.keys("{core}:sign_in:*")
    assert code.encode() not in key + world.redis.get(key)
    assert 0 < world.redis.ttl(key) <= CODE_TTL_SECONDS
    world.redis.pexpire(key, 0)
    assert (await exchange(world, code=code)).status == 401


async def test_a_suspended_user_gets_no_session(world: World, code: str) -> None:
    ann = (await world.call("GET", "/v1/users/by-login/ann", await world.user("bob"))).json["id"]
    await world.call("PUT", f"/v1/admin/suspensions/{ann}", await world.user("root"), scope="admin")
    assert (await exchange(world, code=code)).error == (403, "suspended", None)


@pytest.mark.parametrize("other", ["login", "email", "password", "refresh_token"])
async def test_a_code_stands_alone(world: World, code: str, other: str) -> None:
    assert (await exchange(world, code=code, **{other: "x" * 8})).error == (
        400,
        "conflicting_parameters",
        REFUSED[other],
    )
    assert (await exchange(world, code=code)).status == 201, "a refused body uses nothing up"
