"""The programs of the guide's page about browsers, as they stand there, on a page of another origin than the server."""

import re
import threading
from collections.abc import AsyncIterator, Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from tests.browser.test_npm_package import Files
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT, Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

PASSWORD = "correct horse"

PROGRAMS = dict(
    re.findall(
        r"^```(?:html|js) (\S+)\n(.*?)^```$",
        (ROOT / "docs" / "guide" / "browsers.md").read_text(encoding="utf-8"),
        re.MULTILINE | re.DOTALL,
    )
)

UNNAMED = """
window.unnamed = 0;
const add = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (kind, listener) {
  if (!this.onmessage) this.onmessage = () => { window.unnamed += 1; };
  add.call(this, kind, listener);
};
"""
"""Counts the events that come without a name."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Serve a folder, and yield its origin and the folder."""
    folder = tmp_path_factory.mktemp("page")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(pages: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server that keeps its port, and put the programs for it into the folder."""
    origin, folder = pages
    flags = ("--heartbeat-seconds", "0.2", "--cors-origins", origin)
    with Server(tmp_path_factory.mktemp("server"), *flags) as started:
        started.flags = (*flags, "--port", started.address.rpartition(":")[2])
        for name, text in PROGRAMS.items():
            (folder / name).write_text(text.replace("http://127.0.0.1:8000", started.address), encoding="utf-8")
        (folder / "client.js").write_bytes((ROOT / "stream_server" / "console" / "client.js").read_bytes())
        yield started


@pytest.fixture
def page(pages: tuple[str, Path], server: Server) -> str:
    """Yield the page's address, which is of another origin than the server's."""
    assert pages[0] != server.address
    return pages[0]


@pytest_asyncio.fixture(loop_scope="session")
async def ann(server: Server) -> AsyncIterator[str]:
    """A user, as nobody else posts about coffee. Yields the id; the login is `ann`."""
    async with Api(server) as api:
        answer = await api.call("POST", "/v1/sessions", json={"login": "ann", "password": PASSWORD})
        yield answer.json["user"]["id"] if answer.status == 201 else (await api.sign_up("ann"))["id"]


async def post(server: Server, uid: str, message: str) -> str:
    async with Api(server) as api:  # on a new connection, because the server may be another process
        return str((await api.post(uid, message))["id"])


async def log_in(tab: Page, page: str, password: str = PASSWORD) -> None:
    await tab.goto(page)
    await tab.fill("[name=login]", "ann")
    await tab.fill("[name=password]", password)
    await tab.click("button")


async def test_the_page_misses_and_repeats_nothing(server: Server, page: str, ann: str, tab: Page) -> None:
    """The server is killed, which cuts the connection without a word, and is stopped, which says goodbye."""
    await tab.add_init_script(UNNAMED)
    await log_in(tab, page)
    status, items = tab.get_by_role("status"), tab.locator("li")
    await expect(status).to_have_text("listening")
    gone = await post(server, ann, "coffee for a moment")
    await post(server, ann, "coffee <img src=x onerror=alert(1)>")
    await expect(items).to_have_text(["@ann: coffee for a moment", "@ann: coffee <img src=x onerror=alert(1)>"])
    async with Api(server) as api:
        await api.delete(ann, gone)
    await expect(items).to_have_count(1)
    for end, word in ((server.kill, "cut"), (server.stop, "stopped")):
        end()
        await expect(status).not_to_have_text("listening")
        server.start()
        await post(server, ann, f"coffee after it was {word}")
        await expect(items.last).to_have_text(f"@ann: coffee after it was {word}")
        await expect(status).to_have_text("listening")
    await expect(items).to_have_count(3)
    assert await tab.evaluate("window.unnamed") == 0, "events have names, so onmessage never fires"


async def test_the_page_says_why_it_cannot_listen(server: Server, page: str, ann: str, tab: Page) -> None:
    await log_in(tab, page, "a wrong one")
    await expect(tab.get_by_role("status")).to_contain_text("password")
    await tab.goto(page.replace("127.0.0.1", "localhost"))  # another origin, which the server does not allow
    await tab.fill("[name=login]", "ann")
    await tab.fill("[name=password]", PASSWORD)
    await tab.click("button")
    await expect(tab.get_by_role("status")).to_have_text("Failed to fetch")
    assert ann


async def test_the_page_ends_with_its_stream(server: Server, page: str, ann: str, tab: Page) -> None:
    """A stream that the user has closed elsewhere does not come back by itself."""
    await log_in(tab, page)
    await expect(tab.get_by_role("status")).to_have_text("listening")
    async with Api(server) as api:
        streams = (await api.done("GET", "/v1/streams", token=mint(ann)))["streams"]
        for stream in streams:
            await api.done("DELETE", f"/v1/streams/{stream['connection']}", token=mint(ann))
        await expect(tab.get_by_role("status")).to_contain_text("closed")
        assert (await api.done("GET", "/v1/streams", token=mint(ann)))["streams"] == []


async def test_the_client_follows(server: Server, page: str, ann: str, tab: Page) -> None:
    await tab.goto(page)
    await tab.evaluate(
        """async (credentials) => {
          const { follow } = await import("/with_client.js");
          window.shown = [];
          follow(credentials, (text) => shown.push(text)).catch((error) => shown.push(String(error)));
        }""",
        {"login": "ann", "password": PASSWORD},
    )
    await post(server, ann, "coffee by the client")

    async def is_shown() -> bool:
        return "coffee by the client" in await tab.evaluate("shown")

    await eventually(is_shown, what="the post")


async def test_fetch_resumes_by_the_cursor(server: Server, page: str, ann: str, tab: Page) -> None:
    """After `break` the connection is closed. The next one brings what came meanwhile."""
    await tab.goto(page)
    read = """async ([token, cursor, count]) => {
      const { messages } = await import("/with_fetch.js");
      const found = [];
      for await (const message of messages(token, cursor)) {
        if (message.kind !== "heartbeat") found.push(message);
        if (found.length === count) break;
      }
      return found;
    }"""
    token = mint(ann)
    (hello,) = await tab.evaluate(read, [token, "", 1])
    async with Api(server) as api:

        async def is_closed() -> bool:
            return not (await api.done("GET", "/v1/streams", token=token))["streams"]

        await eventually(is_closed, what="the end of the stream")
    for word in ("one", "two"):
        await post(server, ann, f"coffee {word} 🍵")
    found: list[dict[str, Any]] = await tab.evaluate(read, [token, hello["cursor"], 3])
    assert [one["kind"] for one in found] == ["hello", "post", "post"]
    assert [one["status"]["message"] for one in found[1:]] == ["coffee one 🍵", "coffee two 🍵"]
    refused = await tab.evaluate(f"(asked) => ({read})(asked).catch((error) => error.message)", ["x.y.z", "", 1])
    assert "token" in refused


async def test_a_socket_changes_its_filters(server: Server, page: str, ann: str, tab: Page) -> None:
    await tab.goto(page)
    await tab.evaluate(
        """async (token) => {
          const { open } = await import("/with_socket.js");
          window.heard = [];
          window.socket = open(token, (message) => heard.push(message));
        }""",
        mint(ann),
    )

    async def count(kind: str) -> int:
        return sum(one["kind"] == kind for one in await tab.evaluate("heard"))

    async def heard(kind: str, number: int) -> bool:
        return await count(kind) == number

    await eventually(lambda: heard("hello", 1), what="hello")
    await post(server, ann, "coffee by a socket")
    await eventually(lambda: heard("post", 1), what="the post")
    await tab.evaluate("socket.track(['matcha'])")
    await eventually(lambda: heard("effective", 1), what="the filters")
    await post(server, ann, "coffee no more")
    await post(server, ann, "matcha by a socket")
    await eventually(lambda: heard("post", 2), what="the other post")
    await tab.evaluate("socket.close()")
    texts = [one["status"]["message"] for one in await tab.evaluate("heard") if one["kind"] == "post"]
    assert texts == ["coffee by a socket", "matcha by a socket"]


def test_each_program_of_the_page_is_run() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    of_page = {"index.html", "page.js", "server.js"}
    assert {name for name in PROGRAMS if f'import("/{name}")' in source} | of_page == PROGRAMS.keys()
