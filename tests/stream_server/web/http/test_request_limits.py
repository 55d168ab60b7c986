"""Limits as a client meets them: what is counted, what the answers tell, and that each slot is freed."""

import asyncio
from contextlib import ExitStack
from typing import Any

import pytest
from aiohttp import web

from stream_server.runtime.fair_queue import FairQueue
from stream_server.store.social.sessions import SignIn
from stream_server.web.http import app_keys, request_limits
from stream_server.web.http.request_limits import LIMITS, StreamSlot
from stream_server.web.limits import rate_limits
from stream_server.web.routes import ROUTE_TABLE
from tests.stream_server.web.world import PASSWORD, World
from tests.waiting import eventually

WRITES, WRITE_BYTES, LOG_BYTES = 50, 60_000, 40_000

LOG_INS_OF_ADDRESS = 8


@pytest.fixture
def settings() -> dict[str, Any]:
    limits = (
        f"reads=40 writes={WRITES} log_ins=3 lookups=5 sign_ups=4 anonymous=30 rule_trials=10 follows=3 reports=2 "
        f"write_bytes={WRITE_BYTES} log_bytes={LOG_BYTES} log_ins_of_address={LOG_INS_OF_ADDRESS} files=3"
    )
    return {"limits": limits, "operations": "token"}


async def statuses_of(*calls: Any) -> list[int]:
    return [answer.status for answer in await asyncio.gather(*calls)]


async def test_the_limit_is_told_before_it_is_hit(world: World) -> None:
    ann = await world.user("ann")
    first = await world.call("GET", "/v1/users/me", ann)
    assert (first.headers["RateLimit-Limit"], first.headers["RateLimit-Remaining"]) == ("40", "39")
    assert 0 < int(first.headers["RateLimit-Reset"]) <= 60


async def test_two_hundred_parallel_requests_are_counted_exactly(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    calls = (world.call("PUT", f"/v1/users/me/mutes/{bob}", ann) for _ in range(200))
    found = await statuses_of(*calls)
    assert sorted(found) == [200] * WRITES + [429] * (200 - WRITES)
    refused = await world.call("PUT", f"/v1/users/me/mutes/{bob}", ann)
    assert refused.error == (429, "rate_limited", None)
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert refused.headers["RateLimit-Remaining"] == "0"
    assert (await world.call("PUT", f"/v1/users/me/mutes/{ann}", bob)).status == 200
    assert (await world.call("GET", "/v1/users/me", ann)).status == 200, "reads are counted by themselves"


async def test_administrators_and_importers_are_not_limited(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    path = f"/v1/users/me/mutes/{bob}"
    found = await statuses_of(*(world.call("PUT", path, ann, scope="write ingest") for _ in range(WRITES + 10)))
    found += await statuses_of(*(world.call("PUT", path, ann, scope="write admin") for _ in range(WRITES + 10)))
    assert set(found) == {200}
    reads = [world.call("GET", "/v1/users/me", ann, scope="read ingest") for _ in range(41)]
    assert 429 in await statuses_of(*reads), "the scope ingest is for writes"


async def test_eight_ingests_of_a_user_run_at_once(world: World, app: web.Application) -> None:
    ann, ingests = await world.user("ann"), app[LIMITS].ingests
    headers = {"Content-Type": "application/x-ndjson"}
    with ExitStack() as running:
        for _ in range(8):
            running.enter_context(StreamSlot(ingests.counts, ann))
        refused = await world.call("POST", "/v1/ingest", ann, scope="ingest", data=b"", headers=headers)
        assert refused.error == (429, "rate_limited", None)
    answer = await world.call("POST", "/v1/ingest", ann, scope="ingest", data=b"", headers=headers)
    assert (answer.status, answer.body, len(ingests)) == (200, b"", 0)


def test_each_write_that_takes_a_key_counts_bytes() -> None:
    """Redis keeps an outcome for each of them, so no route may be without a limit of bytes."""
    keyed = [row for row in ROUTE_TABLE if row.accepts_idempotency_key]
    assert [row for row in keyed if rate_limits.WRITE_BYTES not in row.rate_limits] == []


async def test_reports_and_contacts_are_counted(world: World) -> None:
    ann, bob, *others = [await world.user(login) for login in ("ann", "bob", "carl", "dora")]
    reported = [
        await world.call("POST", "/v1/reports", ann, json={"user": uid, "reason": "spam"}) for uid in (bob, *others)
    ]
    assert [answer.status for answer in reported] == [201, 201, 429]
    made = (await world.call("POST", "/v1/lists", ann, json={"name": "tea"})).json["id"]
    added = [await world.call("PUT", f"/v1/lists/{made}/members/{uid}", ann) for uid in (bob, *others)]
    assert [answer.status for answer in added] == [200] * 3
    group = (await world.call("POST", "/v1/groups", bob, json={"name": "tea", "kind": "public"})).json["id"]
    for path in (f"/v1/users/me/following/{bob}", f"/v1/groups/{group}/members/me"):
        assert (await world.call("PUT", path, ann)).error == (429, "rate_limited", None)


async def test_guesses_are_refused_before_a_password_is_hashed(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.user("ann")
    guess = {"login": "ann", "password": "a wrong one"}
    found = [(await world.call("POST", "/v1/sessions", json=guess)).status for _ in range(5)]
    assert found == [401] * 3 + [429] * 2
    right = await world.call("POST", "/v1/sessions", json={"login": "ANN", "password": PASSWORD})
    assert right.error == (429, "rate_limited", None)
    other = await world.call("POST", "/v1/sessions", json={"login": "bob", "password": PASSWORD})
    assert other.status == 401


async def test_an_address_makes_redis_count_few_invented_accounts(world: World) -> None:
    for number in range(LOG_INS_OF_ADDRESS + 10):
        await world.call("POST", "/v1/sessions", json={"login": f"invented{number}", "password": "a wrong one"})
    assert len(world.redis.keys("rates:{*@*")) == LOG_INS_OF_ADDRESS


async def test_right_passwords_are_not_counted(world: World) -> None:
    await world.user("ann")
    right = {"login": "ann", "password": PASSWORD}
    assert {(await world.call("POST", "/v1/sessions", json=right)).status for _ in range(10)} == {201}


async def test_wrong_sign_in_codes_count_as_log_ins_of_the_address(world: World, app: web.Application) -> None:
    sign_ins, ann = app[app_keys.STORE].sign_ins, await world.user("ann")
    for _ in range(LOG_INS_OF_ADDRESS + 1):
        code = await sign_ins.issue(SignIn(ann, frozenset({"read"})))
        assert (await world.call("POST", "/v1/sessions", json={"code": code})).status == 201, "good codes do not count"
    guesses = [await world.call("POST", "/v1/sessions", json={"code": "a" * 43}) for _ in range(LOG_INS_OF_ADDRESS + 1)]
    assert [answer.status for answer in guesses] == [401] * LOG_INS_OF_ADDRESS + [429]


async def test_sign_ups_and_questions_for_names_are_counted_by_address(world: World) -> None:
    for login in ("ann", "bob", "cid", "dan"):
        await world.user(login)
    new = {"login": "eve", "name": "Eve", "email": "eve@example.org", "password": PASSWORD}
    assert (await world.call("POST", "/v1/users", json=new)).error == (429, "rate_limited", None)
    asked = [await world.call("GET", "/v1/users/available?email=ann@example.org") for _ in range(6)]
    assert [answer.status for answer in asked] == [200] * 5 + [429]


SOCKET = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip
ANONYMOUS_REFUSALS: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/v1/nothing", {}, 404),
    ("GET", "/a" * 100, {}, 404),
    ("PATCH", "/v1/users", {}, 405),
    ("GET", "/healthz?x=1", {}, 400),
    ("GET", "/v1/users/me", {}, 401),
    ("GET", "/v1/users/me", {"Authorization": "Bearer wrong"}, 401),
    ("GET", "/v1/users/me?token=x", {}, 400),
    ("GET", "/metrics", {"Authorization": "Bearer a-guess"}, 401),
    ("POST", "/v1/users", {"Content-Type": "text/plain"}, 415),
    ("POST", "/1.1/statuses/filter.json", {"Content-Type": "text/plain"}, 401),
    ("GET", "/v1/stream", {**SOCKET, "Sec-WebSocket-Version": "8"}, 426),
    ("GET", "/v1/stream", SOCKET, 101),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), ANONYMOUS_REFUSALS)
async def test_every_refusal_without_a_token_is_counted_by_address(
    world: World, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    """What opens a WebSocket without a token counts too: nobody has proved anything yet."""
    found = []
    for _ in range(31):
        async with world.session.request(method, path, headers=headers) as answer:
            found.append(answer.status)
    limited = 420 if path.startswith("/1.1/") else 429
    assert found == [status] * 30 + [limited]


@pytest.mark.parametrize("limit", ["MAX_UNPROVEN_OF_ADDRESS", "MAX_UNPROVEN"])
async def test_half_forms_that_may_bring_a_token_are_limited_by_address_and_in_all(
    world: World, app: web.Application, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    most = 8  # below the limit of requests without a token, which counts these forms too
    monkeypatch.setattr(request_limits, limit, most)
    limits, path = app[LIMITS], "/1.1/statuses/filter.json"
    fields = "Host: a\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n"
    half = f"POST {path} HTTP/1.1\r\n{fields}\r\ntrack=".encode()
    writers = []
    for _ in range(most):
        _, writer = await asyncio.open_connection(*address)
        writer.write(half)
        writers.append(writer)
    await eventually(lambda: limits.unproven.total() == most)
    async with world.session.post(path, data={"track": "tea"}) as answer:
        assert answer.status == 420
    for writer in writers:
        writer.close()
    await eventually(lambda: not limits.unproven)
    async with world.session.post(path, data={"track": "tea"}) as answer:
        assert answer.status == 401


@pytest.mark.parametrize("path", ["/docs", "/console/app.js", "/console/docs/page.js"])
async def test_files_are_counted_by_address(world: World, path: str) -> None:
    first = await world.call("GET", path)
    known = {"If-None-Match": first.headers["ETag"]}
    found = [first.status, *[(await world.call("GET", path, headers=known)).status for _ in range(3)]]
    assert found == [200, 304, 304, 429]


async def test_an_address_that_leads_to_a_page_is_counted_as_a_file(world: World) -> None:
    found = [(await world.call("GET", "/docs/", allow_redirects=False)).status for _ in range(4)]
    assert found == [302, 302, 302, 429]


async def test_a_refused_scope_is_counted_by_user(world: World) -> None:
    ann = await world.user("ann")
    found = [(await world.call("GET", "/v1/users/me", ann, scope="stream")).status for _ in range(41)]
    assert found == [403] * 40 + [429]
    assert (await world.call("GET", "/v1/nothing")).status == 404, "her address has done nothing without a token"


async def test_one_preview_at_a_time_and_the_slot_is_freed(world: World, app: web.Application) -> None:
    ann = await world.user("ann")
    slots = app[LIMITS].previews
    body = {"rule": "tea", "minutes": 5}
    with StreamSlot(slots.counts, ann):
        assert (await world.call("POST", "/v1/rules/preview", ann, json=body)).error == (429, "rate_limited", None)
    for _ in range(3):
        answer = await world.call("POST", "/v1/rules/preview", ann, json=body)
        assert answer.status == 200, answer.body
    assert len(slots) == 0


async def test_a_poll_frees_its_slot_when_the_client_leaves(world: World, app: web.Application) -> None:
    ann = await world.user("ann")
    slots = app[LIMITS].polls
    polling = asyncio.create_task(world.call("GET", "/v1/events?track=tea&wait=30", ann))
    await eventually(lambda: len(slots) == 1)
    polling.cancel()
    await eventually(lambda: not len(slots))


async def test_follows_are_counted_one_by_one_also_in_a_batch(world: World) -> None:
    ann = await world.user("ann")
    others = [await world.user(login) for login in ("bob", "cid", "dan")]
    batch = {"follow": others}
    assert (await world.call("POST", "/v1/users/me/following", ann, json=batch)).status == 200
    refused = await world.call("PUT", f"/v1/users/me/following/{others[0]}", ann)
    assert refused.error == (429, "rate_limited", None)


async def test_a_stream_over_a_limit_is_refused_when_no_turn_to_wait_comes(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = await statuses_of(*(world.call("GET", "/v1/stream") for _ in range(31)))
    assert sorted(found) == [401] * 30 + [429]
    monkeypatch.setattr(app[LIMITS], "openings", FairQueue(0, "too many", 0.05))
    monkeypatch.setattr(app[LIMITS].refusal_delay, "seconds", lambda _: 0.01)
    assert (await world.call("GET", "/v1/stream")).error[:2] == (429, "rate_limited")
