"""Webhooks: what an endpoint gets, how it acknowledges, and what follows when it fails."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from stream_server.web.webhooks.sender import Message, Sender
from tests.end_to_end.api import Answer, Api, mint
from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.crew import part_of
from tests.end_to_end.server import Server
from tests.end_to_end.webhook_endpoint import Endpoint, accept, answer, hang, reset
from tests.tls import Authority
from tests.waiting import PATIENCE, eventually

INNER = ("--webhook-networks", "127.0.0.0/8", "--webhook-timeout-seconds", "2")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server"), "--limits", "off", *INNER) as running:
        yield running


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with Endpoint() as running:
        yield running


async def deliver(api: Api, uid: str, endpoint: Endpoint, name: str = "work", **body: Any) -> dict[str, Any]:
    """Give the subscription a webhook. The endpoint verifies with its secret from then on."""
    given = {"parameters": {"follow": uid}, "deliver": {"url": endpoint.url}, **body}

    async def put() -> Answer | None:
        """Return the answer. On a busy machine the challenge may take longer than the server waits: then None."""
        got = await api.call("PUT", f"/v1/subscriptions/{name}", token=mint(uid), json=given)
        assert got.status < 300 or got.json["error"]["param"] == "deliver.url", got
        return got if got.status < 300 else None

    put_answer = await eventually(put)
    assert isinstance(put_answer, Answer)
    made: dict[str, Any] = put_answer.json
    if "secret" in made["deliver"]:
        endpoint.secrets.append(made["deliver"]["secret"])
    return made


async def try_url(api: Api, uid: str) -> dict[str, Any]:
    """Let the server send a test to the endpoint. A busy machine may not answer in time: then again."""

    async def try_once() -> dict[str, Any] | None:
        sent: dict[str, Any] = await api.done("POST", "/v1/subscriptions/work/test", token=mint(uid))
        return None if sent.get("error") == "no answer in time" else sent

    sent = await eventually(try_once, what="an answer of the endpoint")
    assert isinstance(sent, dict)
    return sent


async def kept(api: Api, uid: str, name: str = "work") -> dict[str, Any]:
    found: dict[str, Any] = await api.done("GET", f"/v1/subscriptions/{name}", token=mint(uid))
    return found


async def posts(api: Api, uid: str, count: int) -> list[str]:
    return [str((await api.post(uid, f"post {at}"))["id"]) for at in range(count)]


async def is_at(api: Api, uid: str, cursor: str) -> bool:
    return number((await kept(api, uid))["cursor"]) >= number(cursor)


async def test_an_endpoint_gets_each_event_once_and_in_order_and_its_answer_is_the_ack(
    api: Api, endpoint: Endpoint
) -> None:
    uid = await api.user()
    before = await posts(api, uid, 1)
    made = await deliver(api, uid, endpoint)
    assert endpoint.challenges  # one more for each PUT that a busy machine did not answer in time
    assert made["deliver"]["state"] == "active"
    assert made["deliver"]["secret"].startswith("whsec_")
    ids = await posts(api, uid, 5)
    await eventually(lambda: endpoint.statuses() == ids)
    await api.delete(uid, ids[0])
    await eventually(lambda: endpoint.received[-1].body["events"][-1]["kind"] == "delete")
    last = endpoint.received[-1]
    await eventually(lambda: is_at(api, uid, last.body["cursor"]))
    found = (await kept(api, uid))["deliver"]
    assert "secret" not in found
    assert found["outcomes"][0]["status"] == 204
    assert sum(one["events"] for one in found["outcomes"]) == 6
    assert (endpoint.unverified, endpoint.most_open) == (0, 1)
    assert before[0] not in endpoint.statuses()
    assert last.body["type"] == "events"
    assert last.body["subscription"] == "work"


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(answer(500), id="500"),
        pytest.param(answer(302, Location="/hook"), id="redirect", marks=pytest.mark.extended),
        pytest.param(hang, id="hangs", marks=pytest.mark.extended),
        pytest.param(reset, id="resets", marks=pytest.mark.extended),
    ],
)
async def test_a_request_that_fails_is_repeated_with_the_same_id_and_events(
    api: Api, endpoint: Endpoint, fault: Any
) -> None:
    uid = await api.user()
    await deliver(api, uid, endpoint)
    endpoint.faults = [fault]
    (first,) = await posts(api, uid, 1)
    await eventually(lambda: len(endpoint.received) == 1)
    (second,) = await posts(api, uid, 1)
    await eventually(lambda: endpoint.statuses() == [first, second])
    assert endpoint.received[0].id == endpoint.received[1].id
    assert [len(one.body["events"]) for one in endpoint.received[:2]] == [1, 1]


async def test_an_endpoint_that_is_gone_gets_nothing_until_it_is_put_again(api: Api, endpoint: Endpoint) -> None:
    uid = await api.user()
    made = await deliver(api, uid, endpoint)
    endpoint.faults = [answer(410)]
    ids = await posts(api, uid, 1)

    async def is_disabled() -> bool:
        return bool((await kept(api, uid))["deliver"]["state"] == "disabled")

    await eventually(is_disabled)
    assert (await kept(api, uid))["cursor"] == made["cursor"]
    ids += await posts(api, uid, 1)
    again = await deliver(api, uid, endpoint)
    assert "secret" not in again["deliver"]
    assert endpoint.challenges == 2
    await eventually(lambda: endpoint.statuses() == ids)


HIDDEN: dict[str, tuple[str, str, dict[str, bool] | None]] = {
    "a block": ("PUT", "/v1/users/me/blocks/{owner}", None),
    "a protection": ("PATCH", "/v1/users/me", {"protected": True}),
    "a delete": ("DELETE", "/v1/statuses/{status}", None),
}
"""What the author does, so that the owner of the webhook does not see a status any more."""


@pytest.mark.parametrize(
    "change", ["a block", *(pytest.param(one, marks=pytest.mark.extended) for one in ("a protection", "a delete"))]
)
async def test_what_is_hidden_after_a_failure_is_not_sent(api: Api, endpoint: Endpoint, change: str) -> None:
    owner, author, other = [await api.user() for _ in range(3)]
    await deliver(api, owner, endpoint, parameters={"follow": f"{author},{other}"})
    endpoint.faults = [answer(500)]
    (hidden,) = await posts(api, author, 1)
    await eventually(lambda: len(endpoint.received) == 1)
    assert hidden in str(endpoint.received[0].body), "it was sent before"
    method, path, body = HIDDEN[change]
    await api.done(method, path.format(status=hidden, owner=owner), token=mint(author), json=body)
    (seen,) = await posts(api, other, 1)
    await eventually(lambda: seen in endpoint.statuses())
    later = [event for one in endpoint.received[1:] for event in one.body["events"]]
    assert hidden not in [event["status"]["id"] for event in later if event["kind"] == "post"]
    assert [event["kind"] for event in later if event["kind"] != "post"] == ["delete"] * (change == "a delete")


async def test_a_suspended_user_sends_nothing_until_the_suspension_ends(api: Api, endpoint: Endpoint) -> None:
    """Another user with the same filter is sent the post meanwhile."""
    owner, another, author = [await api.user() for _ in range(3)]
    filters = {"follow": author}
    await deliver(api, owner, endpoint, parameters=filters)
    admin = mint(api.admin, "read write stream admin")
    async with Endpoint() as control:
        await deliver(api, another, control, parameters=filters)
        await api.done("PUT", f"/v1/admin/suspensions/{owner}", token=admin)
        (first,) = await posts(api, author, 1)
        await eventually(lambda: control.statuses() == [first])
    assert endpoint.received == []
    await api.done("DELETE", f"/v1/admin/suspensions/{owner}", token=admin)
    await deliver(api, owner, endpoint, parameters=filters)
    await eventually(lambda: endpoint.statuses() == [first])


async def test_a_deleted_account_is_sent_nothing_and_leaves_no_webhook(
    api: Api, server: Server, endpoint: Endpoint
) -> None:
    """Another user with the same filter is sent the post that comes after the deletion."""
    owner, another, author = [await api.user() for _ in range(3)]
    filters = {"follow": author}
    await deliver(api, owner, endpoint, parameters=filters)
    ids = await posts(api, author, 1)
    await eventually(lambda: endpoint.statuses() == ids, what="a server holds the webhook")
    await api.done("DELETE", f"/v1/users/{owner}", token=mint(api.admin, "read write stream admin"))
    async with Endpoint() as control:
        await deliver(api, another, control, parameters=filters)
        after = await posts(api, author, 1)
        await eventually(lambda: control.statuses() == after)
    assert endpoint.statuses() == ids
    with server.redis_client() as redis:
        assert [one for one in redis.zrange("{core}:webhooks", 0, -1) if one.startswith(owner.encode())] == []


async def test_a_batch_is_bounded_by_events_and_by_bytes(api: Api, endpoint: Endpoint) -> None:
    uid = await api.user()
    body = {"parameters": {"follow": uid}}
    token = mint(uid)
    await api.done("PUT", "/v1/subscriptions/work", token=token, json=body)
    ids = await posts(api, uid, 7)
    large = [await api.post(uid, f"large {at}", meta={"x": "y" * 4000}) for at in range(90)]
    ids += [one["id"] for one in large]
    await deliver(api, uid, endpoint, deliver={"url": endpoint.url, "batch": 3})
    await eventually(lambda: len(endpoint.statuses()) >= 9)
    await deliver(api, uid, endpoint)
    await eventually(lambda: endpoint.statuses()[-1] == ids[-1])
    sizes = [len(one.body["events"]) for one in endpoint.received]
    assert sizes[:3] == [3, 3, 3]
    assert max(sizes) > 40
    assert max(len(json.dumps(one.body["events"])) for one in endpoint.received) <= 256 * 1024 + 4096
    assert list(dict.fromkeys(endpoint.statuses())) == ids
    assert endpoint.received[0].body["more"]
    assert not endpoint.received[-1].body["more"]


async def test_a_connection_cannot_read_what_a_webhook_gets_until_it_ends(api: Api, endpoint: Endpoint) -> None:
    uid = await api.user()
    await deliver(api, uid, endpoint)
    for path in ("/v1/stream", "/v1/events"):
        refused = await api.call("GET", path, token=mint(uid), params={"subscription": "work"})
        assert refused.error == (400, "conflicting_parameters", "subscription")
    await api.done("PUT", "/v1/subscriptions/work", token=mint(uid), json={"parameters": {"follow": uid}})
    (first,) = await posts(api, uid, 1)
    polled = await api.done("GET", "/v1/events", token=mint(uid), params={"subscription": "work"})
    assert [event["status"]["id"] for event in polled["events"]] == [first]
    assert endpoint.received == []


async def test_each_part_of_a_shared_subscription_is_delivered_by_itself(api: Api, endpoint: Endpoint) -> None:
    """One part fails and waits. Meanwhile the others go on."""
    owner, *authors = [await api.user() for _ in range(5)]
    stuck = part_of(authors[0], 4)

    async def behave(request: web.Request) -> web.StreamResponse:
        return await (answer(500) if endpoint.received[-1].body["part"] == stuck else accept)(request)

    endpoint.behaviour = behave
    await deliver(api, owner, endpoint, parameters={"follow": ",".join(authors)}, parts=4)
    ids = {(await posts(api, author, 1))[0]: part_of(author, 4) for author in authors}
    others = {status for status, part in ids.items() if part != stuck}
    await eventually(lambda: {*endpoint.statuses()} == others)

    async def is_failing() -> bool:
        return bool((await kept(api, owner))["deliver"]["state"] == "failing")

    await eventually(is_failing)
    found = await kept(api, owner)
    failed = next(one for one in endpoint.received if one.answered == 500)
    assert number(found["parts"][stuck]["cursor"]) < number(failed.body["cursor"])
    assert (stuck, 500) in {(one["part"], one["status"]) for one in found["deliver"]["outcomes"]}
    endpoint.behaviour = accept
    await eventually(lambda: {*endpoint.statuses()} == {*ids})
    for one in endpoint.received:
        assert {ids[event["status"]["id"]] for event in one.body["events"]} == {one.body["part"]}
        assert one.id == f"work/{one.body['part']}/{one.body['cursor'].replace('.', ':')}"


def failing(_: str) -> str:
    raise web.HTTPInternalServerError


REPLIES: dict[str, Callable[[str], str]] = {"something else": json.dumps, "nothing": lambda _: "", "an error": failing}


@pytest.mark.parametrize("reply", REPLIES)
async def test_a_url_that_does_not_prove_itself_changes_nothing(api: Api, endpoint: Endpoint, reply: str) -> None:
    uid = await api.user()
    before = await deliver(api, uid, endpoint)
    async with Endpoint() as other:
        other.challenge_answer = REPLIES[reply]
        given = {"parameters": {"track": "tea"}, "deliver": {"url": other.url}}
        refused = await api.call("PUT", "/v1/subscriptions/work", token=mint(uid), json=given)
        assert refused.error == (400, "invalid_parameter", "deliver.url")
        assert other.challenges == 1
    found = await kept(api, uid)
    assert (found["parameters"], found["deliver"]["url"]) == (before["parameters"], endpoint.url)
    (first,) = await posts(api, uid, 1)
    await eventually(lambda: endpoint.statuses() == [first])


async def test_a_test_and_a_new_secret(api: Api, endpoint: Endpoint) -> None:
    uid = await api.user()
    made = await deliver(api, uid, endpoint)
    sent = await try_url(api, uid)
    assert (sent["status"], sent["events"]) == (204, 0)
    assert endpoint.received[-1].body == {"type": "test", "subscription": "work", "events": []}
    ids = await posts(api, uid, 1)
    await eventually(lambda: endpoint.statuses() == ids, what="the server delivers")
    changed = await api.done("POST", "/v1/subscriptions/work/secret", token=mint(uid))
    assert changed["secret"] != made["deliver"]["secret"]
    for secrets in ([changed["secret"]], [made["deliver"]["secret"]]):
        endpoint.secrets = secrets
        assert (await try_url(api, uid))["status"] == 204
    for secrets in ([changed["secret"]], [made["deliver"]["secret"]]):
        endpoint.secrets = secrets
        (latest,) = await posts(api, uid, 1)
        await eventually(partial(has_got, endpoint, latest), what="the server that delivers signs by both, too")
    endpoint.behaviour = answer(503)
    assert (await try_url(api, uid))["status"] == 503
    assert (await kept(api, uid))["deliver"]["state"] == "active", "a test is no delivery"
    assert endpoint.unverified == 0
    for path in ("test", "secret"):
        refused = await api.call("POST", f"/v1/subscriptions/none/{path}", token=mint(uid))
        assert refused.error == (404, "not_found", "subscription")


def has_got(endpoint: Endpoint, status: str) -> bool:
    return status in endpoint.statuses()


async def test_endpoints_that_hang_hold_up_no_other(api: Api, endpoint: Endpoint) -> None:
    """Ten endpoints of one user answer nothing. Meanwhile the endpoint of another gets each post as it comes."""
    uid, other = await api.user(), await api.user()
    async with AsyncExitStack() as stack:
        dead = [await stack.enter_async_context(Endpoint()) for _ in range(10)]
        for number, one in enumerate(dead):
            one.behaviour = hang
            await deliver(api, other, one, f"dead{number}", parameters={"follow": uid})
        await deliver(api, uid, endpoint)
        ids = await posts(api, uid, 1)
        await eventually(lambda: all(one.received for one in dead), what="all ten hang")
        before = sum(len(one.received) for one in dead)
        for _ in range(20):
            ids += await posts(api, uid, 1)
            await eventually(partial(has_got, endpoint, ids[-1]))
        tried = sum(len(one.received) for one in dead) - before
        assert endpoint.statuses() == ids
        assert len(endpoint.received) > 3 * tried / len(dead), "it has not waited for theirs"
        assert {one.most_open for one in dead} == {1}


@pytest.mark.extended
async def test_a_webhook_that_was_away_for_longer_than_the_log_reaches_gets_a_gap(
    tmp_path: Path, endpoint: Endpoint
) -> None:
    """The server keeps no entries in memory here, so it has only what is left of the log."""
    async with Server(tmp_path, "--ring-bytes", "0", *INNER) as server, Api(server) as api:
        uid = await api.user()
        await api.done("PUT", "/v1/subscriptions/work", token=mint(uid), json={"parameters": {"follow": uid}})
        lost = await posts(api, uid, 3)
        with server.redis_client() as redis:
            redis.xtrim("{core}:log", maxlen=1, approximate=False)
        (left,) = await posts(api, uid, 1)
        await deliver(api, uid, endpoint)
        await eventually(lambda: left in endpoint.statuses())
        (first, *others) = [event for one in endpoint.received for event in one.body["events"]]
        assert (first["kind"], first["reason"], first["count"]) == ("gap", "trimmed", len(lost) - 1)
        assert [event["status"]["id"] for event in others] == [lost[-1], left]


@pytest.mark.extended
async def test_a_gap_counts_what_a_failed_request_had(tmp_path: Path, endpoint: Endpoint) -> None:
    """The log loses the events of a request that failed, and more. The gap begins behind the last ack."""
    async with Server(tmp_path, "--ring-bytes", "0", *INNER) as server, Api(server) as api:
        uid = await api.user()
        made = await deliver(api, uid, endpoint)
        endpoint.behaviour = answer(500)
        await posts(api, uid, 1)
        await eventually(lambda: len(endpoint.received) == 1)
        lost = await posts(api, uid, 2)
        with server.redis_client() as redis:
            redis.xtrim("{core}:log", maxlen=1, approximate=False)
        endpoint.behaviour = accept
        await eventually(lambda: lost[-1] in endpoint.statuses())
        taken = [event for one in endpoint.received if one.answered < 300 for event in one.body["events"]]
        (gap,) = [event for event in taken if event["kind"] == "gap"]
        assert (gap["from"], gap["count"]) == (made["cursor"], 2)


@pytest.mark.extended
async def test_a_certificate_is_checked(tmp_path: Path) -> None:
    """One server knows the authority of the endpoint, the other does not."""
    authority = Authority(tmp_path)
    known = Server(tmp_path / "known", *INNER, variables={"SSL_CERT_FILE": str(authority.ca)}, preloaded=False)
    async with Endpoint(tls=authority.context()) as endpoint, known as server, Api(server) as api:
        uid = await api.user()
        await deliver(api, uid, endpoint)
        ids = await posts(api, uid, 2)
        await eventually(lambda: endpoint.statuses() == ids)
        strict = Sender(INNER[1], PATIENCE)
        sent = await strict.send("7", endpoint.url, Message("work/1", b"{}"), ())
        await strict.close()
        assert (sent.outcome.status, sent.outcome.error) == (None, "the TLS certificate is not valid, or TLS failed")


@pytest.mark.extended
@pytest.mark.timeout(180)
async def test_the_webhooks_of_a_killed_server_go_on_at_another(tmp_path: Path, redis_url: str) -> None:
    """The endpoint gets every post, in order. Nothing comes again of what the server has shown as acked."""
    flags = (*INNER, "--redis", redis_url)
    async with Endpoint() as endpoint, Server(tmp_path / "one", *flags) as one, Api(one) as api:
        uid = await api.user()
        await deliver(api, uid, endpoint)
        ids = await posts(api, uid, 3)
        await eventually(lambda: endpoint.statuses() == ids)
        last = endpoint.received[-1].body["cursor"]
        await eventually(lambda: is_at(api, uid, last))
        async with Server(tmp_path / "two", *flags) as two, Api(two) as other:
            assert await other.metric("webhooks_held") == 0
            one.kill()
            ids += await posts(other, uid, 3)
            await eventually(lambda: endpoint.statuses() == ids)
            assert await other.metric("webhooks_held") == 1
            found = (await kept(other, uid))["deliver"]
            assert found["state"] == "active"
