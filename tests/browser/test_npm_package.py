"""The npm package in a browser: a page of another origin loads its file, and reads through CORS what is posted."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from tests.clients import npm
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.made_once import once, shared_folder

pytestmark = [pytest.mark.extended, pytest.mark.timeout(npm.TEST_SECONDS)]

PAGE = f"""<!doctype html><title>npm</title>
<script type="importmap">{{"imports": {{"{npm.NAME}": "/node_modules/{npm.NAME}/dist/client.js"}}}}</script>
<script type="module">
  import {{ Client }} from "{npm.NAME}";
  window.listen = async (address, token, transport) => {{
    const stream = new Client(address, {{ token }}).stream({{ track: "package" }}, {{ transport }});
    window.states = () => [stream.state.name, stream.transport ? stream.transport.send ? "websocket" : "events" : ""];
    for await (const event of stream) return [event.kind, event.status.message];
  }};
  window.isReady = true;
</script>"""


class Files(SimpleHTTPRequestHandler):
    """Serves a folder without a word to standard error."""

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def page_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the installed package and the page, and yield the page's origin."""
    npm.own_node()
    installed = once(shared_folder(tmp_path_factory), "npm-installed", npm.install)
    folder: Path = tmp_path_factory.mktemp("page")
    (folder / "node_modules").symlink_to(installed / "node_modules")
    (folder / "index.html").write_text(PAGE, encoding="utf-8")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(page_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that lets pages of that origin, and of no other, read its answers."""
    with Server(tmp_path_factory.mktemp("server"), "--cors-origins", page_address) as running:
        yield running


@pytest.mark.parametrize("transport", ["websocket", "events"])
async def test_a_page_of_another_origin_gets_a_post(
    transport: str, api: Api, server: Server, page_address: str, tab: Page
) -> None:
    uid = await api.user()
    await tab.goto(page_address)
    await tab.wait_for_function("window.isReady")
    await tab.evaluate("all => void (window.first = listen(...all))", [server.address, mint(uid), transport])
    await tab.wait_for_function("states()[0] === 'live'")
    assert await tab.evaluate("states()") == ["live", transport]
    await api.post(uid, "from the package")
    assert await tab.evaluate("first") == ["post", "from the package"]
    assert await tab.evaluate("states()") == ["closed", ""]
