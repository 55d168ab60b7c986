"""Streams and polls of named subscriptions: where they begin, how they are acknowledged, and who reads them."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer, number
from tests.waiting import eventually


async def subscribe(api: Api, uid: str, name: str = "work", **body: Any) -> dict[str, Any]:
    given = {"parameters": {"follow": uid}, **body}
    made: dict[str, Any] = await api.done("PUT", f"/v1/subscriptions/{name}", token=mint(uid), json=given)
    return made


async def read(api: Api, uid: str, framing: str = "ndjson", **more: Any) -> Consumer:
    return await api.stream({"subscription": "work"}, uid=uid, framing=framing, **more)


async def posts(api: Api, uid: str, count: int) -> list[str]:
    return [str((await api.post(uid, f"post {at}"))["id"]) for at in range(count)]


def seen(messages: list[dict[str, Any]]) -> list[str]:
    return [message["status"]["id"] for message in messages if message["kind"] == "post"]


async def ack(api: Api, uid: str, cursor: str) -> None:
    await api.done("POST", "/v1/subscriptions/work/ack", token=mint(uid), json={"cursor": cursor})


async def kept(api: Api, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = await api.done("GET", "/v1/subscriptions/work", token=mint(uid))
    return found


@pytest.mark.parametrize("framing", ["sse", "ndjson"])
async def test_a_stream_begins_behind_what_was_acked_whatever_was_received(api: Api, framing: str) -> None:
    uid = await api.user()
    made = await subscribe(api, uid)
    ids = await posts(api, uid, 5)
    async with await read(api, uid, framing) as consumer:
        await consumer.until(lambda c: len(c.events) == 5)
        assert seen(consumer.messages) == ids
        await ack(api, uid, consumer.events[1]["cursor"])
        last = consumer.cursor
    async with await read(api, uid, framing, last_event_id=last) as consumer:
        await consumer.until(lambda c: len(c.events) == 3)
        assert seen(consumer.messages) == ids[2:]
        assert consumer.of("gap") == []
    state = await kept(api, uid)
    assert number(state["cursor"]) == number(made["cursor"]) + 2
    assert state["parameters"] == {"follow": uid}
    assert state["behind"] >= 3


async def test_a_websocket_acks_and_is_told_about_a_wrong_ack(api: Api) -> None:
    uid = await api.user()
    await subscribe(api, uid)
    ids = await posts(api, uid, 3)
    async with websocket(api, uid, {"subscription": "work"}) as socket:
        messages = await receive(socket, 3)
        assert seen(messages) == ids
        cursors = [message["cursor"] for message in messages if message["kind"] == "post"]
        for cursor in cursors[1::-1]:
            await socket.send_json({"op": "ack", "cursor": cursor})
        faults: list[tuple[dict[str, Any], str]] = [
            ({"op": "ack"}, "cursor"),
            ({"op": "ack", "cursor": 5}, "cursor"),
            ({"op": "ack", "cursor": "tea"}, "cursor"),
            ({"op": "ack", "cursor": "9999999999999-0.9999999"}, "cursor"),
            ({"op": "ack", "cursor": cursors[0], "name": "work"}, "name"),
            ({"op": "update", "parameters": {"track": "tea"}}, "op"),
        ]
        for fault, param in faults:
            await socket.send_json({"id": 7, **fault})
            answer = await answer_of(socket)
            assert (answer["id"], answer["error"]["param"]) == (7, param)
        await eventually(lambda: is_at(api, uid, cursors[1]))
    async with websocket(api, uid, {"follow": uid}) as socket:
        await socket.send_json({"op": "ack", "cursor": cursors[0]})
        assert (await answer_of(socket))["error"]["param"] == "op"
        await socket.send_json({"op": "update", "parameters": {"subscription": "work"}})
        assert (await answer_of(socket))["error"]["param"] == "subscription"
    async with await read(api, uid) as consumer:
        await consumer.until(lambda c: c.events)
        assert seen(consumer.messages) == ids[2:]


async def is_at(api: Api, uid: str, cursor: str) -> bool:
    return bool((await kept(api, uid))["cursor"] == cursor)


def websocket(api: Api, uid: str, params: dict[str, str]) -> Any:
    return api.session.ws_connect("/v1/stream", params=params, headers={"Authorization": f"Bearer {mint(uid)}"})


async def receive(socket: aiohttp.ClientWebSocketResponse, count: int) -> list[dict[str, Any]]:
    """Receive messages until ``count`` posts are among them."""
    found: list[dict[str, Any]] = []
    while len(seen(found)) < count:
        found.append(await socket.receive_json())
    return found


async def answer_of(socket: aiohttp.ClientWebSocketResponse) -> dict[str, Any]:
    while (message := await socket.receive_json())["kind"] != "error":
        pass
    answer: dict[str, Any] = message
    return answer


async def test_a_poll_that_asks_again_with_the_cursor_acks_it(api: Api) -> None:
    """A loop of polls is a correct consumer: what it has not asked behind comes again."""
    uid = await api.user()
    made = await subscribe(api, uid)
    ids = await posts(api, uid, 4)
    first = await api.poll({"subscription": "work", "limit": "2"}, uid=uid)
    assert seen(first["events"]) == ids[:2]
    again = await api.poll({"subscription": "work", "limit": "2"}, uid=uid)
    assert (again["events"], again["cursor"]) == (first["events"], first["cursor"])
    assert (await kept(api, uid))["cursor"] == made["cursor"]
    second = await api.poll({"subscription": "work", "limit": "2", "cursor": first["cursor"]}, uid=uid)
    assert seen(second["events"]) == ids[2:]
    assert (await kept(api, uid))["cursor"] == first["cursor"]
    late = await api.poll({"subscription": "work", "cursor": made["cursor"]}, uid=uid)
    assert seen(late["events"]) == ids[2:], "acks only rise"
    last = await api.poll({"subscription": "work", "cursor": second["cursor"]}, uid=uid)
    assert last["events"] == []
    headers = {"Authorization": f"Bearer {mint(uid)}"}
    query = {"subscription": "work", "cursor": last["cursor"]}
    async with api.session.head("/v1/events", params=query, headers=headers) as answer:
        assert answer.status == 200
    assert (await kept(api, uid))["cursor"] == second["cursor"], "HEAD changes nothing"


async def test_a_second_connection_takes_the_subscription_over(api: Api) -> None:
    """Whatever kind it has. What is refused takes nothing over."""
    uid = await api.user()
    await subscribe(api, uid)
    async with await read(api, uid) as first:
        narrow = await api.call("GET", "/v1/stream?subscription=work", token=mint(uid, "read"))
        assert narrow.status == 403
        async with websocket(api, uid, {"subscription": "work"}) as second:
            await first.until_end()
            assert ended_by(first.messages[-1]) == ("taken_over", None)
            poll = asyncio.create_task(api.poll({"subscription": "work"}, uid=uid, wait=50))
            while (message := await second.receive_json())["kind"] != "goodbye":
                pass
            assert ended_by(message) == ("taken_over", None)
        async with await read(api, uid, "sse") as third:
            answer = await poll
            assert ended_by(answer["events"][-1]) == ("taken_over", None)
            await api.done("DELETE", "/v1/subscriptions/work", token=mint(uid))
            await third.until_end()
            assert ended_by(third.messages[-1]) == ("closed_by_user", None)


async def test_a_loop_of_polls_closes_the_stream_that_took_over(api: Api) -> None:
    """A loop that overlooks the `goodbye` of its poll comes back. Then not both may handle each event."""
    uid = await api.user()
    await subscribe(api, uid)
    page = await api.poll({"subscription": "work"}, uid=uid)
    async with await read(api, uid) as other:
        await api.poll({"subscription": "work", "cursor": page["cursor"]}, uid=uid)
        await other.until_end()
        assert ended_by(other.messages[-1]) == ("taken_over", None)


def ended_by(message: dict[str, Any]) -> tuple[str, float | None]:
    return message["code"], message["retry_after"]


async def test_an_ack_of_a_socket_does_not_move_what_was_put_again(api: Api) -> None:
    """Its second ack waits for a second. Meanwhile the user begins anew with the same name, to read all again."""
    uid = await api.user()
    made = await subscribe(api, uid)
    await posts(api, uid, 2)
    async with websocket(api, uid, {"subscription": "work"}) as socket:
        first, second = [message["cursor"] for message in await receive(socket, 2) if message["kind"] == "post"]
        await socket.send_json({"op": "ack", "cursor": first})

        async def is_acked() -> bool:
            return bool((await kept(api, uid))["cursor"] == first)

        await eventually(is_acked)
        await socket.send_json({"op": "ack", "cursor": second})
        await socket.send_json({"op": "ping"})
        while (await socket.receive_json())["kind"] != "pong":
            pass
        await api.done("DELETE", "/v1/subscriptions/work", token=mint(uid))
        await subscribe(api, uid, since=made["cursor"])
        await ack(api, uid, made["cursor"])
        assert (await kept(api, uid))["cursor"] == made["cursor"]


async def test_streams_of_one_user_with_other_names_stay(api: Api) -> None:
    uid = await api.user()
    await subscribe(api, uid)
    await subscribe(api, uid, "other")
    async with (
        await read(api, uid) as first,
        await api.stream({"subscription": "other"}, uid=uid) as second,
        await api.stream({"follow": uid}, uid=uid) as third,
    ):
        await posts(api, uid, 1)
        for consumer in (first, second, third):
            await consumer.until(lambda c: c.events)
        listed = await api.done("GET", "/v1/streams", token=mint(uid))
        described = sorted(stream["parameters"] for stream in listed["streams"])
        assert described == [f"follow={uid}", "subscription=other", "subscription=work"]


async def test_the_parameters_are_those_of_a_stream(api: Api) -> None:
    """The filters hold, changed ones from the next connection on, and saved rules as well."""
    uid = await api.user()
    await subscribe(api, uid, parameters={"rule": ["tea:tea", f"mine:coffee from:{uid}"], "explain": True})
    for message in ("green tea", "milk", "coffee"):
        await api.post(uid, message)
    async with await read(api, uid) as consumer:
        await consumer.until(lambda c: len(c.events) == 2)
        assert [event["matched"][0]["tag"] for event in consumer.events] == ["tea", "mine"]
        await subscribe(api, uid, parameters={"track": "milk"})
        await api.post(uid, "more tea")
        await consumer.until(lambda c: len(c.events) == 3)
    async with await read(api, uid) as consumer:
        await consumer.until(lambda c: c.events)
        assert [event["status"]["message"] for event in consumer.events] == ["milk"]


BAD_STREAMS = [
    ("subscription=none", 404, "not_found", "subscription"),
    ("subscription=a/b", 400, "invalid_parameter", "subscription"),
    ("subscription=", 400, "invalid_parameter", "subscription"),
    ("subscription=work&track=tea", 400, "conflicting_parameters", "track"),
    ("subscription=work&since=-1m", 400, "conflicting_parameters", "since"),
    ("subscription=work&subscription=work", 400, "conflicting_parameters", "subscription"),
]

BAD_POLLS = [
    ("subscription=work&since=-1m", 400, "conflicting_parameters", "since"),
    ("subscription=work&cursor=tea", 400, "invalid_cursor", "cursor"),
    ("subscription=work&cursor=9999999999999-0.5", 400, "invalid_cursor", "cursor"),
    ("subscription=none&cursor=1714067200000-0.1", 404, "not_found", "subscription"),
]


async def test_a_wrong_request_is_refused_by_name(api: Api, subtests: pytest.Subtests) -> None:
    uid = await api.user()
    made = await subscribe(api, uid)
    for path, bad in (("/v1/stream", BAD_STREAMS), ("/v1/events", BAD_POLLS)):
        for query, *refusal in bad:
            with subtests.test(query=query):
                assert (await api.call("GET", f"{path}?{query}", token=mint(uid))).error == tuple(refusal)
    assert (await api.call("GET", "/v1/stream/user?subscription=work", token=mint(uid))).status == 400
    async with api.session.head(
        "/v1/stream?subscription=work", headers={"Authorization": f"Bearer {mint(uid)}"}
    ) as head:
        assert head.status == 200
    other = await api.user()
    assert (await api.call("GET", "/v1/stream?subscription=work", token=mint(other))).status == 404
    assert (await kept(api, uid))["cursor"] == made["cursor"]


async def test_a_subscription_may_begin_in_the_past(api: Api) -> None:
    uid = await api.user()
    first, *rest = await posts(api, uid, 3)
    async with await api.stream({"follow": uid, "since": "-1h"}, uid=uid) as consumer:
        await consumer.until(lambda c: len(c.events) == 3)
        cursor = consumer.events[0]["cursor"]
    assert (await subscribe(api, uid, since=cursor))["cursor"] == cursor
    async with await read(api, uid) as consumer:
        await consumer.until(lambda c: len(c.events) == 2)
        assert seen(consumer.messages) == rest
    await subscribe(api, uid, "hour", since="-1h")
    async with await api.stream({"subscription": "hour"}, uid=uid) as consumer:
        await consumer.until(lambda c: len(c.events) == 3)
        assert seen(consumer.messages) == [first, *rest]


async def test_a_form_may_name_the_subscription(api: Api) -> None:
    uid = await api.user()
    await subscribe(api, uid)
    ids = await posts(api, uid, 1)
    async with await api.stream({}, uid=uid, json={"subscription": "work"}) as consumer:
        await consumer.until(lambda c: c.events)
        assert seen(consumer.messages) == ids
    body = json.dumps({"subscription": "work", "wait": 0})
    page = await api.done(
        "POST", "/v1/events", token=mint(uid), data=body, headers={"Content-Type": "application/json"}
    )
    assert seen(page["events"]) == ids
