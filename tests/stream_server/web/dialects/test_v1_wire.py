"""The bytes of v1.1 on a socket, the places of its token, and its errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.end_to_end.api import Answer, Api, mint
from tests.end_to_end.people import word
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

FILTER, SAMPLE, FIREHOSE = (f"/1.1/statuses/{name}.json" for name in ("filter", "sample", "firehose"))

NONE_FOUND = "Expect at least one parameter: follow track locations"

CONNECTS = 60
"""More than one test needs, and few enough to be one too many."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Run a server with frequent heartbeats; it must stop without a traceback."""
    options = ("--heartbeat-seconds", "0.2", "--limits", f"dialect_connects={CONNECTS}")
    with Server(tmp_path_factory.mktemp("server"), *options) as running:
        yield running


@asynccontextmanager
async def connected(api: Api, path: str, version: str = "1.1", **asked: str) -> AsyncIterator[asyncio.StreamReader]:
    host, port = api.server.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    head = f"GET {path}?{urlencode(asked)} HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer {mint(api.admin)}\r\n\r\n"
    writer.write(head.encode())
    try:
        async with asyncio.timeout(PATIENCE):
            yield reader
    finally:
        writer.close()


async def chunk(reader: asyncio.StreamReader) -> bytes:
    """Return the next chunk, which holds complete messages or heartbeats."""
    size = int(await reader.readline(), 16)
    data = await reader.readexactly(size + 2)
    assert data.endswith(b"\r\n")
    return data[:-2]


async def test_the_head_arrives_before_any_event_and_is_chunked(api: Api) -> None:
    async with connected(api, FILTER, track=word()) as reader:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        assert head[0] == "HTTP/1.1 200 OK"
        headers = dict(line.split(": ", 1) for line in head[1:-2])
        assert (headers["Transfer-Encoding"], headers["Content-Type"]) == ("chunked", "application/json")
        assert "Content-Encoding" not in headers
        assert await chunk(reader) == b"\r\n"


@pytest.mark.parametrize("delimited", ["length", ""])
async def test_each_chunk_ends_with_a_whole_message(api: Api, delimited: str) -> None:
    term = word()
    async with connected(api, FILTER, track=term, delimited=delimited) as reader:
        await reader.readuntil(b"\r\n\r\n")
        assert await chunk(reader) == b"\r\n"
        for number in range(3):
            await api.post(api.admin, f"{term} 😍 {number}")
            while (data := (await chunk(reader)).lstrip(b"\r\n")) == b"":
                pass
            length, end, rest = data.partition(b"\r\n") if delimited else (b"", b"", data)
            text = rest.rstrip(b"\r\n") + b"\r\n"
            assert json.loads(text)["text"] == f"{term} 😍 {number}"
            assert rest.startswith(text)
            if delimited:
                assert (int(length), end) == (len(text), b"\r\n")


async def test_an_http_1_0_client_gets_bare_lines(api: Api) -> None:
    term = word()
    async with connected(api, FILTER, "1.0", track=term) as reader:
        assert b"chunked" not in await reader.readuntil(b"\r\n\r\n")
        assert await reader.readline() == b"\r\n"
        await api.post(api.admin, term)
        while (line := await reader.readline()) == b"\r\n":
            pass
        assert json.loads(line)["text"] == term


async def asked(api: Api, path: str, method: str = "POST", **more: Any) -> Answer:
    """Return the answer to one request; of a stream only its beginning."""
    async with api.session.request(method, path, **more) as answer:
        body = b"" if answer.status == 200 else await answer.read()
        return Answer(answer.status, answer.headers, body)


def oauth(token: str) -> dict[str, str]:
    """Return the parameters of OAuth 1.0a with a meaningless signature."""
    return {
        "oauth_consumer_key": "key", "oauth_nonce": "n1", "oauth_signature": "bm90aGluZw==",
        "oauth_signature_method": "HMAC-SHA1", "oauth_timestamp": "1795197600", "oauth_token": token,
        "oauth_version": "1.0",
    }  # fmt: skip


async def test_the_token_is_accepted_in_every_place_of_v1(api: Api, server: Server) -> None:
    token, asking = mint(api.admin), {"track": "tea"}
    header = "OAuth " + ", ".join(f'{name}="{value}"' for name, value in oauth(token).items())
    ways: list[dict[str, Any]] = [
        {"headers": {"Authorization": f"Bearer {token}"}, "data": asking},
        {"headers": {"Authorization": header}, "data": asking},
        {"data": {**oauth(token), **asking}},
        {"params": oauth(token), "data": asking},
        {"params": {**oauth(token), **asking}, "method": "GET"},
    ]
    assert [(await asked(api, FILTER, **way)).status for way in ways] == [200] * 3 + [401] * 2
    assert token not in server.log


async def test_a_token_in_the_url_needs_a_setting(tmp_path: Path) -> None:
    async with Server(tmp_path, "--v1-url-credentials", "on") as server, Api(server) as api:
        asking = oauth(mint(api.admin))
        ways: list[dict[str, Any]] = [
            {"params": asking, "data": {"track": "tea"}},
            {"params": {**asking, "track": "tea"}, "method": "GET"},
        ]
        assert [(await asked(api, FILTER, **way)).status for way in ways] == [200] * 2
        assert asking["oauth_token"] not in server.log


async def test_a_request_without_a_valid_token_is_refused(api: Api) -> None:
    other = mint(api.admin, secret="another secret of thirty-two bytes or more")
    gone = mint(api.admin, ttl=-60)
    ways: list[dict[str, Any]] = [
        {"data": {"track": "tea"}},
        {"data": {**oauth(other), "track": "tea"}},
        {"params": oauth(gone)},
        {"headers": {"Authorization": f'OAuth oauth_token="{other}"'}},
        {"headers": {"Authorization": f"Basic {mint(api.admin)}"}},
        {"params": {"access_token": mint(api.admin), "track": "tea"}},
        {"params": {"ticket": mint(api.admin), "track": "tea"}},
    ]
    for way in ways:
        answer = await asked(api, FILTER, **way)
        assert (answer.status, answer.headers["Content-Type"]) == (401, "text/plain; charset=utf-8"), way
        assert 10 < len(answer.body) < 200
        assert "OAuth" in answer.headers["WWW-Authenticate"]
        assert b"eyJ" not in answer.body


@pytest.mark.parametrize(
    ("path", "parameters", "status", "text"),
    [
        (FILTER, {"language": "en"}, 406, f"No filter parameters found. {NONE_FOUND}"),
        (FILTER, {"track": ""}, 406, NONE_FOUND),
        (FILTER, {"track": "x" * 61}, 406, "1 to 60 bytes"),
        (FILTER, {"track": "tea,,ice"}, 406, "1 to 60 bytes"),
        (FILTER, {"track": ",".join(["tea"] * 401)}, 413, "400 phrases"),
        (FILTER, {"follow": "ada"}, 406, "user ids"),
        (FILTER, {"follow": "1,,2"}, 406, "follow"),
        (FILTER, {"follow": ",".join(["7"] * 5001)}, 413, "5000"),
        (FILTER, {"locations": "170,-20,-170,20"}, 406, "Bounding box is invalid: 170, -20, -170, 20."),
        (FILTER, {"locations": "1,2,3"}, 406, "four numbers"),
        (FILTER, {"locations": "0,91,1,92"}, 406, "Latitude/longitude are not valid: 0, 91, 1, 92"),
        (FILTER, {"locations": ",".join(["0,0,1,1"] * 26)}, 413, "25 boxes"),
        (FILTER, {"track": "tea", "language": "!"}, 406, "language"),
        (FILTER, {"track": "tea", "filter_level": "high"}, 406, "filter_level"),
        (FILTER, {"track": "tea", "count": "-150001"}, 416, "150000"),
        (SAMPLE, {"count": "150001"}, 416, "150000"),
        (FIREHOSE, {"count": "many"}, 416, "150000"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_invalid_parameters_are_refused_with_the_status_of_v1(
    api: Api, method: str, path: str, parameters: dict[str, str], status: int, text: str
) -> None:
    if method == "GET" and len(parameters.get("follow", "")) > 1000:
        method = "POST"  # a URL of ten thousand bytes is refused for its length
    given = {"params" if method == "GET" else "data": parameters}
    answer = await asked(api, path, method, headers={"Authorization": f"Bearer {mint(await api.user())}"}, **given)
    assert (answer.status, answer.headers["Content-Type"]) == (status, "text/plain; charset=utf-8"), answer
    assert text in answer.body.decode()
    assert len(answer.body) < 300


@pytest.mark.parametrize(
    ("path", "scope", "parameters", "status"),
    [
        (FIREHOSE, "stream", {}, 403),
        (SAMPLE, "read write", {}, 403),
        (FILTER, "stream", {"track": "tea", "count": "5"}, 416),
        (FILTER, "stream", {"track": "tea", "count": "0"}, 200),
        (SAMPLE, "stream", {"count": "0"}, 200),
        (FIREHOSE, "stream firehose", {}, 200),
    ],
)
async def test_streams_need_scopes(api: Api, path: str, scope: str, parameters: dict[str, str], status: int) -> None:
    headers = {"Authorization": f"Bearer {mint(api.admin, scope)}"}
    answer = await asked(api, path, params=parameters, headers=headers)
    assert answer.status == status, answer


async def test_a_suspended_user_is_refused(api: Api) -> None:
    ann = await api.user()
    await api.done("PUT", f"/v1/admin/suspensions/{ann}", token=mint(api.admin, "admin"))
    answer = await asked(api, SAMPLE, headers={"Authorization": f"Bearer {mint(ann)}"})
    assert (answer.status, answer.headers["Content-Type"]) == (403, "text/plain; charset=utf-8")


async def test_too_many_connections_get_420(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    headers = {"Authorization": f"Bearer {mint(ann)}"}
    statuses = [(await asked(api, SAMPLE, headers=headers)).status for _ in range(CONNECTS)]
    assert statuses == [200] * CONNECTS
    answer = await asked(api, SAMPLE, headers=headers)
    assert (answer.status, b"at most 60 in 15 minutes" in answer.body) == (420, True)
    assert 1 <= int(answer.headers["Retry-After"]) <= 15 * 60
    assert (await asked(api, SAMPLE, headers={"Authorization": f"Bearer {mint(bob)}"})).status == 200


async def test_the_setting_limits_disables_the_connection_limit(tmp_path: Any) -> None:
    async with Server(tmp_path / "own", "--limits", "off") as server, Api(server) as api:
        headers = {"Authorization": f"Bearer {mint(api.admin)}"}
        assert [(await asked(api, SAMPLE, headers=headers)).status for _ in range(3)] == [200] * 3
