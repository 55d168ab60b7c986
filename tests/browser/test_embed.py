"""The example of a widget for visitors without an account, on a page of another origin than the server's."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from tests.browser.test_npm_package import Files
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT, Server

pytestmark = pytest.mark.extended

EXAMPLE = ROOT / "examples" / "embed" / "index.html"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """Serve a folder, and yield its origin."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path))) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{served.server_port}"
        served.shutdown()
        thread.join()


async def test_the_widget_shows_the_posts_of_its_blog_and_no_others(page: str, tmp_path: Path, tab: Page) -> None:
    (tmp_path / "server").mkdir()
    with Server(tmp_path / "server", "--cors-origins", page) as running:
        token = mint(None, "stream", within="meta.site:blog")  # type: ignore[arg-type]  # a reader has no id
        text = EXAMPLE.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 30
        address = running.address.replace("http", "ws")
        for placeholder, value in (("ws://127.0.0.1:8000", address), ("<the token>", token)):
            assert placeholder in text
            text = text.replace(placeholder, value)
        (tmp_path / "index.html").write_text(text, encoding="utf-8")
        async with Api(running) as api:
            blog = {"meta": {"site": "blog"}}
            await tab.goto(page)
            items = tab.locator("li")
            await api.until_metric("streams_live", lambda count: count > 0)
            first = await api.post(api.admin, "first <b>", **blog)
            await api.post(api.admin, "elsewhere")
            await api.post(api.admin, "second", **blog)
            await expect(items.first).to_contain_text("second")
            await api.delete(api.admin, first["id"])
            await expect(items).to_have_count(1)
