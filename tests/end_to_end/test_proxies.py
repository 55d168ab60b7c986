"""Streams through a real proxy with its defaults, and what makes them work: response headers, heartbeats, HTTP/1.0."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import MEDIA, Consumer
from tests.end_to_end.nginx import Nginx, find_nginx, with_locations
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

FRAMINGS = pytest.mark.parametrize("framing", ["sse", "ndjson"])

needs_nginx = pytest.mark.skipif(find_nginx() is None, reason="nginx is not installed")

GZIP = "gzip on; gzip_proxied any; gzip_min_length 1; gzip_types text/event-stream application/x-ndjson;"

OWN_GZIP = f'proxy_set_header Accept-Encoding ""; {GZIP}'
"""nginx asks the server for plain bytes and compresses them itself."""

TIMEOUT = "proxy_read_timeout 2s;"
"""nginx's read timeout, a minute by default. The server sends heartbeats every 0.2 s."""


@pytest.fixture(scope="module")
def nginx(server: Server) -> Iterator[Nginx]:
    """Start nginx in front of the server. By default it speaks HTTP/1.0 to it and buffers."""
    locations = {
        "/defaults/": (server.address, ""),
        "/http11/": (server.address, "proxy_http_version 1.1;"),
        "/gzip/": (server.address, GZIP),
        "/plain/": (server.address, 'proxy_set_header Accept-Encoding "";'),
        "/own_gzip/": (server.address, OWN_GZIP),
        "/impatient/": (server.address, TIMEOUT),
    }
    with Nginx(with_locations(locations)) as running:
        yield running


@asynccontextmanager
async def through(nginx: Nginx, location: str, uid: str, framing: str) -> AsyncIterator[Consumer]:
    """Open a stream of one author's posts through a location of nginx."""
    headers = {"Authorization": f"Bearer {mint(uid)}", "Accept": MEDIA[framing], "Accept-Encoding": "gzip"}
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=60)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"{nginx.address}/{location}/v1/stream", params={"follow": uid}, headers=headers) as response,
    ):
        assert response.status == 200, await response.text()
        async with Consumer(response, framing) as consumer:
            yield consumer


@needs_nginx
@FRAMINGS
@pytest.mark.parametrize("location", ["defaults", "http11", "gzip", "own_gzip", "plain", "impatient"])
async def test_events_pass_a_proxy_as_they_happen(api: Api, nginx: Nginx, location: str, framing: str) -> None:
    """With buffering, with HTTP/1.0 upstream and with compression, each event arrives while the stream is open."""
    uid = await api.user()
    async with through(nginx, location, uid, framing) as consumer:
        await consumer.until(lambda c: c.of("hello"))
        for turn in range(3):
            posted = await api.post(uid, f"number {turn}")
            await consumer.until(lambda c: c.events)
            assert consumer.received == [("post", posted["id"])]
            consumer.messages.clear()
            assert not consumer.ended
        assert consumer.response.headers.get("Content-Encoding") == (None if location == "plain" else "gzip")


@needs_nginx
@FRAMINGS
async def test_heartbeats_keep_a_connection_that_a_proxy_would_close(api: Api, nginx: Nginx, framing: str) -> None:
    """For twice the proxy's timeout there is no event. Then an event arrives over the same connection."""
    uid = await api.user()
    async with through(nginx, "impatient", uid, framing) as consumer:
        await consumer.until(lambda c: len(c.of("heartbeat")) >= 20)  # for 4 s; the proxy's timeout is 2 s
        posted = await api.post(uid, "still there")
        await consumer.until(lambda c: ("post", posted["id"]) in c.received)
        assert not consumer.ended
