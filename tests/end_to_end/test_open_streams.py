"""Open streams over two server processes: listed, ended, prolonged, and limited."""

import json
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.server import Server
from tests.end_to_end.webhook_endpoint import Endpoint
from tests.waiting import eventually

STREAMS_PER_USER = 6
INNER = ("--webhook-networks", "127.0.0.1")
MANY = 14
"""Streams that certainly are in both processes: that all go to one happens once in 8,000 runs."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two processes. Only the number of streams is limited."""
    options = ("--workers", "2", "--limits", "on", "--streams-per-user", str(STREAMS_PER_USER), *INNER)
    with Server(tmp_path_factory.mktemp("server"), *options) as running:
        yield running


class TidyApi(Api):
    """Closes all its streams in the end."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self._streams: list[Consumer] = []

    async def stream(self, *arguments: Any, **more: Any) -> Consumer:
        self._streams.append(await super().stream(*arguments, **more))
        return self._streams[-1]

    async def __aexit__(self, *error: object) -> None:
        for stream in self._streams:
            await stream.close()
        await super().__aexit__(*error)


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    async with TidyApi(server) as made:
        yield made


def connection(stream: Consumer) -> str:
    return str(stream.messages[0]["connection"])


async def listed(api: Api, uid: str) -> list[dict[str, Any]]:
    streams: list[dict[str, Any]] = (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]
    return streams


async def until_listed(api: Api, uid: str, count: int) -> list[dict[str, Any]]:
    async def complete() -> list[dict[str, Any]]:
        found = await listed(api, uid)
        return found if len(found) == count else []

    return await eventually(complete, what=f"{count} streams in the list")


def goodbye_code(stream: Consumer) -> str:
    return str(stream.of("goodbye")[0]["code"])


async def test_a_user_lists_streams_of_all_processes(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    streams = [await api.stream({"track": f"tea{n}"}, uid=ann) for n in range(STREAMS_PER_USER)]
    await api.stream({"track": "tea0"}, uid=bob)
    await api.post(bob, "tea0 tea1 tea2")
    for stream in streams[:3]:
        await stream.until(lambda s: s.events)
    found = await until_listed(api, ann, STREAMS_PER_USER)
    assert [one["connection"] for one in found] == [connection(stream) for stream in streams]
    assert [one["parameters"] for one in found] == [f"track=tea{n}" for n in range(STREAMS_PER_USER)]
    assert [one["delivered"] for one in found] == [1, 1, 1, 0, 0, 0]
    assert {(one["live"], one["path"]) for one in found} == {(True, "/v1/stream")}
    assert [one["since"] for one in found] == [stream.messages[0]["cursor"] for stream in streams]
    for stream in streams:
        await stream.close()
    await eventually(lambda: _is_empty(api, ann), what="an empty list")


async def _is_empty(api: Api, uid: str) -> bool:
    return not await listed(api, uid)


async def test_a_user_ends_each_stream(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    streams = [await api.stream({"track": "tea"}, uid=ann) for _ in range(STREAMS_PER_USER)]
    await until_listed(api, ann, STREAMS_PER_USER)
    for stream in streams:
        path = f"/v1/streams/{connection(stream)}"
        assert (await api.call("DELETE", path, token=mint(bob))).error == (404, "not_found", "connection")
        assert (await api.call("DELETE", path, token=mint(ann))).status == 204
        assert goodbye_code(await stream.until_end()) == "closed_by_user"
    assert (await api.call("DELETE", "/v1/streams/none", token=mint(ann))).error == (404, "not_found", "connection")


async def test_an_operator_lists_and_ends_each_stream(api: Api) -> None:
    """Of all users and processes. The end is in the audit log, and final for the client."""
    ann, bob, admin = await api.user(), await api.user(), mint(await api.user(), "admin")
    streams = [await api.stream({"track": f"tea{n}"}, uid=(ann, bob)[n % 2]) for n in range(2 * STREAMS_PER_USER)]
    await api.post(bob, "tea0 tea3")
    for stream in (streams[0], streams[3]):
        await stream.until(lambda s: s.events)
    login = (await api.done("GET", f"/v1/users/{ann}", token=mint(ann)))["login"]
    found, before = list[dict[str, Any]](), ""
    while True:
        page = await api.done("GET", f"/v1/admin/streams?sort=delivered&count=5{before}", token=admin)
        assert (page["total"], page["complete"], len(page["streams"]) <= 5) == (len(streams), True, True)
        found += page["streams"]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert {one["connection"] for one in found} == {connection(stream) for stream in streams}
    assert [one["delivered"] for one in found] == [1, 1, *[0] * (len(streams) - 2)]
    assert {one["parameters"] for one in found[:2]} == {"track=tea0", "track=tea3"}
    assert {(one["kind"], one["behind"], one["buffer_bytes"], one["reader"]) for one in found} == {("ndjson", 0, 0, "")}
    assert {one["worker"] for one in found} <= {1, 2}
    own = (await api.done("GET", f"/v1/admin/streams?sort=opened&user={login.upper()}", token=admin))["streams"]
    assert [one["connection"] for one in own] == [connection(stream) for stream in streams[-2::-2]]
    assert {(one["user"]["id"], one["user"]["login"]) for one in own} == {(ann, login)}
    sums = await api.done("GET", "/v1/admin/streams/users?sort=delivered", token=admin)
    assert (sums["total"], sums["complete"]) == (len(streams), True)
    expected = {(ann, len(streams) // 2, 1), (bob, len(streams) // 2, 1)}
    assert {(one["user"]["id"], one["streams"], one["delivered"]) for one in sums["users"]} == expected
    of_ann = await api.done("GET", f"/v1/admin/streams/users?user={login}", token=admin)
    assert (of_ann["total"], [one["user"]["id"] for one in of_ann["users"]]) == (len(streams) // 2, [ann])
    for stream in streams:
        path = f"/v1/admin/streams/{connection(stream)}"
        assert (await api.call("DELETE", path, token=mint(ann))).error == (403, "insufficient_scope", None)
        assert (await api.call("DELETE", path, token=admin)).status == 204
        assert goodbye_code(await stream.until_end()) == "closed_by_operator"
        assert stream.of("goodbye")[0]["retry_after"] is None
    deeds = (await api.done("GET", "/v1/admin/audit", token=admin))["deeds"][: len(streams)]
    told = [("end_stream", (ann, bob)[nth % 2], connection(stream)) for nth, stream in enumerate(streams)]
    assert [(deed["deed"], deed["on"], deed["details"]) for deed in reversed(deeds)] == told


async def test_what_an_operator_asks_for_in_vain(api: Api) -> None:
    admin = mint(await api.user(), "admin")
    for method, what, error in (
        ("DELETE", "/none", (404, "not_found", "connection")), ("GET", "?user=nobody_1", (404, "not_found", "user")),
        ("GET", "/users?user=nobody_1", (404, "not_found", "user")),
        ("GET", "?user=no-login", (400, "invalid_parameter", "user")),
        ("GET", "?before=x", (400, "invalid_cursor", "before")),
        ("GET", "?sort=size", (400, "invalid_parameter", "sort")),
        ("GET", "/users?sort=opened", (400, "invalid_parameter", "sort")),
        ("GET", "?count=201", (400, "invalid_parameter", "count")),
    ):  # fmt: skip
        assert (await api.call(method, f"/v1/admin/streams{what}", token=admin)).error == error
    assert (await api.call("GET", "/v1/admin/streams", token=mint(await api.user()))).error[0] == 403


async def test_a_subscription_is_taken_over_from_another_process(api: Api) -> None:
    """Each connection ends the one before it, wherever that is, and begins behind what was acked there."""
    ann = await api.user()
    await api.done("PUT", "/v1/subscriptions/work", token=mint(ann), json={"parameters": {"follow": ann}})
    earlier: Consumer | None = None
    for at in range(MANY):
        stream = await api.stream({"subscription": "work"}, uid=ann)
        if earlier is not None:
            assert goodbye_code(await earlier.until_end()) == "taken_over"
        await api.post(ann, f"post {at}")
        await stream.until(lambda s: s.events)
        assert [event["status"]["message"] for event in stream.events] == [f"post {at}"]
        ack = {"cursor": stream.events[-1]["cursor"]}
        await api.done("POST", "/v1/subscriptions/work/ack", token=mint(ann), json=ack)
        earlier = stream


async def test_a_stream_goes_on_with_a_new_token(api: Api) -> None:
    """All streams outlive the token that opened them, miss nothing, and end with the new token.

    The tokens live for some seconds, and longer on a slow machine: there are 40 requests before the first one ends.
    """
    ann, began = await api.user(), time.time()
    await (await api.stream({"track": "tea"})).close()
    seconds = 4 + 60 * (time.time() - began)
    first_ends, second = time.time() + seconds, mint(ann, ttl=2 * seconds)
    streams = [
        await api.stream({"track": "tea"}, token=mint(ann, ttl=first_ends - time.time()))
        for _ in range(STREAMS_PER_USER)
    ]
    left_behind = await api.stream({"track": "tea"}, token=mint(await api.user(), ttl=first_ends - time.time()))
    await until_listed(api, ann, STREAMS_PER_USER)
    for stream in streams:
        path = f"/v1/streams/{connection(stream)}/token"
        assert (await api.call("POST", path, token=mint(await api.user()))).status == 404
        assert (await api.call("POST", path, token=mint(ann, "read"))).error == (403, "insufficient_scope", None)
        assert set(await api.done("POST", path, token=second)) == {"expires"}
    assert time.time() < first_ends, "the machine became far slower"
    assert goodbye_code(await left_behind.until_end()) == "token_expired"
    posted = await api.post(ann, "tea")
    for stream in streams:
        await stream.until(lambda s: s.received == [("post", posted["id"])])
        assert goodbye_code(await stream.until_end()) == "token_expired"


async def test_a_firehose_needs_its_scope_in_the_new_token_too(api: Api) -> None:
    ann = await api.user()
    streams = [await api.stream({"firehose": "true"}, uid=ann) for _ in range(STREAMS_PER_USER)]
    await until_listed(api, ann, STREAMS_PER_USER)
    for stream in streams:
        path = f"/v1/streams/{connection(stream)}/token"
        refused = await api.call("POST", path, token=mint(ann, "read stream"))
        assert refused.error == (403, "insufficient_scope", None)
        await stream.close()


async def test_one_more_stream_closes_the_oldest_over_all_processes(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    other = await api.stream({"track": "tea"}, uid=bob)
    streams = [await api.stream({"track": "tea"}, uid=ann) for _ in range(MANY)]
    for stream in streams[: MANY - STREAMS_PER_USER]:
        assert goodbye_code(await stream.until_end()) == "too_many_streams"
    found = await until_listed(api, ann, STREAMS_PER_USER)
    assert [one["connection"] for one in found] == [connection(stream) for stream in streams[-STREAMS_PER_USER:]]
    async with Endpoint() as endpoint:  # what is read for webhooks, the newest of all, takes no place
        for name in ("one", "two"):
            body = {"parameters": {"track": "tea"}, "deliver": {"url": endpoint.url}}
            await api.done("PUT", f"/v1/subscriptions/{name}", token=mint(ann), json=body)
        posted = await api.post(bob, "tea")
        await eventually(lambda: endpoint.statuses() == [posted["id"]] * 2)
        for stream in streams[-STREAMS_PER_USER:]:
            await stream.until(lambda one: one.received == [("post", posted["id"])])
    assert [one["connection"] for one in await listed(api, ann)] == [one["connection"] for one in found]
    assert not any(stream.ended for stream in (other, *streams[-STREAMS_PER_USER:]))


async def test_v1_1_closes_the_oldest_with_code_7(api: Api) -> None:
    ann = await api.user()
    headers = {"Authorization": f"Bearer {mint(ann)}"}
    path = "/1.1/statuses/sample.json"
    answers = [await api.session.get(path, headers=headers) for _ in range(STREAMS_PER_USER + 1)]
    rest = await answers[0].content.read()
    assert json.loads(rest)["disconnect"]["code"] == 7
    for answer in answers:
        answer.close()


async def takes_nothing_over(api: Api, streams: list[Consumer]) -> None:
    """A stream that is refused leaves its subscription to the reader before it. The last of ``streams`` reads one."""
    bob, given = await api.user(), {"parameters": {"track": "tea"}}
    await api.done("PUT", "/v1/subscriptions/work", token=mint(bob), json=given)
    await streams.pop().close()

    async def opens() -> bool:
        try:
            streams.append(await api.stream({"subscription": "work"}, uid=bob))
        except AssertionError:
            return False
        return True

    await eventually(opens, what="the place of a stream that ended")
    refused = await api.call("GET", "/v1/stream?subscription=work", token=mint(bob))
    assert refused.error == (429, "rate_limited", None)
    await api.post(bob, "tea")
    await streams[-1].until(lambda consumer: consumer.events)
    assert not streams[-1].of("goodbye")


async def test_streams_of_an_address_and_in_all_are_limited(server: Server, tmp_path_factory: Any) -> None:
    options = ("--limits", "dialect_connects=0", "--streams-per-address", "3")
    with Server(tmp_path_factory.mktemp("own"), *options) as own:
        async with TidyApi(own) as api:
            streams = [await api.stream({"track": "tea"}, uid=await api.user()) for _ in range(3)]
            ann = await api.user()
            refused = await api.call("GET", "/v1/stream?track=tea", token=mint(ann))
            assert refused.error == (429, "rate_limited", None)
            await takes_nothing_over(api, streams)
            assert int(refused.headers["Retry-After"]) >= 1
            dialect = await api.call("GET", "/1.1/statuses/sample.json", token=mint(ann))
            assert (dialect.status, "Retry-After" in dialect.headers) == (420, True)
            await streams[0].close()

            async def opens() -> bool:
                answer = await api.session.get("/v1/stream?track=tea", headers={"Authorization": f"Bearer {mint(ann)}"})
                answer.close()
                return answer.status == 200

            await eventually(opens, what="the place of a stream that ended")
