"""The limits of bytes: what a write counts, what they refuse, and what they never refuse."""

import json
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from stream_server.store import keys
from stream_server.store.idempotency import SERVER_TTL_MS
from stream_server.web.http.request_limits import (
    ENTRY_BYTES,
    LIMITS,
    LOG_BYTES_SHARE,
    MIN_LOG_BYTES,
    WRITE_BYTES_SHARE,
)
from stream_server.web.limits.rate_limits import LOG_BYTES, WRITE_BYTES
from tests.stream_server.web.world import PASSWORD, World

MAX_WRITE_BYTES, MAX_LOG_BYTES = 60_000, 40_000

POST = {"message": "tea", "meta": {"filler": "x" * 1000}}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"limits": f"write_bytes={MAX_WRITE_BYTES} log_bytes={MAX_LOG_BYTES} statuses=0", "log_max_bytes": 0}


def _appended(world: World) -> int:
    """The bytes of the log."""
    return sum(len(entry) + 1 + sum(map(len, fields.values())) for entry, fields in world.redis.xrange(keys.LOG))


async def _post_until_refused(world: World, uid: str, body: dict[str, Any]) -> int:
    """Return how many posts were accepted."""
    for number in range(1000):
        answer = await world.call("POST", "/v1/statuses", uid, json=body)
        if answer.status != 201:
            assert answer.error == (429, "rate_limited", None)
            return number
    raise AssertionError("no limit")


async def test_what_a_write_appends_is_counted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    before = _appended(world)
    posted = await _post_until_refused(world, ann, POST)
    each = (_appended(world) - before) / posted
    assert MAX_LOG_BYTES <= posted * each < MAX_LOG_BYTES + each, "the last one may go beyond the limit"
    group = {"name": "tea", "kind": "public"}
    assert (await world.call("POST", "/v1/groups", ann, json=group)).status == 429, "all routes have this account"
    assert (await world.call("POST", "/v1/groups", bob, json=group)).status == 201


async def test_what_a_write_leaves_in_redis_is_counted(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(bob)
    path = f"/v1/users/me/favorites/{status}"  # which appends nothing
    found = [(await world.call("PUT", path, ann)).status for _ in range(MAX_WRITE_BYTES // ENTRY_BYTES + 2)]
    assert found == [200] * (MAX_WRITE_BYTES // ENTRY_BYTES) + [429] * 2
    assert (await world.call("PUT", path, bob)).status == 200
    listed = {"name": "tea", "description": "x" * 200}
    bodies = [ENTRY_BYTES + len(json.dumps(listed))] * (MAX_WRITE_BYTES // (ENTRY_BYTES + len(json.dumps(listed))))
    answers = [(await world.call("POST", "/v1/lists", bob, json=listed)).status for _ in bodies]
    assert answers.count(429) <= 2, "the body counts besides"


async def test_a_small_redis_takes_fewer_bytes_of_each_user(world: World, app: web.Application) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    status = await world.status(bob)
    app[LIMITS].redis_bytes = lambda: WRITE_BYTES_SHARE * ENTRY_BYTES * 4
    path = f"/v1/users/me/favorites/{status}"
    found = [(await world.call("PUT", path, ann)).status for _ in range(5)]
    assert found == [200] * 4 + [429]


@pytest.mark.parametrize(
    ("log_bytes", "memory", "expected"),
    [
        (2**30, 0, 2**30 // LOG_BYTES_SHARE),
        (2**30, 2**28, 2**27 // LOG_BYTES_SHARE),
        (0, 2**28, 2**27 // LOG_BYTES_SHARE),
        (2**20, 2**28, MIN_LOG_BYTES),
        (0, 2**22, MIN_LOG_BYTES),
        (0, 0, 10**12),
    ],
)
def test_one_user_has_a_part_of_the_log(app: web.Application, log_bytes: int, memory: int, expected: int) -> None:
    limits = app[LIMITS]
    limits._config = replace(limits._config, limits=f"log_bytes={10**12}", log_max_bytes=log_bytes)
    limits.redis_bytes = lambda: memory
    assert limits.maxima()[LOG_BYTES.name] == expected


async def _use_up(world: World, app: web.Application, uid: str) -> None:
    """Use up both limits of bytes."""
    for limit, maximum in ((WRITE_BYTES, MAX_WRITE_BYTES), (LOG_BYTES, MAX_LOG_BYTES)):
        await app[LIMITS]._limiter.use(limit, uid, maximum, maximum)
        app[LIMITS]._limiter.charge(limit, uid, maximum, maximum)


async def test_no_limit_of_bytes_refuses_what_takes_away_or_protects(world: World, app: web.Application) -> None:
    ann, bob, cyd = [await world.user(login) for login in ("ann", "bob", "cyd")]
    mine, theirs = await world.status(ann), await world.status(bob)
    for path in (f"/v1/users/me/likes/{theirs}", f"/v1/users/me/following/{bob}", f"/v1/users/me/blocks/{cyd}"):
        assert (await world.call("PUT", path, ann)).status == 200
    await _use_up(world, app, ann)
    profile, follows = "/v1/users/me", "/v1/users/me/following"
    body: Any
    for method, path, body in (
        ("POST", "/v1/statuses", POST), ("PUT", f"/v1/users/me/likes/{mine}", None),
        ("DELETE", f"/v1/users/me/blocks/{cyd}", None), ("PATCH", profile, {"protected": False}),
        ("PATCH", profile, {"protected": True, "bio": "tea"}), ("POST", follows, {"follow": [cyd], "unfollow": [bob]}),
    ):  # fmt: skip
        assert (await world.call(method, path, ann, json=body)).error == (429, "rate_limited", None), path
    for method, path, body in (
        ("DELETE", f"/v1/users/me/likes/{theirs}", None), ("DELETE", f"/v1/statuses/{mine}", None),
        ("POST", follows, {"unfollow": [bob]}), ("PUT", f"/v1/users/me/mutes/{bob}", None),
        ("PUT", f"/v1/users/me/blocks/{bob}", None), ("PATCH", profile, {"protected": True}),
        ("POST", "/v1/reports", {"user": cyd, "reason": "spam"}),
        ("PUT", "/v1/users/me/password", {"password": PASSWORD, "new_password": "another horse"}),
    ):  # fmt: skip
        answer = await world.call(method, path, ann, json=body)
        assert answer.status in {200, 201, 204}, (path, answer.body)
    await _use_up(world, app, bob)
    assert (await world.call("DELETE", "/v1/sessions?all=true", bob)).status == 204


async def test_beyond_a_limit_a_clients_key_is_kept_for_a_minute(world: World, app: web.Application) -> None:
    """Else the writes that are never refused would fill Redis with keys."""
    ann, bob = await world.user("ann"), await world.user("bob")
    await _use_up(world, app, ann)
    for uid, other in ((ann, bob), (bob, ann)):
        path, headers = f"/v1/users/me/mutes/{other}", {"Idempotency-Key": "k"}
        assert [(await world.call("PUT", path, uid, headers=headers)).status for _ in range(2)] == [200] * 2
    prefix = keys.key_for("request", "")
    kept = {uid: [*world.redis.scan_iter(f"{prefix}c:{uid}:*".encode())] for uid in (ann, bob)}
    (of_ann,), (of_bob,) = kept[ann], kept[bob]
    assert world.redis.pttl(of_ann) <= SERVER_TTL_MS < world.redis.pttl(of_bob)
