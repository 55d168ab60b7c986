"""A page that the browser keeps for Back, and shows again as it was: it has no stream while nobody sees it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.chromium import chromium
from tests.browser.test_console_columns import SCOPES, columns
from tests.browser.windows import Window, named_user, opened, session
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SEE = """
window.shown = [];
addEventListener("pageshow", (event) => window.shown.push(event.persisted));
"""
"""Tells whether the page was kept, and not loaded again."""

SESSION = "stream-server.session"


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def keeper() -> AsyncIterator[Browser]:
    async with chromium(keeps_pages=True) as browser:
        yield browser


VIEWS = {
    "streams": (columns("numbat"), ".column .state", ".column .post .text"),
    "people": ("/#/people", ".connection", "article.status .post-text"),
}
"""The address, what says how the connection does, and the texts of the posts."""


class Kept:
    """A window of a user whose pages are kept."""

    def __init__(self, window: Window, api: Api, user: dict[str, Any]) -> None:
        self.window = window
        self.page = window.page
        self.api = api
        self.user = user

    async def streams(self) -> int:
        return len((await self.api.done("GET", "/v1/streams", token=mint(self.user["id"])))["streams"])

    async def leave(self) -> None:
        """Go to another page of the server, and wait until the one that was left has no stream."""
        await self.page.evaluate("location.href = '/console/icon.svg'")
        await self.page.wait_for_url("**/icon.svg")

        async def is_alone() -> bool:
            return await self.streams() == 0

        await eventually(is_alone, what="no stream of the page that was left")

    async def go_back(self) -> None:
        """Go back to the page that was kept. Playwright's own way back waits until a page is loaded."""
        await self.page.evaluate("history.back()")
        await self.page.wait_for_url("**/#/**", wait_until="commit")
        assert await self.page.evaluate("window.shown") == [False, True], "the page was kept, and not loaded again"


@pytest_asyncio.fixture(loop_scope="session")
async def kept(keeper: Browser, site_server: Server, site_api: Api, request: Any) -> AsyncIterator[Kept]:
    async with opened(site_server, keeper) as window:
        await window.page.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        await window.page.add_init_script(SEE)
        await window.page.goto(f"{site_server.address}/console/icon.svg")
        user = await named_user(site_api, f"walda_{len(request.node.name)}")
        await window.page.evaluate(f"kept => localStorage.setItem('{SESSION}', kept)", session(user, SCOPES))
        yield Kept(window, site_api, user)
        assert window.failures == []


@pytest.mark.parametrize("view", VIEWS)
async def test_a_kept_page_has_no_stream_and_goes_on_after_back(kept: Kept, view: str) -> None:
    """What happened meanwhile stands there once, without a gap."""
    address, *places = VIEWS[view]
    state, texts = map(kept.page.locator, places)
    author = await named_user(kept.api, f"walther_{view}")
    await kept.api.follow(kept.user["id"], author["id"])
    await kept.window.open(address)
    await expect(state).to_contain_text("live")
    wanted = ["numbat before"]
    await kept.api.post(author["id"], wanted[0])
    await expect(texts).to_have_text(wanted)
    assert await kept.streams() == 1

    await kept.leave()
    for number in range(3):
        wanted.insert(0, f"numbat {number}")
        await kept.api.post(author["id"], wanted[0])
    await kept.go_back()
    await expect(texts).to_have_text(wanted)
    await expect(state).to_contain_text("live")
    wanted.insert(0, "numbat after")
    await kept.api.post(author["id"], wanted[0])
    await expect(texts).to_have_text(wanted)
    await expect(kept.page.locator(".row-note")).to_have_count(0)


async def test_a_kept_page_shows_nothing_of_a_session_that_has_ended(kept: Kept) -> None:
    """Another tab signed out while the page was kept, and Back leads to the door."""
    texts = kept.page.locator(VIEWS["people"][2])
    await kept.api.post(kept.user["id"], "wombats")
    await kept.window.open("/#/people")
    await expect(texts).to_have_text("wombats")
    await kept.leave()
    await kept.page.evaluate(f"localStorage.removeItem('{SESSION}')")
    await kept.go_back()
    await expect(kept.page.locator(".sign-in")).to_contain_text("Your session has ended.")
    await expect(texts).to_have_count(0)
