"""No reader takes a part of a text for a line end: U+2028, U+2029 and U+0085 leave the server escaped."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import connect

from tests.command_line import invoke
from tests.end_to_end.api import Api, mint
from tests.end_to_end.people import word
from tests.waiting import PATIENCE, eventually

MARKS = "\u2028\u2029\u0085"
TEXT = "one\u2028two\u2029three"
NOTE = TEXT + "\u0085four"
"""Only ``meta`` may have U+0085."""

EXPANSIONS = "author_id,referenced_tweets.id,referenced_tweets.id.author_id"

SSE, NDJSON = {"Accept": "text/event-stream"}, {"Accept": "application/x-ndjson"}
STREAMS: dict[str, tuple[str, str, Mapping[str, str]]] = {
    "SSE": ("GET", "/v1/stream?explain=true&rule={word}", SSE),
    "SSE, compressed": ("GET", "/v1/stream?track={word}", SSE | {"Accept-Encoding": "gzip"}),
    "NDJSON": ("GET", "/v1/stream?explain=true&track={word}", NDJSON),
    "firehose": ("GET", "/v1/stream?firehose=true", NDJSON),
    "own": ("GET", "/v1/stream/user", NDJSON),
    "v1.1": ("GET", "/1.1/statuses/filter.json?track={word}", {}),
    "v1.1 with lengths": ("POST", "/1.1/statuses/filter.json?delimited=length&track={word}", {}),
    "v2": ("GET", "/2/tweets/search/stream", {}),
    "v2 with all": ("GET", f"/2/tweets/search/stream?expansions={EXPANSIONS}&user.fields=description", {}),
}


def check(raw: bytes) -> str:
    """Check that only CR and LF end lines, and that the marks are there. Return the text."""
    text = raw.decode()
    assert not set(MARKS) & set(text)
    assert text.splitlines() == text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    assert "one\\u2028two\\u2029three" in text
    assert "three\\u0085four" in text or "note" not in text
    return text


async def write_all(api: Api, ann: str, bob: str, term: str) -> str:
    """Write texts with the marks into all kinds of objects. Return the id of a post."""
    message = f"{term} {TEXT}"
    posted = await api.post(ann, message, meta={"note": NOTE})
    await api.post(ann, message, origin=posted["id"])
    await api.post(ann, "", origin=posted["id"])
    comments = f"/v1/statuses/{posted['id']}/comments"
    await api.done("POST", comments, token=mint(ann), json={"message": message})
    talk = (await api.done("POST", "/v1/talks", token=mint(ann), json={"people": [bob]}))["id"]
    await api.done("POST", f"/v1/talks/{talk}/messages", token=mint(ann), json={"message": message})
    return str(posted["id"])


async def people(api: Api, term: str) -> tuple[str, str]:
    """Return two users: ann with marks in her profile, and bob who follows her and has a rule."""
    ann, bob = await api.user(), await api.user()
    await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"bio": TEXT})
    await api.follow(bob, ann)
    await api.follow(ann, bob)
    await api.done("POST", "/v1/rules", token=mint(bob), json={"rules": [{"rule": term, "tag": "t"}]})
    return ann, bob


async def until_quiet(response: aiohttp.ClientResponse, least: int) -> bytes:
    """Return what a stream sends until it has sent ``least`` messages with marks."""
    raw = b""
    async with asyncio.timeout(PATIENCE):
        while raw.count(b"one") < least or not raw.endswith(b"\n"):
            raw += await response.content.readany()
    return raw


@pytest.mark.parametrize("way", STREAMS)
async def test_a_text_is_one_line_in_each_stream(api: Api, way: str) -> None:
    term = word()
    ann, bob = await people(api, term)
    method, path, headers = STREAMS[way]
    headers = {**headers, "Authorization": f"Bearer {mint(bob)}"}
    async with api.session.request(method, path.format(word=term), headers=headers) as response:
        assert response.status == 200, await response.text()
        await response.content.readany()  # the first messages: the stream is open
        await write_all(api, ann, bob, term)
        text = check(await until_quiet(response, 3))
    lines = [line.removeprefix("data: ") for line in text.splitlines() if "one" in line]
    assert all(TEXT in json.dumps(json.loads(line), ensure_ascii=False) for line in lines)


@pytest.mark.parametrize("compression", [None, "deflate"])
async def test_a_text_is_one_line_in_a_websocket(api: Api, compression: Any) -> None:
    term = word()
    ann, bob = await people(api, term)
    address = f"ws{api.server.address.removeprefix('http')}/v1/stream?explain=true&track={term}"
    headers = {"Authorization": f"Bearer {mint(bob)}"}
    async with connect(address, additional_headers=headers, compression=compression) as socket:
        await socket.recv()
        await write_all(api, ann, bob, term)

        async def until_heard(times: int) -> bytes:
            raw = b""
            while raw.count(b"one") < times:  # a heartbeat may come between
                raw += await socket.recv(decode=False) + b"\n"
            return raw

        check(await until_heard(3))
        await socket.send(json.dumps({"op": "ping", "id": TEXT}))
        check(await until_heard(1))


async def test_a_text_is_one_line_in_each_answer(api: Api) -> None:
    term = word()
    ann, bob = await people(api, term)
    status = await write_all(api, ann, bob, term)
    talk = (await api.done("GET", "/v1/talks", token=mint(bob)))["talks"][0]["id"]
    paths = [
        f"/v1/events?track={term}&since=-15m&wait=0", f"/v1/statuses/{status}", f"/v1/statuses?ids={status}",
        f"/v1/statuses/{status}/comments", f"/v1/users/{ann}", f"/v1/users/{ann}/statuses", "/v1/timelines/home",
        f"/v1/users/{bob}/following", f"/v1/talks/{talk}/messages", "/v1/notifications",
    ]  # fmt: skip
    await api.post(ann, f"@{(await api.done('GET', '/v1/users/me', token=mint(bob)))['login']} {TEXT}")
    for path in paths:
        check((await api.call("GET", path, token=mint(bob))).body)
    check((await api.call("GET", "/v1/users/me", token=mint(ann))).body)
    for body in ({"message": TEXT}, {"message": "wrong", TEXT: 1}):
        check((await api.call("POST", "/v1/statuses", token=mint(ann), json=body)).body)
    line = json.dumps({"op": "post", "status": {"foreign_id": "1", "author": "a", "message": "x", TEXT: 1}}) + "\n"
    answer = await api.call("POST", "/v1/ingest", token=mint(ann, "ingest"), data=line.encode())
    assert not set(MARKS) & set(answer.body.decode())


async def test_a_text_is_one_line_in_an_export(api: Api, tmp_path: Path) -> None:
    term = word()
    ann, bob = await people(api, term)
    await write_all(api, ann, bob, term)
    file = tmp_path / "events.ndjson"
    options = ("--url", api.server.address, "--since", "-15m", "--track", term, "--to", file, "--token", mint(bob))

    async def exported() -> bool:
        outcome = await asyncio.to_thread(invoke, "export", *options)
        assert outcome.code == 0, outcome
        return bool(file.read_bytes().count(b"one") >= 3)

    await eventually(exported, what="an export with the posts")
    check(file.read_bytes())
