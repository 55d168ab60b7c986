"""Named subscriptions over HTTP: making, listing, acknowledging and removing them."""

import asyncio
import math
from typing import Any

import pytest
from aiohttp import web

from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.log.retention import LogSize
from stream_server.store.social.parts import Membership
from stream_server.store.social.subscriptions import Ack, Subscriptions
from stream_server.web.http import app_keys
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.limits.rate_limits import LOG_BYTES
from stream_server.web.streaming import stream_plan
from stream_server.web.streaming.acks import Acks
from tests.stream_server.web.world import Refusal, World
from tests.waiting import eventually

PATH = "/v1/subscriptions/work"
TEA = {"parameters": {"track": "tea"}}


def bad(parameters: Any, code: str, param: str | None) -> Refusal:
    return {"parameters": parameters}, 400, code, param


BAD: list[Refusal] = [
    ({}, 400, "missing_parameter", "parameters"),
    ([], 400, "malformed_body", None),
    ({**TEA, "part": 2}, 400, "unknown_parameter", "part"),
    *[({**TEA, "parts": parts}, 400, "invalid_parameter", "parts") for parts in (0, 65, -1, 2.5, "2", [2])],
    ({**TEA, "since": 5}, 400, "invalid_parameter", "since"),
    ({**TEA, "since": "tea"}, 400, "invalid_cursor", "since"),
    ({**TEA, "since": "2999-01-01"}, 400, "invalid_parameter", "since"),
    ({**TEA, "since": "9999999999999-0.1"}, 400, "invalid_cursor", "since"),
    bad("track=tea", "invalid_parameter", "parameters"),
    bad({}, "missing_parameter", "track"),
    bad({"kinds": "post"}, "missing_parameter", "track"),
    bad({"trck": "tea"}, "unknown_parameter", "trck"),
    bad({"track": {"a": 1}}, "invalid_parameter", "track"),
    bad({"track": "tea", "since": "-1m"}, "invalid_parameter", "parameters.since"),
    bad({"subscription": "other"}, "invalid_parameter", "parameters.subscription"),
    bad({"track": "tea", "explain": "yes"}, "invalid_parameter", "explain"),
    bad({"rule": "tea OR"}, "invalid_parameter", "rule"),
    bad({"rule": "from:nobody_1"}, "invalid_parameter", "rule"),
    bad({"follow": "nobody_1"}, "invalid_parameter", "follow"),
    bad({"sample": 1, "track": "tea"}, "conflicting_parameters", "sample"),
    bad({"track": "tea", "wait": 1}, "unknown_parameter", "wait"),
]


async def test_a_subscription_is_made_read_changed_and_removed(world: World) -> None:
    ann, bob = await world.user("ann"), await world.user("bob")
    body = {"parameters": {"follow": [ann, "bob"], "explain": True}, "since": "-1h"}
    made = await world.call("PUT", PATH, ann, json=body)
    assert made.status == 201
    assert made.json["parameters"] == {"follow": f"{ann},bob", "explain": "true"}
    assert (await world.call("GET", PATH, ann)).json == made.json
    changed = await world.call("PUT", PATH, ann, json=TEA)
    assert (changed.status, changed.json["parameters"]) == (200, {"track": "tea"})
    assert changed.json["cursor"] == made.json["cursor"]
    assert (await world.call("GET", "/v1/subscriptions", ann)).json == {
        "subscriptions": [(await world.call("GET", PATH, ann)).json]
    }
    assert (await world.call("GET", "/v1/subscriptions", bob)).json == {"subscriptions": []}
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", PATH, {}), ("DELETE", PATH, {}), ("POST", f"{PATH}/ack", {"json": {"cursor": "0-0.0"}}),
    ]  # fmt: skip
    for method, path, more in calls:
        assert (await world.call(method, path, bob, **more)).error == (404, "not_found", "subscription")
        named = path.replace("work", "a%20b")
        assert (await world.call(method, named, ann, **more)).error == (400, "invalid_parameter", "subscription")
        narrow = await world.call(method, path, ann, scope="read write", **more)
        assert narrow.error == (403, "insufficient_scope", None)
    assert (await world.call("DELETE", PATH, ann)).status == 204
    assert (await world.call("GET", PATH, ann)).error == (404, "not_found", "subscription")


async def test_a_wrong_body_is_refused_by_name_and_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    await world.status(ann)
    await world.refuses(subtests, "PUT", PATH, ann, BAD)
    assert (await world.call("PUT", PATH, ann, json={"parameters": {"firehose": True}})).error == (
        403, "insufficient_scope", None,
    )  # fmt: skip
    await world.call("PUT", PATH, ann, json=TEA)
    wrong: list[Refusal] = [
        ({}, 400, "missing_parameter", "cursor"),
        ({"cursor": "tea"}, 400, "invalid_cursor", "cursor"),
        ({"cursor": "1714067200000-0"}, 400, "invalid_cursor", "cursor"),
        ({"cursor": "9999999999999-0.1"}, 400, "invalid_cursor", "cursor"),
        ({"cursor": "0-0.0", "part": 1}, 400, "unknown_parameter", "part"),
    ]
    await world.refuses(subtests, "POST", f"{PATH}/ack", ann, wrong)


async def test_a_user_has_a_hundred(world: World) -> None:
    ann = await world.user("ann")
    for at in range(100):
        assert (await world.call("PUT", f"/v1/subscriptions/n{at}", ann, json=TEA)).status == 201
    assert (await world.call("PUT", PATH, ann, json=TEA)).error == (413, "too_many", None)
    assert (await world.call("PUT", "/v1/subscriptions/n5", ann, json=TEA)).status == 200


async def test_how_far_behind_a_subscription_is(world: World, app: web.Application) -> None:
    """The hub of these tests has its own log, whose head is set here."""
    ann, hub = await world.user("ann"), app[app_keys.HUB]
    await world.status(ann)
    await world.call("PUT", PATH, ann, json=TEA)
    kept = await app[app_keys.STORE].subscriptions.get(ann, "work")
    at = kept.cursor
    hub.live.head = at
    hub.now_ms = lambda: at.ms + 100_000
    app[app_keys.LOG_TRIMMER].log_size = LogSize(first_ms=at.ms - 1000, kept_seconds=600.0)

    async def shown() -> tuple[Any, ...]:
        answer = (await world.call("GET", PATH, ann)).json
        return answer["behind"], answer["behind_seconds"], answer.get("kept_seconds")

    assert await shown() == (0, 0, None)
    hub.live.head = at._replace(ms=at.ms + 90_000, n=at.n + 7)
    assert await shown() == (7, 90, 500)
    app[app_keys.LOG_TRIMMER].log_size = LogSize(first_ms=at.ms + 60_000, kept_seconds=50.0)
    assert await shown() == (7, 30, 0)
    app[app_keys.LOG_TRIMMER].log_size = LogSize()
    assert await shown() == (7, 90, None)
    await world.call("PUT", PATH.replace("work", "start"), ann, json={**TEA, "since": "0-0.0"})
    for first_ms, *seconds in ((at.ms - 1000, 91, 499), (0, 0, 600)):  # the trimmer saw no entry yet
        app[app_keys.LOG_TRIMMER].log_size = LogSize(first_ms=first_ms, kept_seconds=600.0)
        answer = (await world.call("GET", PATH.replace("work", "start"), ann)).json
        assert [answer[name] for name in ("behind", "behind_seconds", "kept_seconds")] == [at.n + 7, *seconds]


async def test_a_wrong_ack_takes_no_other_along(world: World, app: web.Application) -> None:
    """Acks of a subscription are joined to the highest. One above the head is sent alone, because it may be wrong."""
    ann = await world.user("ann")
    await world.status(ann)
    await world.call("PUT", PATH, ann, json={**TEA, "since": "-1h"})
    head = await app[app_keys.STORE].log.head()
    app[app_keys.HUB].live.head = head
    cursors = [head.cursor, f"{head.ms}-{head.seq}.{head.n + 1}", f"{head.ms + 1}-0.1", "1-0.1", head.cursor]
    acks = [world.call("POST", f"{PATH}/ack", ann, json={"cursor": cursor}) for cursor in cursors]
    answers = await asyncio.gather(*acks)
    assert [answer.status for answer in answers] == [204, 400, 400, 400, 204]
    assert {answer.error for answer in answers[1:4]} == {(400, "invalid_cursor", "cursor")}
    assert (await world.call("GET", PATH, ann)).json["cursor"] == head.cursor


class TestWithLimits:
    """Requests of an address take turns, and users are charged for what they append."""

    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"limits": "polls=1000"}

    async def test_many_acks_at_once_take_two_commands(
        self, world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Beside other addresses, one runs four requests at a time. An ack that waits leaves its turn to others."""
        ann, calls, entered = await world.user("ann"), list[int](), list[str]()
        may_answer, ack, wait = asyncio.Event(), Subscriptions.ack, Acks.ack

        async def counted(self: Subscriptions, acks: Any) -> Any:
            calls.append(len(acks))
            await may_answer.wait()
            return await ack(self, acks)

        async def noted(self: Acks, one: Ack) -> None:
            entered.append(one.uid)
            await wait(self, one)

        await world.call("PUT", PATH, ann, json=TEA)
        app[LIMITS].turns._shared_until = math.inf  # as if another address sent requests, too
        monkeypatch.setattr(Subscriptions, "ack", counted)
        monkeypatch.setattr(Acks, "ack", noted)
        sent = {"json": {"cursor": "0-0.0"}}
        acks = [asyncio.create_task(world.call("POST", f"{PATH}/ack", ann, **sent)) for _ in range(60)]
        await eventually(lambda: len(entered) == 60)
        may_answer.set()
        assert {answer.status for answer in await asyncio.gather(*acks)} == {204}
        assert calls == [1, 1]

    async def test_who_takes_over_pays_for_the_entry_that_ends_the_reader(
        self, world: World, app: web.Application
    ) -> None:
        ann = await world.user("ann")
        await world.call("PUT", PATH, ann, json=TEA)

        def left() -> int:
            known = app[LIMITS]._limiter.use_known(LOG_BYTES, ann, app[LIMITS].maxima()[LOG_BYTES.name], 0)
            assert known is not None
            return known.remaining

        async def poll(more: str = "") -> int:
            before = left()
            answer = await world.call("GET", f"/v1/events?subscription=work&wait=0{more}", ann)
            assert answer.status == 200
            return before - left()

        await world.status(ann)
        app[app_keys.HUB].live.head = await app[app_keys.STORE].log.head()
        assert await poll() == 0
        cost = await poll()
        ((_, entry),) = world.redis.xrevrange("{core}:log", count=1)
        assert entry[b"k"] == b"stream"
        assert cost > len(entry[b"e"])
        assert await poll("&cursor=0-0.0") == 0


async def test_a_share_waits_until_this_process_has_all_of_its_cursors(
    world: World, app: web.Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that is live before the cursor of one of its parts would get again what is handled of this part."""
    monkeypatch.setattr(stream_plan, "HEAD_WAIT_SECONDS", 0.05)
    ann, store, shares = await world.user("ann"), app[app_keys.STORE], []
    await store.subscriptions.put(ann, "work", {"track": "tea"}, LOG_START, IdempotencyKey.generate(), parts=2)
    for member in ("a", "b"):
        joining = await store.shared_subscriptions.join(Membership(ann, "work", member, member), 9000, None)
        shares.append(Membership(ann, "work", member, member))
        await store.shared_subscriptions.join(shares[-1], 9000, joining.share)
    head = await store.log.head()
    assert head > app[app_keys.HUB].head
    await store.subscriptions.ack([Ack(ann, "work", head, 0, "b")])
    await store.shared_subscriptions.renew([(one, 0) for one in shares])
    path = "/v1/events?subscription=work&worker=c&wait=0"
    assert (await world.call("GET", path, ann)).error == (503, "unavailable", None)
    kept = (await world.call("GET", PATH, ann)).json
    assert [part["worker"] for part in kept["parts"]] == [None, None], "who is refused takes nothing"
    app[app_keys.HUB].live.head = head
    assert (await world.call("GET", path, ann)).status == 200
