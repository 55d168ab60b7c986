"""httpx-sse, a client of server-sent events for Python, on the native stream."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from httpx_sse import EventSource, ServerSentEvent, SSEError, aconnect_sse

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

SECONDS = 60


@asynccontextmanager
async def stream(server: Server, uid: str, track: str, last_event_id: str = "") -> AsyncIterator[EventSource]:
    """Open a stream as httpx-sse does. It keeps no last id, so the caller passes one."""
    headers = {"Authorization": f"Bearer {mint(uid)}"} | ({"Last-Event-ID": last_event_id} if last_event_id else {})
    async with (
        httpx.AsyncClient(base_url=server.address, headers=headers, timeout=SECONDS) as client,
        aconnect_sse(client, "GET", "/v1/stream", params={"track": track}) as source,
    ):
        yield source


async def until(source: EventSource, kind: str, count: int = 1) -> list[ServerSentEvent]:
    """Return all events up to the given number of a kind. Heartbeats keep the loop from waiting forever."""
    heard: list[ServerSentEvent] = []
    async for event in source.aiter_sse():
        heard.append(event)
        if sum(one.event == kind for one in heard) == count:
            return heard
    pytest.fail(f"the stream ended after {heard}")


async def test_hello_comes_first_with_the_time_to_wait(server: Server, api: Api) -> None:
    """The client's parsed event agrees with the data, and has the reconnect delay."""
    async with stream(server, await api.user(), "httpx") as source:
        (hello,) = await until(source, "hello")
    assert hello.retry == 2000
    assert hello.id == hello.json()["cursor"]
    assert hello.json()["kind"] == "hello"


async def test_posts_arrive_in_order(server: Server, api: Api) -> None:
    """Each post is one event, also if its text has line ends, quotes or characters of four bytes."""
    uid = await api.user()
    texts = ["httpx one\ntwo\n\nthree", 'httpx "quoted" \\ and 🍵', "httpx \u2028 last"]
    async with stream(server, uid, "httpx") as source:
        posted = [await api.post(uid, text) for text in texts]
        heard = await until(source, "post", len(texts))
    events = [event for event in heard if event.event == "post"]
    assert [event.json()["status"]["message"] for event in events] == [status["message"] for status in posted]
    assert [event.id for event in events] == [event.json()["cursor"] for event in events]


async def test_it_goes_on_where_it_was(server: Server, api: Api) -> None:
    """With the last id in the header, as an EventSource sends it, the posts since then arrive once."""
    uid = await api.user()
    async with stream(server, uid, "httpxgap") as source:
        first = await api.post(uid, "httpxgap one")
        heard = await until(source, "post")
    assert heard[-1].json()["status"]["id"] == first["id"]
    missed = [await api.post(uid, f"httpxgap {n}") for n in range(3)]
    async with stream(server, uid, "httpxgap", heard[-1].id) as source:
        again = [event.json() for event in await until(source, "post", 3)]
    assert [one["status"]["id"] for one in again if one["kind"] == "post"] == [one["id"] for one in missed]


async def test_a_refusal_is_no_stream(server: Server, api: Api) -> None:
    """The client raises an error, from which status and reason can be read."""
    async with stream(server, await api.user(), "") as source:
        assert source.response.status_code == 400
        with pytest.raises(SSEError):
            await until(source, "hello")
        assert b"track" in await source.response.aread()
