"""Streams that count: in each format, on a subscription, and beside other filters."""

import uuid
from typing import Any

import pytest

from stream_server.client import Client, Summary
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.end_to_end.socket_consumer import open_socket

Message = dict[str, Any]


def new_word() -> str:
    return f"w{uuid.uuid4().hex[:10]}"


def total(messages: list[Message]) -> int:
    return sum(message["count"] for message in messages)


@pytest.mark.parametrize("framing", [pytest.param("sse", marks=pytest.mark.extended), "ndjson"])
async def test_counts_come_instead_of_events(api: Api, framing: str) -> None:
    """Posts count for the rules that match them. Each message begins where the one before ended."""
    uid, word = await api.user(), new_word()
    rules = [("rule", f"hot:{word} tea"), ("rule", f"{word} milk"), ("summary", "1")]
    async with await api.stream(rules, framing=framing) as consumer:
        for text in ("tea", "milk", "tea and milk", "water"):
            posted = await api.post(uid, f"{word} {text}")
        await api.delete(uid, posted["id"])
        await consumer.until(lambda c: total(c.of("count")) == 3)
        counts = consumer.of("count")
        assert {message["kind"] for message in consumer.messages} <= {"hello", "count", "heartbeat"}
        assert [message["from"] for message in counts[1:]] == [message["to"] for message in counts[:-1]]
        assert counts[0]["from"] == consumer.messages[0]["cursor"]
        of_rules = [(one["id"], one["tag"], one["count"]) for message in counts for one in message["counts"]]
        assert sum(count for rule, tag, count in of_rules if (rule, tag) == ("r1", "hot")) == 2
        assert sum(count for rule, tag, count in of_rules if (rule, tag) == ("r2", "")) == 2


@pytest.mark.extended
async def test_a_web_socket_counts_too(api: Api) -> None:
    """An update keeps the summary: it names the same period, or is refused."""
    uid, word = await api.user(), new_word()
    async with await open_socket(api, f"track={word}&summary=1") as socket:
        await api.post(uid, word)
        await socket.until(lambda s: total(s.of("count")) == 1)
        refused = await socket.ask("update", parameters={"track": f"{word}x"})
        assert refused["error"]["param"] == "summary"
        changed = await socket.ask("update", parameters={"track": f"{word}x", "summary": 1})
        assert changed["kind"] == "effective"
        await api.post(uid, f"{word}x")
        await api.post(uid, word)
        await socket.until(lambda s: total(s.of("count")) == 2)


@pytest.mark.extended
async def test_a_summary_of_the_past_goes_on_live(api: Api) -> None:
    """It counts what the log still has, without what was deleted, and then what comes."""
    uid, word = await api.user(), new_word()
    start = await api.head()
    posted = [await api.post(uid, f"{word} {n}") for n in range(5)]
    await api.delete(uid, posted[0]["id"])
    async with await api.stream({"track": word, "summary": "1", "since": start}) as consumer:
        await consumer.until(lambda c: total(c.of("count")) == 4)
        await api.post(uid, word)
        await consumer.until(lambda c: total(c.of("count")) == 5)


@pytest.mark.extended
async def test_a_subscription_keeps_the_place_of_a_summary(api: Api) -> None:
    """What was not acknowledged is counted again."""
    uid, word = await api.user(), new_word()
    token, path = mint(uid), f"/v1/subscriptions/{word}"
    await api.done("PUT", path, token=token, json={"parameters": {"track": word, "summary": 1}})
    await api.post(uid, word)
    async with await api.stream({"subscription": word}, uid=uid) as consumer:
        await consumer.until(lambda c: total(c.of("count")) == 1)
    await api.post(uid, word)
    async with await api.stream({"subscription": word}, uid=uid) as consumer:
        await consumer.until(lambda c: total(c.of("count")) == 2)
        cursor = consumer.of("count")[-1]["cursor"]
    await api.done("POST", f"{path}/ack", token=token, json={"cursor": cursor})
    await api.post(uid, word)
    async with await api.stream({"subscription": word}, uid=uid) as consumer:
        await consumer.until(lambda c: total(c.of("count")) == 1)
    polled = await api.call("GET", "/v1/events", token=token, params={"subscription": word})
    assert polled.error == (400, "invalid_parameter", "summary")


@pytest.mark.extended
async def test_the_client_yields_counts_as_objects(server: Server, api: Api) -> None:
    uid, word = await api.user(), new_word()
    await api.post(uid, word)
    async with Client(server.address, token=mint(uid)) as client:
        async for event in client.stream(rule={"tagged": word}, summary=1, since="-1m"):
            assert isinstance(event, Summary)
            assert (event.count, event.counts[0].tag, event.end) == (1, "tagged", event.cursor)
            assert (event.ended - event.began).total_seconds() == 1
            break


@pytest.mark.parametrize(
    ("params", "code", "param"),
    [
        ({"track": "tea", "summary": "0"}, "invalid_parameter", "summary"),
        ({"track": "tea", "summary": "3601"}, "invalid_parameter", "summary"),
        ({"track": "tea", "summary": "1.5"}, "invalid_parameter", "summary"),
        ({"track": "tea", "summary": "²"}, "invalid_parameter", "summary"),
        ({"track": "tea", "summary": "60", "explain": "true"}, "conflicting_parameters", "explain"),
        ({"summary": "60"}, "missing_parameter", "track"),
    ],
)
async def test_an_invalid_summary_is_refused(api: Api, params: dict[str, str], code: str, param: str) -> None:
    assert (await api.call("GET", "/v1/stream", token=mint(api.admin), params=params)).error == (400, code, param)


async def test_polls_and_the_users_own_stream_have_no_summary(api: Api) -> None:
    for path, code in (("/v1/events", "invalid_parameter"), ("/v1/stream/user", "unknown_parameter")):
        params = {"summary": "60"} | ({"track": "tea"} if path == "/v1/events" else {})
        assert (await api.call("GET", path, token=mint(api.admin), params=params)).error == (400, code, "summary")
