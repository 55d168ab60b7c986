"""WebSockets on a real server: the same messages, promises and refusals as other streams, and the operations."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint, with_brief_token
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.raw_socket import ACCEPT, RawSocket
from tests.end_to_end.socket_consumer import open_socket
from tests.stream_server.web.websocket.client_frames import BINARY, CONTINUATION, PING, TEXT, close, frame
from tests.waiting import PATIENCE, eventually

UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[Consumer], Any]]:
    """Note consumers, which are closed at the end."""
    all_of_them: list[Consumer] = []

    def note(consumer: Any) -> Any:
        all_of_them.append(consumer)
        return consumer

    yield note
    for consumer in all_of_them:
        await consumer.close()


async def test_refusals_are_ordinary_answers_before_the_upgrade(api: Api) -> None:
    """Each wrong handshake and each wrong stream is refused by a status and a JSON error."""
    token, own = mint(api.admin), api.server.address
    wrong: list[tuple[dict[str, str | None], str, tuple[int, str, str | None]]] = [
        ({"Sec-WebSocket-Version": "12"}, "", (426, "upgrade_required", "Sec-WebSocket-Version")),
        ({"Sec-WebSocket-Version": None}, "", (426, "upgrade_required", "Sec-WebSocket-Version")),
        ({"Sec-WebSocket-Key": None}, "", (400, "invalid_parameter", "Sec-WebSocket-Key")),
        ({"Sec-WebSocket-Key": "c2hvcnQ="}, "", (400, "invalid_parameter", "Sec-WebSocket-Key")),
        ({"Sec-WebSocket-Key": "?" * 24}, "", (400, "invalid_parameter", "Sec-WebSocket-Key")),
        ({"Connection": "close"}, "", (400, "invalid_parameter", "Connection")),
        ({"Origin": "http://elsewhere.example"}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": own[:-1]}, "", (403, "origin_not_allowed", "Origin")),  # another port
        ({"Origin": f"{own}0"}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": "null"}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": ""}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": f"{own}/"}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": f"{own} {own}"}, "", (403, "origin_not_allowed", "Origin")),
        ({"Origin": own.replace("//", "//ann@")}, "", (403, "origin_not_allowed", "Origin")),
        ({"Authorization": "Bearer none"}, "", (401, "invalid_token", None)),
        ({"Authorization": f"Bearer {mint(api.admin, 'read')}"}, "", (403, "insufficient_scope", None)),
        ({"Authorization": f"Bearer {mint(api.admin, 'stream')}"}, "?firehose=true", (403, "insufficient_scope", None)),
        ({}, "?trak=tea", (400, "unknown_parameter", "trak")),
        ({}, "?track=tea&since=soon", (400, "invalid_cursor", "since")),
        ({}, "?track=tea&since=soon&lastEventId=late", (400, "invalid_cursor", "lastEventId")),
        ({"Authorization": None}, "?ticket=none", (401, "invalid_token", "ticket")),
        ({"Authorization": None}, "?track=a&explain=true&explain=true", (400, "conflicting_parameters", "explain")),
    ]  # fmt: skip
    for headers, query, expected in wrong:
        given = {**UPGRADE, "Authorization": f"Bearer {token}", **headers}
        sent = {name: value for name, value in given.items() if value is not None}
        answer = await api.call("GET", f"/v1/stream{query or '?track=tea'}", headers=sent)
        assert answer.error == expected, (headers, query)
        assert (answer.headers.get("Sec-WebSocket-Version") == "13") is (expected[0] == 426)
    async with await RawSocket.open(api.server, "/v1/stream?track=a", f"Origin: {own}\r\n" * 2) as twice:
        assert twice.head.startswith("HTTP/1.1 403 ")
    for origin in (own, f"  {own} ", own.upper().replace("HTTP", "http")):
        async with await RawSocket.open(
            api.server, f"/v1/stream?track=a&ticket={await ticket(api)}", f"Origin: {origin}\r\n"
        ) as raw:
            assert raw.head.startswith("HTTP/1.1 101 ")


async def ticket(api: Api) -> str:
    return str((await api.done("POST", "/v1/streams/ticket", token=mint(api.admin)))["ticket"])


@pytest.mark.parametrize("compression", ["deflate", pytest.param(None, marks=pytest.mark.extended)])
async def test_the_messages_are_those_of_other_streams(
    api: Api, opened: Callable[[Any], Any], compression: str | None
) -> None:
    """The same cursors, posts and deletes, live and after a return, by a ticket too. ``matched`` comes with explain."""
    ann = await api.user()
    word = f"w{random.getrandbits(40):x}"
    query = {"track": word, "explain": "true"}
    lines = opened(await api.stream(query))
    socket = opened(await open_socket(api, f"track={word}&explain=true", compression=compression))
    assert bool(socket.socket.protocol.extensions) is (compression is not None)
    posts = [await api.post(ann, f"{word} {n} " + "long " * 40) for n in range(4)]
    await api.delete(ann, posts[1]["id"])
    for stream in (lines, socket):
        await stream.until(lambda s: len(s.events) == 5)
    assert socket.events == lines.events
    assert socket.messages[0].keys() == lines.messages[0].keys()
    since = socket.events[1]["cursor"]
    again = f"track={word}&since=-1h&lastEventId={since}"  # as a client appends it that knows how EventSource resumes
    back = opened(await open_socket(api, f"{again}&ticket={await ticket(api)}", token=None))
    await back.until(lambda s: len(s.events) == 3)
    assert back.received == socket.received[2:]
    await back.until(lambda s: s.of("heartbeat"))


async def test_a_wrong_operation_is_answered_and_changes_nothing(api: Api, opened: Callable[[Any], Any]) -> None:
    ann, word = await api.user(), f"w{random.getrandbits(40):x}"
    socket = opened(await open_socket(api, f"track={word}", uid=ann))
    update = {"op": "update"}
    wrong: list[tuple[str, str, str | None]] = [
        ("{", "malformed_body", None),
        ("[1]", "malformed_body", None),
        ("[" * 300 + "]" * 300, "malformed_body", None),
        ("{}", "missing_parameter", "op"),
        ('{"op":"fly"}', "unknown_parameter", "op"),
        ('{"op":"ping","id":[]}', "invalid_parameter", "id"),
        ('{"op":"ping","much":1}', "unknown_parameter", "much"),
        (json.dumps(update), "invalid_parameter", "parameters"),
        (json.dumps({**update, "parameters": {}}), "missing_parameter", "track"),
        (json.dumps({**update, "parameters": {"track": {"a": 1}}}), "invalid_parameter", "track"),
        (json.dumps({**update, "parameters": {"track": "a", "since": "-1m"}}), "invalid_parameter", "since"),
        (json.dumps({**update, "parameters": {"track": "a" * 61}}), "invalid_parameter", "track"),
        (json.dumps({**update, "parameters": {"rule": "a AND ("}}), "invalid_parameter", "rule"),
        ('{"op":"token"}', "missing_parameter", "token"),
        (json.dumps({"op": "token", "token": mint(await api.user())}), "not_yours", "token"),
        (json.dumps({"op": "token", "token": mint(ann, "read")}), "insufficient_scope", "token"),
        (json.dumps({"op": "token", "token": "none"}), "invalid_token", None),
    ]
    for message, code, param in wrong:
        seen = len(socket.of("error"))
        await socket.socket.send(message)
        await socket.until(lambda s, seen=seen: len(s.of("error")) > seen)
        error = socket.of("error")[-1]["error"]
        assert (error["code"], error.get("param")) == (code, param), message
    narrow = opened(await open_socket(api, f"track={word}", token=mint(ann, "stream")))
    assert (await narrow.ask("update", parameters={"firehose": True}))["error"]["code"] == "insufficient_scope"
    assert (await narrow.ask("token", token=mint(ann)))["kind"] == "token"
    assert (await narrow.ask("update", parameters={"firehose": True}))["kind"] == "effective"
    assert (await narrow.ask("token", token=mint(ann, "stream")))["error"]["code"] == "insufficient_scope"
    post = await api.post(ann, word)
    for stream in (socket, narrow):
        await stream.until(lambda s: ("post", post["id"]) in s.received)
    assert (await socket.ask("ping"))["kind"] == "pong"


async def test_a_first_message_brings_the_token(api: Api, opened: Callable[[Any], Any]) -> None:
    ann, word = await api.user(), f"w{random.getrandbits(40):x}"
    socket = opened(await open_socket(api, f"track={word}", token=None))
    await socket.socket.send(json.dumps({"op": "token", "token": mint(ann)}))
    await socket.until(lambda s: s.of("hello"))
    post = await api.post(ann, word)
    await socket.until(lambda s: s.received == [("post", post["id"])])
    listed = (await api.done("GET", "/v1/streams", token=mint(ann)))["streams"]
    assert [one["connection"] for one in listed] == [socket.messages[0]["connection"]]
    for query, message, code in (
        ("track=a", '{"op":"ping"}', "invalid_parameter"),
        ("track=a", "{", "malformed_body"),
        ("track=a", '{"op":"token","token":"none"}', "invalid_token"),
        ("track=a", json.dumps({"op": "token", "token": mint(ann, "read")}), "insufficient_scope"),
        ("trak=a", json.dumps({"op": "token", "token": mint(ann)}), "unknown_parameter"),
        ("track=a&since=soon", json.dumps({"op": "token", "token": mint(ann)}), "invalid_cursor"),
    ):
        wrong = await open_socket(api, query, token=None)
        await wrong.socket.send(message)
        await wrong.until_end()
        assert [one["error"]["code"] for one in wrong.messages] == [code]
        assert wrong.code == 1008


async def test_a_stream_goes_on_with_a_token_and_ends_with_it(api: Api) -> None:
    ann = await api.user()
    socket = await open_socket(api, "track=a", token=mint(ann, ttl=600))

    async def renew(token: str) -> None:
        answer = await socket.ask("token", token=token)
        assert "expires" in answer
        assert answer["expires"] > socket.messages[0]["at"]

    await with_brief_token(ann, renew)
    await socket.until_end()
    assert socket.messages[-1]["code"] == "token_expired"
    assert (socket.code, socket.reason) == (1008, socket.messages[-1]["reason"])
    closed = await open_socket(api, "", path="/v1/stream/user", uid=ann)
    assert (await closed.ask("update", parameters={"kinds": ["like"]}))["parameters"] == "kinds=like"
    listed = (await api.done("GET", "/v1/streams", token=mint(ann)))["streams"]
    assert [(one["path"], one["parameters"]) for one in listed] == [("/v1/stream/user", "kinds=like")]
    await api.done("DELETE", f"/v1/streams/{listed[0]['connection']}", token=mint(ann))
    await closed.until_end()
    assert (closed.messages[-1]["code"], closed.code) == ("closed_by_user", 1000)


FAULTS = {
    "unmasked": (frame(TEXT, b"{}", mask=None), 1002),
    "no UTF-8": (frame(TEXT, b"\xff"), 1007),
    "too large": (frame(TEXT, b" " * 70_000), 1009),
    "binary": (frame(BINARY, b"{}"), 1003),
    "a continuation of nothing": (frame(CONTINUATION, b"{}"), 1002),
    "its own close": (close(4000, b"enough"), 4000),
}


@pytest.mark.parametrize("proven", [True, pytest.param(False, marks=pytest.mark.extended)])
async def test_faults_close_with_their_code(api: Api, *, proven: bool) -> None:
    """Frames in the packet of the handshake are read too. The goodbye names the fault."""
    query = f"/v1/stream?track=a{f'&ticket={await ticket(api)}' if proven else ''}"
    async with await RawSocket.open(api.server, query, early=frame(PING, b"early")) as raw:
        assert f"\r\nSec-WebSocket-Accept: {ACCEPT}\r\n" in raw.head
        assert "Sec-WebSocket-Extensions" not in raw.head
        pong = await raw.read()
        while pong.opcode != 10:
            pong = await raw.read()
        assert pong.payload == b"early"
    for data, code in FAULTS.values():
        query = f"/v1/stream?track=a{f'&ticket={await ticket(api)}' if proven else ''}"
        async with await RawSocket.open(api.server, query) as raw:
            raw.writer.write(data + frame(PING, b"ignored"))
            assert (await raw.until_close()).code == code
            if code != 4000:  # the client's own close is answered already
                raw.writer.write(close(code))
            assert await asyncio.wait_for(raw.reader.read(), PATIENCE) == b""


async def test_fragments_and_pings_of_a_client(api: Api) -> None:
    async with await RawSocket.open(api.server, f"/v1/stream?track=a&ticket={await ticket(api)}") as raw:
        assert (await raw.read_message())["kind"] == "hello"
        raw.writer.write(frame(TEXT, b'{"op":', 0) + frame(PING, b"now") + frame(CONTINUATION, b'"ping","id":7}'))
        while (pong := await raw.read()).opcode != 10:
            pass
        assert pong.payload == b"now"
        assert (await raw.read_message())["id"] == 7
        many = b"".join(frame(TEXT, json.dumps({"op": "ping", "id": n}).encode()) for n in range(300))
        raw.writer.write(many)
        answers = [await raw.read_message() for _ in range(300)]
        assert [answer["id"] for answer in answers] == list(range(300))


@pytest.mark.extended
async def test_a_crowd_opens_at_once(api: Api) -> None:
    """Requests wait for their turn as they came, with the frames behind them. Each client gets everything once."""
    ann, word = await api.user(), f"w{random.getrandbits(40):x}"
    path, token = f"/v1/stream?track={word}", f"Authorization: Bearer {mint(ann)}\r\n"
    early = frame(TEXT, b'{"op":"ping","id":1}')
    opened = await asyncio.gather(*(RawSocket.open(api.server, path, token, early=early) for _ in range(200)))
    for raw in opened:
        assert [(await raw.read_message())["kind"] for _ in range(2)] == ["hello", "pong"]
    post = await api.post(ann, word)
    for raw in opened:
        assert (await raw.read_message())["status"]["id"] == post["id"]
        raw.writer.write(close(1000))
    for raw in opened:
        assert (await raw.until_close()).code == 1000
        raw.writer.close()
    await eventually(lambda: _has_none(api, ann), what="no open stream")


async def _has_none(api: Api, uid: str) -> bool:
    return not (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]
