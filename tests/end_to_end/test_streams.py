"""The beginning, the control messages and the end of streams, with the real command."""

import asyncio
import json
import time
from email.parser import BytesParser
from email.policy import HTTP
from pathlib import Path
from typing import Any

import jwt
import pytest

from tests.end_to_end.api import Api, mint, with_brief_token
from tests.end_to_end.consumer import MEDIA, Consumer
from tests.end_to_end.faults.clients import RawClient
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

FRAMINGS = pytest.mark.parametrize("framing", ["sse", "ndjson"])


@FRAMINGS
async def test_hello_comes_first_with_the_head_as_cursor(api: Api, framing: str) -> None:
    """The first message is `hello`. Its cursor is the newest event, and later events come after it."""
    uid = await api.user()
    async with await api.stream({"firehose": "true"}) as everything:
        status = await api.post(uid, "before")
        await everything.until(lambda c: c.events)
        async with await api.stream({"follow": uid}, framing=framing) as consumer:
            hello = consumer.messages[0]
            assert hello["cursor"] == everything.events[0]["cursor"]
            assert hello["connection"]
            assert hello["server"].startswith("stream-server")
            assert hello["limits"]
            later = await api.post(uid, "after")
            await consumer.until(lambda c: c.events)
            assert consumer.received == [("post", later["id"])]
            assert status["id"] != later["id"]


@FRAMINGS
async def test_a_tokens_expiry_ends_its_stream_within_a_second(api: Api, framing: str) -> None:
    """The stream ends with `goodbye`, and not before the expiry. A long poll ends with it too."""
    uid = await api.user()
    used: list[str] = []

    async def opened(token: str) -> Consumer:
        used.append(token)
        return await api.stream({"track": "a"}, token=token, framing=framing)

    async with await with_brief_token(uid, opened) as consumer:
        await consumer.until_end()
        assert time.time() > jwt.decode(used[-1], options={"verify_signature": False})["exp"] - 0.1
        assert consumer.messages[-1]["kind"] == "goodbye"
        assert consumer.messages[-1]["code"] == "token_expired"
        assert consumer.cut is None


async def test_revoking_a_token_ends_its_streams_and_no_others(api: Api) -> None:
    """Logging out ends the streams of that token. The streams of another token of the same user continue."""
    uid = await api.user()
    token, other = mint(uid), mint(uid)
    async with (
        await api.stream({"track": "a"}, token=token) as first,
        await api.stream({"track": "a"}, token=token, framing="sse") as second,
        await api.stream({"track": "a"}, token=other) as stays,
    ):
        answer = await api.call("DELETE", "/v1/sessions", token=token)
        assert answer.status == 204
        for consumer in (first, second):
            await consumer.until_end()
            assert consumer.messages[-1]["kind"] == "goodbye"
            assert consumer.messages[-1]["code"] == "token_revoked"
        assert (await api.call("GET", "/v1/users/me", token=token)).error[:2] == (401, "token_revoked")
        status = await api.post(uid, "a")
        await stays.until(lambda c: c.events)
        assert stays.received == [("post", status["id"])]


async def test_a_plain_redis_subscriber_receives_posts_and_deletes(api: Api, server: Server) -> None:
    """Each kind has a Redis channel. The payload of a message is the log entry."""
    uid = await api.user()
    with server.redis_client() as client, client.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe("events:post", "events:delete")
        listener.get_message(timeout=PATIENCE)
        listener.get_message(timeout=PATIENCE)
        status = await api.post(uid, "heard by Redis")
        await api.delete(uid, status["id"])
        heard = [await asyncio.to_thread(listener.get_message, timeout=PATIENCE) for _ in range(2)]
    assert [message and message["channel"] for message in heard] == [b"events:post", b"events:delete"]
    entry_id, number, kind, _, body = heard[0]["data"].split(b" ", 4)
    assert (kind, json.loads(body)["wire"]["status"]["message"]) == (b"post", "heard by Redis")
    async with await api.stream({"follow": uid, "since": f"{entry_id.decode()}.{number.decode()}"}) as consumer:
        await consumer.until(lambda c: c.events)
        assert consumer.received == [("delete", status["id"])]


@FRAMINGS
@pytest.mark.parametrize("body", ["form", "json", "json list"])
async def test_parameters_may_come_in_a_body(api: Api, framing: str, body: str) -> None:
    """A POST with a form or JSON opens the same stream as a GET with a query."""
    uid, other = await api.user(), await api.user()
    bodies = {
        "form": {"data": {"follow": f"{uid},{other}", "kinds": "post"}},
        "json": {"json": {"follow": f"{uid},{other}", "kinds": "post"}},
        "json list": {"json": {"follow": [uid, other], "kinds": ["post"]}},
    }
    async with await api.stream({}, framing=framing, **bodies[body]) as consumer:  # type: ignore[arg-type]  # see stream
        status = await api.post(other, "by body")
        await consumer.until(lambda c: c.events)
        assert consumer.received == [("post", status["id"])]


async def test_what_came_last_wins_over_since_in_the_url(api: Api) -> None:
    """EventSource repeats its first URL with the header `Last-Event-ID`, and polyfills append `lastEventId` to it."""
    uid = await api.user()
    start = await api.head()
    async with await api.stream({"follow": uid}, framing="sse") as consumer:
        first = await api.post(uid, "one")
        await consumer.until(lambda c: c.events)
        last_id = consumer.parser.last_id  # type: ignore[union-attr]  # the parser of SSE
    second = await api.post(uid, "two")
    params = {"follow": uid, "since": start}
    repeated = [*params.items(), ("lastEventId", start), ("lastEventId", last_id)]
    ways: list[tuple[Any, str | None]] = [
        (params, last_id),
        (repeated[:2], last_id),
        (repeated[-1:] + repeated[:1], None),
        ({**params, "lastEventId": last_id}, None),
        (repeated, None),
    ]
    for given, header in ways:
        async with await api.stream(given, framing="sse", last_event_id=header) as consumer:
            await consumer.until(lambda c: c.events)
            assert consumer.received == [("post", second["id"])], (given, header)
    params["lastEventId"] = ""  # some polyfills append it before there is an event
    async with await api.stream(params, framing="sse") as consumer:
        await consumer.until(lambda c: len(c.events) > 1)
        assert consumer.received == [("post", first["id"]), ("post", second["id"])]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted by Linux")
async def test_a_client_costs_no_thread_and_no_connection_to_redis(api: Api, server: Server) -> None:
    """All streams share one subscription."""
    with server.redis_client() as redis:

        def used() -> tuple[int, int]:
            assert server.process is not None
            listeners = [one for one in redis.client_list() if int(one["sub"]) > 0]
            return len(list(Path(f"/proc/{server.process.pid}/task").iterdir())), len(listeners)

        first = await api.stream({"track": "a"})
        before, connections = used(), len(redis.client_list())
        assert before[1] == 1
        consumers = [await api.stream({"track": f"word{i}"}) for i in range(60)]
        assert await api.metric("streams") >= 61
        # Requests may open connections meanwhile, which all requests share; none belongs to a stream.
        assert used() == before
        assert len(redis.client_list()) < connections + 60
        for consumer in (first, *consumers):
            await consumer.close()


async def test_counters_equal_the_published_and_delivered_events(api: Api) -> None:
    """The metrics count each entry once, and each event once for every client that received it."""
    uid = await api.user()
    names = ("events_published_total", "events_delivered_total")
    before = [await api.metric(name) for name in names]
    consumers = [await api.stream({"follow": uid}, framing=framing) for framing in ("sse", "ndjson")]
    posted = [(await api.post(uid, f"number {number}"))["id"] for number in range(5)]
    for consumer in consumers:
        await consumer.until(lambda c: len(c.events) >= len(posted))
        assert consumer.received == [("post", one) for one in posted]
        await consumer.close()
    after = [await api.metric(name) for name in names]
    assert [now - then for now, then in zip(after, before, strict=True)] == [5, 10]


async def head_of(client: RawClient, token: str, version: str, accept: str) -> tuple[str, dict[str, str], bytes]:
    """Request the firehose. Return the status line, the headers by lower-case name, and the first bytes of the body."""
    await client.send(
        f"GET /v1/stream?firehose=true HTTP/{version}\r\nHost: localhost\r\nAccept: {accept}\r\n"
        f"Accept-Encoding: br\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    head, _, rest = (await client.read_until(b'"hello"')).partition(b"\r\n\r\n")
    status, _, rows = head.partition(b"\r\n")
    parsed = BytesParser(policy=HTTP).parsebytes(rows + b"\r\n\r\n")
    return status.decode(), {name.lower(): str(value) for name, value in parsed.items()}, rest


@FRAMINGS
async def test_the_head_of_a_stream_has_what_proxies_need(api: Api, framing: str) -> None:
    """The headers forbid storing and buffering. A client that does not accept gzip gets plain bytes.

    The body has no length, and the connection closes after it.
    """
    async with await RawClient.connect(api.server.address) as client:
        status, headers, _ = await head_of(client, mint(api.admin), "1.1", MEDIA[framing])
    assert status == "HTTP/1.1 200 OK"
    assert headers["content-type"].partition(";")[0] == MEDIA[framing]
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["transfer-encoding"] == "chunked"
    assert headers["connection"].lower() == "close"
    assert "content-length" not in headers
    assert "content-encoding" not in headers


@FRAMINGS
async def test_a_client_of_http_1_0_gets_bare_lines_until_the_end(api: Api, framing: str) -> None:
    """HTTP/1.0 has no chunks. After the response head come the lines of the stream, each as it happens."""
    async with await RawClient.connect(api.server.address) as client:
        status, headers, body = await head_of(client, mint(api.admin), "1.0", MEDIA[framing])
        assert status.startswith("HTTP/1.0 200")
        assert "transfer-encoding" not in headers
        assert "content-length" not in headers
        assert headers.get("connection", "close").lower() == "close"
        posted = await api.post(api.admin, "to an old client")
        body += await client.read_until(posted["id"].encode())
        body += await client.read_until(b"\n")
    said = [line.removeprefix(b"data: ") for line in body.split(b"\n") if line.startswith((b"{", b"data: {"))]
    assert json.loads(said[0])["kind"] == "hello"
    assert any(json.loads(line).get("status", {}).get("id") == posted["id"] for line in said)
    fields = (b"id: ", b"event: ", b"data: ", b"retry: ") if framing == "sse" else (b"{",)
    whole = body[: body.rfind(b"\n")].split(b"\n")
    assert all(not line or line.startswith(fields) for line in whole), whole
