"""Ingest at a real server: kills in the middle of it, and a client that takes no answers."""

import asyncio
import json
import random
import socket
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Message
from tests.end_to_end.server import Server
from tests.end_to_end.socket_consumer import open_socket
from tests.stream_server.hub.visibility.model import held_texts
from tests.waiting import eventually

pytestmark = pytest.mark.extended

USERS = 20
KILLS = 2

Line = dict[str, Any]


def history(source: random.Random, count: int) -> list[Line]:
    """Return lines of a site: users, then posts, replies, edits, deletes, follows and unfollows. Each has an id."""
    lines: list[Line] = [{"op": "user", "user": {"foreign_id": f"u{n}"}, "id": f"made{n}"} for n in range(USERS)]
    alive: list[str] = []
    pairs: set[tuple[str, str]] = set()
    for n in range(count):
        author, other = (f"u{at}" for at in source.sample(range(USERS), 2))
        match source.choice("pppprdeff"):
            case "d" if alive:
                lines.append({"op": "delete", "status": alive.pop(source.randrange(len(alive)))})
            case "e" if alive:
                changed = {"foreign_id": source.choice(alive), "message": f"n{n}"}
                lines.append({"op": "edit", "status": changed, "id": f"e{n}"})
            case "f":
                op = "unfollow" if (author, other) in pairs else "follow"
                pairs ^= {(author, other)}
                lines.append({"op": op, "source": author, "target": other, "id": f"c{n}"})
            case verb:
                more = {"in_reply_to": source.choice(alive)} if verb == "r" and alive else {}
                status = {"foreign_id": f"p{n}", "author": author, "message": f"n{n}", **more}
                lines.append({"op": "post", "status": status})
                alive.append(f"p{n}")
    return lines


def effect(line: Line) -> tuple[str, str] | None:
    """Return what streams see of a line, named by the ids of the site. Users make no event."""
    match line["op"]:
        case "post":
            return "post", line["status"]["foreign_id"]
        case "edit":
            return "edit", line["status"]["foreign_id"]
        case "delete":
            return "delete", line["status"]
        case "follow" | "unfollow" as op:
            return op, f"{line['source']}>{line['target']}"
    return None


def seen(event: Message) -> tuple[str, str]:
    if "left" in event:
        return event["kind"], event["left"]["foreign_id"]
    if "status" in event:
        return event["kind"], event["status"]["foreign_id"]
    return event["kind"], f"{event['source']['foreign_id']}>{event['target']['foreign_id']}"


async def send(server: Server, uid: str, lines: list[Line], stop_after: int | None = None) -> list[Line]:
    """Send lines as one body and return the answers. Kill the server after ``stop_after`` answers.

    It then has at most a hundred more lines, so that it cannot be done with all of them.
    """
    host, _, port = server.address.rpartition("//")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {mint(uid, 'ingest')}\r\n"
    head += "Connection: close\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    part = lines if stop_after is None else lines[: stop_after + 100]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in part)
    end = b"0\r\n\r\n" if stop_after is None else b""
    writer.write(head.encode() + b"%x\r\n%b\r\n" % (len(body), body) + end)
    answers: list[Line] = []
    try:
        while text := await reader.readline():
            if text.startswith(b'{"line"') and text.endswith(b"\n"):
                answers.append(json.loads(text))
            if len(answers) == stop_after:
                server.kill()
    except ConnectionError:
        assert stop_after is not None
    writer.close()
    return answers


async def test_each_line_takes_effect_once_across_kills(own_folder: Path) -> None:
    """The server is killed in the middle and gets all lines again. Streams see the effect of each line once.

    On replay a post that was deleted by then is left out. A stream has the last text of each post.
    """
    source = random.Random(14)
    lines = history(source, 500)
    expected = [found for line in lines if (found := effect(line))]
    server = Server(own_folder).start()
    answered: dict[int, Line] = {}
    events: list[Message] = []
    uid, since = "", "0-0"
    for stop_after in [*sorted(source.sample(range(30, 390), KILLS)), None]:
        async with Api(server) as api:
            uid = uid or api.admin
            kinds = "post,edit,delete,follow,unfollow"
            asked = {"firehose": "true", "kinds": kinds, "since": since}
            async with await api.stream(asked, uid=uid) as stream:
                for answer in await send(server, uid, lines, stop_after):
                    assert "error" not in answer
                    assert answered.setdefault(answer["line"], answer) == answer, "answered as then"
                if stop_after is None:
                    await stream.reached(await api.head())
                else:
                    assert len(answered) < len(lines)
                    await stream.until_end()
                events += stream.events
                since = stream.cursor
        if stop_after is not None:
            server = Server(own_folder).start()
    server.stop()
    assert sorted(answered) == list(range(1, len(lines) + 1))
    received = [seen(event) for event in events]
    deleted = {("post", name) for kind, name in expected if kind == "delete"}
    left_out = deleted.difference(received)  # a stream that came too late for the post gets its `delete` alone
    assert received == [found for found in expected if found not in left_out]
    effects = {line: effect(lines[line - 1]) for line in answered}
    cursors = {answered[line]["cursor"] for line, found in effects.items() if found and found not in left_out}
    assert cursors == {event["cursor"] for event in events}
    assert max(Counter(cursors).values()) == 1
    written = [line["status"] for line in lines if line["op"] in ("post", "edit")]
    texts = {status["foreign_id"]: status["message"] for status in written}
    gone = {name for kind, name in expected if kind == "delete"}
    assert {name: texts[name] for name in texts.keys() - gone} == {
        name: text for name, text in held_texts(events, "foreign_id").items() if name not in gone
    }


async def test_streams_follow_by_login_and_foreign_id(server: Server, api: Api) -> None:
    """A stream, a WebSocket that changes its filters, and a poll find a post by the names of its author."""
    name = uuid.uuid4().hex[:12]
    user = {"op": "user", "user": {"foreign_id": f"x:{name}", "login": name}}
    await send(server, api.admin, [user])
    by_login, by_foreign_id = {"follow": name.upper()}, {"follow": f"12,foreign:x:{name}"}
    updated = await open_socket(api, "track=nothing")
    refused = await updated.ask("update", parameters={"follow": f"foreign:{name}"})
    assert (refused["kind"], refused["error"]["code"], refused["error"]["param"]) == (
        "error", "invalid_parameter", "follow",
    )  # fmt: skip
    assert (await updated.ask("update", parameters=by_login))["kind"] == "effective"
    start = await api.head()
    async with await api.stream(by_foreign_id) as stream:
        status = {"foreign_id": name, "author": f"x:{name}", "message": "hi"}
        (posted,) = await send(server, api.admin, [{"op": "post", "status": status}])
        for consumer in (stream, updated):
            await consumer.until(lambda c: c.events)
            assert consumer.received == [("post", posted["id"])]
    polled = await api.poll({**by_login, "since": start})
    assert [event["status"]["foreign_id"] for event in polled["events"]] == [name]
    await updated.close()


async def test_streams_do_not_see_what_a_suspended_user_becomes(server: Server, api: Api) -> None:
    """A site may change a user who is suspended. The change is there when the user is reinstated."""
    one, two = (uuid.uuid4().hex[:12] for _ in range(2))
    made = await send(server, api.admin, [{"op": "user", "user": {"foreign_id": name}} for name in (one, two)])
    asked = {"follow": f"foreign:{one},foreign:{two}", "kinds": "user_update"}
    start = await api.head()
    async with await api.stream(asked) as stream:
        lines: list[Line] = [
            {"op": "suspend", "user": one},
            {"op": "user", "user": {"foreign_id": one, "bio": "tea"}},
            {"op": "user", "user": {"foreign_id": two, "bio": "tea"}},
        ]
        assert [answer.get("outcome") for answer in await send(server, api.admin, lines)][1:] == ["updated"] * 2
        await stream.until(lambda s: s.events)
        polled = await api.poll({**asked, "since": start})
        for events in (stream.events, polled["events"]):
            assert [event["user"]["foreign_id"] for event in events] == [two]
    await send(server, api.admin, [{"op": "reinstate", "user": one}])
    assert (await api.call("GET", f"/v1/users/{made[0]['id']}", token=mint(api.admin))).json["bio"] == "tea"


class Sender:
    """Sends one line over and over again without reading, and counts the bytes that were taken."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.sent = 0
        self._still = 0
        self._before = -1

    async def run(self, chunk: bytes, count: int) -> None:
        for _ in range(count):
            self._writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            await self._writer.drain()
            self.sent += len(chunk)

    def stands_still(self) -> bool:
        """Whether nothing was taken during the last fifty looks."""
        self._still = self._still + 1 if self.sent == self._before else 0
        self._before = self.sent
        return self._still >= 50


async def test_a_client_that_takes_no_answers_is_not_read_from(server: Server, api: Api) -> None:
    """Answers that nobody takes stop the reading. What the client then takes is in order and complete."""
    host, _, port = server.address.rpartition("//")[2].partition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((host, int(port)))
    reader, writer = await asyncio.open_connection(sock=client, limit=4096)
    head = f"POST /v1/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {mint(api.admin, 'ingest')}\r\n"
    writer.write(f"{head}Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    sender, chunk = Sender(writer), (b"{" + b" " * 98 + b"\n") * 500
    sending = asyncio.create_task(sender.run(chunk, 2000))
    await eventually(sender.stands_still)
    assert not sending.done(), "the server reads on without an end"
    number, taken = 0, sender.sent
    while number < 30_000:
        text = await reader.readline()
        if text.startswith(b"{"):
            number += 1
            assert json.loads(text)["line"] == number
    await eventually(lambda: sender.sent > taken, what="reading goes on when the answers are taken")
    sending.cancel()
    await asyncio.wait({sending})
    writer.transport.abort()
