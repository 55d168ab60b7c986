"""The connection reads a usual request by itself, and aiohttp the others: the answers look the same."""

import asyncio
import re

import pytest

from stream_server.web.http.connection import Connection
from stream_server.web.http.front_door import FrontDoor
from tests.stream_server.web.world import World

Address = tuple[str, int]

GET = "GET / HTTP/1.1\r\nHost: a\r\n"


async def answers(address: Address, *requests: str) -> list[tuple[str, dict[str, str], bytes]]:
    """Send the requests at once, and return status line, headers and body of each answer until the connection ends."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write("".join(f"{request}\r\n" for request in requests).encode())
    found = []
    for request in requests:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        has_body = not request.startswith("HEAD")
        found.append((status, headers, await reader.readexactly(int(headers["Content-Length"])) if has_body else b""))
    writer.close()
    return found


def shape(answer: tuple[str, dict[str, str], bytes]) -> tuple[str, set[str], bytes]:
    """Return what the answers of all ways have in common."""
    status, headers, body = answer
    return status.split(" ", 1)[1], set(headers) - {"Connection"}, body


@pytest.fixture
def by_aiohttp(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The heads of the requests that aiohttp has got."""
    handle, found = FrontDoor._let_aiohttp_handle, list[bytes]()

    def noted(door: FrontDoor, connection: Connection, head: bytes) -> None:
        found.append(head)
        handle(door, connection, head)

    monkeypatch.setattr(FrontDoor, "_let_aiohttp_handle", noted)
    return found


async def test_both_ways_give_the_same_answer(
    address: Address, by_aiohttp: list[bytes], subtests: pytest.Subtests
) -> None:
    (plain,) = await answers(address, GET)
    assert not by_aiohttp
    assert set(plain[1]) >= {
        "Date",
        "Server",
        "Content-Type",
        "Cache-Control",
        "X-Request-Id",
        "X-Content-Type-Options",
    }
    for request, connection in (
        (GET + "TE: trailers\r\n", None),
        (GET + "TE: trailers\r\nConnection: close\r\n", "close"),
        (GET + "Connection: upgrade\r\nUpgrade: h2c\r\n", None),
        (GET + "Connection: upgrade\r\nUpgrade: websocket\r\n", "close"),
        (GET.replace("1.1", "1.0"), None),
        (GET.replace("1.1", "1.0") + "Connection: keep-alive\r\n", "keep-alive"),
    ):
        with subtests.test(request=request):
            (other,) = await answers(address, request)
            assert shape(other) == shape(plain)
            assert other[1].get("Connection") == connection
            assert by_aiohttp.pop().startswith(request.encode())
    (last,) = await answers(address, GET + "Connection: close\r\n")
    assert (shape(last), last[1]["Connection"]) == (shape(plain), "close")
    assert not by_aiohttp


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/v1/statuses", b'{"message":"x","location":1}'),
        ("POST", "/v1/statuses?x=1", b'{"message":"x"}'),
        ("POST", "/v1/statuses", b'{"message":"x"}'),
        ("POST", "/v1/statuses", b""),
        ("GET", "/v1/users/me", b""),
        ("GET", "/v1/users/1", b"a body"),
        ("GET", "/v1/users/1/relationship/2", b""),
        ("DELETE", "/v1/statuses/7", b""),
        ("PUT", "/v1/users/me/favorites/7", b""),
        ("PATCH", "/v1/users/me", b'{"bio":"x"}'),
        ("DELETE", "/v1/sessions", b""),
        ("DELETE", "/v1/groups/7", b""),
        ("GET", "/2/tweets/search/stream/rules", b""),
        ("POST", "/2/tweets/search/stream/rules", b'{"add":[]}'),
        ("GET", "/openapi.json", b""),
        ("GET", "/console/app.js", b""),
    ],
)
async def test_both_ways_treat_a_request_alike(
    world: World, by_aiohttp: list[bytes], method: str, path: str, body: bytes
) -> None:
    found = []
    for header in ({}, {"TE": "trailers"}):
        user = await world.user("ann" if header else "bob")
        headers = {"Content-Type": "application/json", **header}
        by_aiohttp.clear()
        answer = await world.call(method, path, user, data=body, headers=headers)
        assert bool(by_aiohttp) == (bool(header) or path.startswith("/console"))
        length = len(answer.headers.get("Content-Length", ""))
        text = re.sub(rb"[0-9]{2,}|ann|bob|Ann|Bob", b"#", answer.body)
        found.append((answer.status, set(answer.headers), length, answer.headers.get("Content-Type"), text))
    assert found[0] == found[1]


async def test_a_head_request_gets_the_head_only(address: Address) -> None:
    (plain,), (head,) = await answers(address, GET), await answers(address, GET.replace("GET", "HEAD"))
    assert head[1]["Content-Length"] == plain[1]["Content-Length"]
    assert shape(head)[:2] == shape(plain)[:2]
