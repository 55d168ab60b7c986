"""The requests about webhooks: what is refused, what is shown, and what they cost their user."""

from typing import Any

import pytest
from aiohttp import web

from stream_server.store.social.webhook_state import DeliveryOutcome, Standing, WebhookState
from stream_server.store.social.webhooks import WAITING_MS, Report, Step
from stream_server.store.store import Store
from stream_server.web.http import app_keys
from tests.challenge_endpoint import challenge_endpoint
from tests.redis_process import RedisProcess
from tests.stream_server.web.world import Refusal, World

PATH = "/v1/subscriptions/work"


def body(deliver: Any) -> dict[str, Any]:
    return {"parameters": {"track": "tea"}, "deliver": deliver}


def sent() -> dict[str, Any]:
    return body({"url": challenge_endpoint()})


def bad(deliver: Any, param: str | None, code: str = "invalid_parameter") -> Refusal:
    return body(deliver), 400, code, param


NO_SUMMARY = ("invalid_parameter", "summary")

BAD: list[Refusal] = [
    bad("https://a.example", "deliver"),
    bad({}, "deliver.url", "missing_parameter"),
    bad({"url": 5}, "deliver.url"),
    bad({"url": "tea"}, "deliver.url"),
    bad({"url": "https://a:b@a.example/"}, "deliver.url"),
    bad({"url": "https://10.0.0.1/"}, "deliver.url"),
    bad({"url": "https://a.example", "batch": 0}, "deliver.batch"),
    bad({"url": "https://a.example", "batch": 101}, "deliver.batch"),
    bad({"url": "https://a.example", "batch": "5"}, "deliver.batch"),
    bad({"url": "https://a.example", "paused": "yes"}, "deliver.paused"),
    bad({"url": "https://a.example", "secret": "x"}, "deliver.secret", "unknown_parameter"),
    (body({"url": "https://a.example"}) | {"parameters": {"track": "tea", "summary": 60}}, 400, *NO_SUMMARY),
]


async def test_a_wrong_webhook_is_refused_by_name_and_changes_nothing(world: World, subtests: pytest.Subtests) -> None:
    ann = await world.user("ann")
    await world.refuses(subtests, "PUT", PATH, ann, BAD)


async def test_the_secret_is_shown_once_and_stands_nowhere_else(world: World, caplog: pytest.LogCaptureFixture) -> None:
    ann = await world.user("ann")
    made = await world.call("PUT", PATH, ann, json=sent())
    shown = made.json
    secret = shown["deliver"].pop("secret")
    assert (made.status, secret[:6], shown["deliver"]["state"]) == (201, "whsec_", "active")
    answers = [
        await world.call("PUT", PATH, ann, json=sent()),
        await world.call("GET", PATH, ann),
        await world.call("GET", "/v1/subscriptions", ann),
        await world.call("POST", f"{PATH}/test", ann),
        await world.call("GET", "/metrics"),
    ]
    assert [answer for answer in answers if secret.encode() in answer.body] == []
    assert secret not in caplog.text
    assert answers[1].json == shown | {"used": answers[1].json["used"]}


async def test_a_repeated_request_shows_the_secret_of_the_first(world: World) -> None:
    """Whoever lost the answer may ask again with the same key."""
    ann = await world.user("ann")
    again = {"headers": {"Idempotency-Key": "one"}}
    made, repeated = [await world.call("PUT", PATH, ann, json=sent(), **again) for _ in range(2)]
    assert made.json["deliver"]["secret"] == repeated.json["deliver"]["secret"]
    first, second = [await world.call("POST", f"{PATH}/secret", ann, **again | {"json": None}) for _ in range(2)]
    assert first.error == (409, "duplicate", "Idempotency-Key"), "another request had this key"
    assert second.status == 409
    key = {"headers": {"Idempotency-Key": "two"}}
    first, second = [await world.call("POST", f"{PATH}/secret", ann, **key) for _ in range(2)]
    assert first.json == second.json
    assert first.json["secret"] != made.json["deliver"]["secret"]


async def test_it_is_shown_how_deliveries_go(world: World, app: web.Application) -> None:
    ann = await world.user("ann")
    await world.call("PUT", PATH, ann, json=sent())
    store: Store = app[app_keys.STORE]
    (held,) = (await store.webhooks.claim("one", 60_000, 5)).claimed
    outcomes = (DeliveryOutcome(1_800_000_000_000, 7, 3, None, "no connection"), DeliveryOutcome(1, 2, 1, 500))
    for state, step, shown in (
        (WebhookState.ACTIVE, Step.HOLD, "failing"), (WebhookState.PAUSED, Step.HOLD, "paused"),
        (WebhookState.DISABLED, Step.STOP, "disabled"),
    ):  # fmt: skip
        standing = Standing(state, 2, 1_800_000_000_000, 1_800_000_004_000, None)
        report = Report(held, held.cursor, step, 60_000, standing, outcomes if step is Step.STOP else ())
        assert None not in await store.webhooks.report([report])
        found = (await world.call("GET", PATH, ann)).json["deliver"]
        assert (found["state"], found["failures"]) == (shown, 2)
    assert found["failing_since"] == "2027-01-15T08:00:00.000Z"
    assert found["next_attempt"] == "2027-01-15T08:00:04.000Z"
    first = {"sent": "2027-01-15T08:00:00.000Z", "milliseconds": 7, "events": 3, "error": "no connection"}
    assert found["outcomes"][0] == first
    assert found["outcomes"][1]["status"] == 500


async def test_a_webhook_that_no_process_has_room_for_is_shown_as_waiting(
    world: World, app: web.Application, redis_server: RedisProcess
) -> None:
    ann = await world.user("ann")
    path = "/v1/subscriptions"
    made = await world.call("PUT", PATH, ann, json=sent())
    assert made.json["deliver"]["state"] == "active", "not yet"
    with redis_server.client() as raw:
        raw.zincrby("{core}:webhooks", -2 * WAITING_MS, f"{ann} work")
    claims = app[app_keys.STORE].webhooks.claim
    assert (await claims("full", 60_000, 0)).waiting == 1
    assert (await world.call("GET", PATH, ann)).json["deliver"]["state"] == "waiting"
    assert (await world.call("GET", path, ann)).json["subscriptions"][0]["deliver"]["state"] == "waiting"
    assert (await claims("free", 60_000, 5)).waiting == 0
    assert (await world.call("GET", PATH, ann)).json["deliver"]["state"] == "active"


@pytest.mark.parametrize("parts", [None, 3])
async def test_a_paused_webhook_is_sent_nothing_until_the_next_put(
    world: World, app: web.Application, parts: int | None
) -> None:
    """To pause asks for no challenge, and takes the webhook from the process that delivers it. Its cursor stays."""
    ann, store = await world.user("ann"), app[app_keys.STORE]
    awake = {**sent(), **({} if parts is None else {"parts": parts})}
    paused = {**sent(), "deliver": {**sent()["deliver"], "paused": True}}
    made = await world.call("PUT", PATH, ann, json=awake)
    claims = (await store.webhooks.claim("one", 60_000, 5)).claimed
    assert len(claims) == (parts or 1)
    answer = await world.call("PUT", PATH, ann, json=paused)
    assert (answer.status, answer.json["deliver"]["state"], "secret" in answer.json["deliver"]) == (
        200,
        "paused",
        False,
    )
    reports = [Report(held, held.cursor, Step.HOLD, 60_000, Standing(), ()) for held in claims]
    assert await store.webhooks.report(reports) == [None] * len(claims)
    assert (await store.webhooks.claim("one", 60_000, 5)).claimed == []
    woken = await world.call("PUT", PATH, ann, json=awake)
    assert (woken.json["deliver"]["state"], woken.json["cursor"]) == ("active", made.json["cursor"])
    assert len((await store.webhooks.claim("one", 60_000, 5)).claimed) == (parts or 1)


async def test_an_url_proves_itself_before_it_pauses_and_before_it_wakes(world: World) -> None:
    """Else a pause would be a way around the challenge."""
    ann, silent = await world.user("ann"), "http://127.0.0.1:9/"
    refused = await world.call("PUT", PATH, ann, json=body({"url": silent, "paused": True}))
    assert refused.error == (400, "invalid_parameter", "deliver.url")
    assert (await world.call("GET", PATH, ann)).status == 404
    with_pause = {**sent()["deliver"], "paused": True}
    assert (await world.call("PUT", PATH, ann, json=body(with_pause))).json["deliver"]["state"] == "paused"
    assert (await world.call("PUT", PATH, ann, json=body({"url": silent, "paused": True}))).status == 400
    assert (await world.call("GET", PATH, ann)).json["deliver"]["url"] == with_pause["url"]


async def test_a_put_without_a_webhook_ends_it(world: World) -> None:
    ann = await world.user("ann")
    await world.call("PUT", PATH, ann, json=sent())
    ended = await world.call("PUT", PATH, ann, json={"parameters": {"track": "tea"}})
    assert "deliver" not in ended.json
    for path in ("test", "secret"):
        refused = await world.call("POST", f"{PATH}/{path}", ann)
        assert refused.error == (404, "not_found", "subscription")
    again = await world.call("PUT", PATH, ann, json=sent())
    assert again.json["deliver"]["secret"].startswith("whsec_")


class TestLimits:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"webhooks_per_user": 2, "limits": "webhook_tests=5"}

    async def test_a_user_has_few_webhooks_and_few_challenges(self, world: World) -> None:
        ann, bob = await world.user("ann"), await world.user("bob")
        paths = [f"/v1/subscriptions/n{number}" for number in range(6)]
        answers = [await world.call("PUT", path, ann, json=sent()) for path in paths]
        assert [answer.status for answer in answers] == [201, 201, 413, 413, 413, 429]
        assert answers[2].error == (413, "too_many", None)
        assert (await world.call("POST", f"{paths[0]}/test", ann)).status == 429
        assert (await world.call("PUT", paths[0], ann, json=sent())).status == 200, "it is active: no challenge"
        assert (await world.call("PUT", paths[0], bob, json=sent())).status == 201

    async def test_to_pause_costs_nothing_and_to_wake_costs_a_challenge(self, world: World) -> None:
        ann = await world.user("ann")
        with_pause = body({**sent()["deliver"], "paused": True})
        asked = [sent(), *[with_pause] * 6, *[one for _ in range(5) for one in (sent(), with_pause)]]
        answers = [(await world.call("PUT", PATH, ann, json=one)).status for one in asked]
        assert answers == [201, *[200] * 6, *[200, 200] * 4, 429, 200]

    async def test_a_put_that_wakes_a_webhook_before_its_time_counts(self, world: World, app: web.Application) -> None:
        ann = await world.user("ann")
        store: Store = app[app_keys.STORE]
        answers = []
        for number in range(6):
            answers.append((await world.call("PUT", PATH, ann, json=sent())).status)
            standing, outcomes = Standing(WebhookState.ACTIVE, 1, 1, 2, None), (DeliveryOutcome(1, 2, 1, 500),)
            for held in (await store.webhooks.claim(f"holder{number}", 60_000, 5)).claimed:
                wait = Report(held, held.cursor, Step.WAIT, 60_000, standing, outcomes)
                assert None not in await store.webhooks.report([wait])
        assert answers == [201, 200, 200, 200, 200, 429]


class TestWithoutWebhooks:
    @pytest.fixture
    def settings(self) -> dict[str, Any]:
        return {"webhooks_per_user": 0}

    async def test_they_are_refused(self, world: World) -> None:
        ann = await world.user("ann")
        refused = await world.call("PUT", PATH, ann, json=sent())
        assert refused.error == (400, "invalid_parameter", "deliver")
        assert (await world.call("PUT", PATH, ann, json={"parameters": {"track": "tea"}})).status == 201
