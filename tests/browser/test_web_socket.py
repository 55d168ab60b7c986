"""The WebSocket of a real browser, on a page of the server's origin and on a page of another one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from tests.browser.windows import PATIENCE_MS
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

OPEN = """([url, token]) => new Promise((resolve, reject) => {
    window.messages = [];
    window.ended = null;
    window.socket = new WebSocket(url);
    socket.onopen = () => socket.send(JSON.stringify({op: "token", token}));
    socket.onmessage = ({data}) => { messages.push(JSON.parse(data)); resolve(socket.extensions); };
    socket.onclose = ({code, reason, wasClean}) => { ended = {code, reason, wasClean}; resolve(null); };
})"""


@asynccontextmanager
async def visited(browser: Browser, address: str) -> AsyncIterator[Page]:
    """Open a page of the server. Its policy would forbid scripts to connect, so the tab ignores policies."""
    async with await browser.new_page(bypass_csp=True) as tab:
        tab.set_default_timeout(PATIENCE_MS)
        await tab.goto(f"{address}/healthz")
        yield tab


async def waited(tab: Page, check: str) -> Any:
    """Return the value of an expression once it is true."""
    return await (await tab.wait_for_function(check)).json_value()


async def test_a_page_reads_and_changes_its_stream(server: Server, browser: Browser) -> None:
    url = server.address.replace("http", "ws")
    async with Api(server) as api, visited(browser, server.address) as tab:
        ann = await api.user()
        extensions = await tab.evaluate(OPEN, [f"{url}/v1/stream?track=tea", mint(ann)])
        assert extensions is not None, await tab.evaluate("ended")
        assert extensions.startswith("permessage-deflate")
        assert await waited(tab, "messages[0].kind") == "hello"
        await tab.evaluate("""socket.send(JSON.stringify({op: "update", id: 1, parameters: {track: ["milk"]}}))""")
        assert await waited(tab, "messages.find(m => m.id === 1)?.kind") == "effective"
        await api.post(ann, "tea")
        post = await api.post(ann, "milk " + "and long enough to be compressed " * 5)
        found = await waited(tab, "messages.filter(m => m.kind === 'post').at(-1)")
        assert found["status"]["message"] == post["message"]
        await waited(tab, "messages.some(m => m.kind === 'heartbeat')")
        assert await tab.evaluate("messages.filter(m => m.kind === 'post').length") == 1
        listed = (await api.done("GET", "/v1/streams", token=mint(ann)))["streams"]
        await api.done("DELETE", f"/v1/streams/{listed[0]['connection']}", token=mint(ann))
        closed = await waited(tab, "ended")
        assert (closed["code"], closed["wasClean"]) == (1000, True)


async def test_a_page_of_another_origin_is_refused(server: Server, browser: Browser) -> None:
    """The same machine by another name is another origin."""
    url = server.address.replace("http", "ws")
    async with visited(browser, server.address.replace("127.0.0.1", "localhost")) as tab:
        async with tab.expect_console_message(lambda message: "403" in message.text):
            assert await tab.evaluate(OPEN, [f"{url}/v1/stream?track=tea", ""]) is None
        assert (await tab.evaluate("ended"))["code"] == 1006
