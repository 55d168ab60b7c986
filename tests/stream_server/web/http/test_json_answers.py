"""A JSON answer is written in one go for a usual request, and in aiohttp's way for the others: both look the same."""

import asyncio

import pytest
from aiohttp import web

from stream_server.web.http.responses import JsonResponse

Address = tuple[str, int]

GET, NOT_FOUND = "GET / HTTP/1.1\r\nHost: a\r\n", "GET /nowhere HTTP/1.1\r\nHost: a\r\n"


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
def written(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each JSON answer was written in one go."""
    send, found = JsonResponse.send, list[bool]()

    async def noted(response: JsonResponse, request: web.BaseRequest) -> bool:
        found.append(await send(response, request))
        return found[-1]

    monkeypatch.setattr(JsonResponse, "send", noted)
    return found


async def test_both_ways_of_writing_give_the_same_answer(
    address: Address, written: list[bool], subtests: pytest.Subtests
) -> None:
    (plain,) = await answers(address, GET)
    assert written == [True]
    assert set(plain[1]) >= {
        "Date",
        "Server",
        "Content-Type",
        "Cache-Control",
        "X-Request-Id",
        "X-Content-Type-Options",
    }
    for request, connection in (
        (GET + "Connection: close\r\n", "close"),
        (GET + "Connection: upgrade\r\nUpgrade: websocket\r\n", None),
        (GET.replace("1.1", "1.0"), None),
        (GET.replace("1.1", "1.0") + "Connection: keep-alive\r\n", "keep-alive"),
    ):
        with subtests.test(request=request):
            (other,) = await answers(address, request)
            assert shape(other) == shape(plain)
            assert other[1].get("Connection") == connection
    assert written == [True, False, False, False, False]


async def test_a_head_request_gets_the_head_only(address: Address) -> None:
    (plain,), (head,) = await answers(address, GET), await answers(address, GET.replace("GET", "HEAD"))
    assert head[1]["Content-Length"] == plain[1]["Content-Length"]
    assert shape(head)[:2] == shape(plain)[:2]
