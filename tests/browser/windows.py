"""Windows of the console: one browser context for each signed-in user, and what must never happen in any of them."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Route, ViewportSize, expect

from stream_server.store.social.sessions import SignIn
from stream_server.store.store import Store
from tests.browser import axe
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

SCOPES = frozenset({"read", "write", "stream", "firehose", "admin"})
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", e => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
"""Keeps what the page's policy forbade, before any script of the page runs."""

PATIENCE_MS = 1000 * PATIENCE
DESKTOP: ViewportSize = {"width": 1100, "height": 700}
PHONE: ViewportSize = {"width": 390, "height": 844}
KEEP = """kept => {
  localStorage.clear();
  sessionStorage.clear();
  if (kept) localStorage.setItem("stream-server.session", kept);
}"""
ENTER = """([kept, path]) => {
  history.replaceState(null, "", path);
  localStorage.setItem("stream-server.session", kept);
  dispatchEvent(new StorageEvent("storage", { key: "stream-server.session" }));
}"""
"""Signs in as another tab of the browser would, without loading the page again."""

LEAVE = """() => {
  localStorage.clear();
  sessionStorage.clear();
  dispatchEvent(new StorageEvent("storage", { key: null }));
}"""
"""Signs out in the same way."""

REFUSED = ("Failed to load resource", "WebSocket connection to")
"""How the browser reports an answer of 4xx or 5xx, which a test may want."""


class Reachable(Protocol):
    """A server as its clients reach it: directly or through a proxy."""

    @property
    def address(self) -> str: ...

    @property
    def redis_url(self) -> str: ...


@dataclass
class Window:
    """A tab of one user. ``failures`` are script errors, console errors, policy reports and foreign requests."""

    page: Page
    server: Reachable
    failures: list[str] = field(default_factory=list)
    expects_refusals: bool = False

    def watch(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.failures.append(f"script: {error}"))
        self.page.on("console", self._hear)
        self.page.on("request", lambda request: self._see(request.url))
        self.page.on("websocket", lambda socket: self._see(socket.url.replace("ws", "http", 1)))
        self.page.on("dialog", lambda dialog: self.failures.append(f"dialog: {dialog.message}"))

    def _hear(self, message: ConsoleMessage) -> None:
        is_wanted = self.expects_refusals and message.text.startswith(REFUSED)
        if message.type in {"error", "warning"} and not is_wanted:
            self.failures.append(f"console: {message.text} {message.location['url']}")

    def _see(self, url: str) -> None:
        if not url.startswith((self.server.address, "data:", "about:")):
            self.failures.append(f"foreign request: {url}")

    async def open(self, path: str) -> None:
        """Open a path of the server, such as ``/#/people``, as from a bookmark."""
        await self.page.goto("about:blank")
        await self.page.goto(self.server.address + path)

    async def follow(self, link: str) -> None:
        """Follow a link that signs in, and wait until the view Streams hears keys."""
        await self.page.goto(link)
        await expect(self.page.locator(".board")).to_be_visible()

    async def add_column(self, *words: str) -> Locator:
        """Add a column for posts with any of the words, by the keyboard alone. Return the column."""
        before = await self.page.locator(".column").count()
        await self.page.keyboard.press("c")
        await self.page.keyboard.type("".join(f"{word}," for word in words))
        await self.page.keyboard.press("Enter")
        column = self.page.locator(".column").nth(before)
        await expect(column.locator(".state")).to_have_text(re.compile("live"))
        return column

    async def enter(self, kept: str, path: str) -> None:
        """Sign in with a session as the console keeps it, without loading the page again."""
        await self.page.evaluate(ENTER, [kept, path])

    async def hold(self, path: str) -> tuple[asyncio.Event, asyncio.Event]:
        """Hold back the answers to a path. Return an event of the first answer, and the one that lets all go."""
        asked, may_answer = asyncio.Event(), asyncio.Event()

        async def answer_late(route: Route) -> None:
            answer = await route.fetch()
            asked.set()
            await may_answer.wait()
            await route.fulfill(response=answer)

        await self.page.route(path, answer_late)
        return asked, may_answer

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def post(self, text: str) -> Locator:
        """The cards that show a text."""
        return self.page.locator("article.status").filter(has_text=text)

    async def go(self, path: str, text: str) -> None:
        """Open a page of the view People by its address, as a link does, and wait for a text in it."""
        await self.page.evaluate("hash => { location.hash = hash; }", path)
        await expect(self.page.locator("main")).to_contain_text(text)

    async def faults(self) -> list[str]:
        """Return what axe-core finds in the page as it is now."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(axe.source())
        return await axe.faults(self.page)

    async def write(self, text: str) -> None:
        """Post a status by the form of the page."""
        await self.page.locator(".page .composer textarea").first.fill(text)
        await self.page.locator(".page .composer button.primary").first.click()


class Windows:
    """The windows of a test. A context takes long to make, so the next test gets those of the test before."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self.browser = browser
        self._server = server
        self._all: list[Window] = []
        self._used = 0

    async def open(self, user: dict[str, Any] | None, path: str, *, scope: str = "read write stream") -> Window:
        """Open a path in a window of a user, with a session as the console keeps it. None: without a session."""
        if self._used == len(self._all):
            context = await self.browser.new_context(viewport=DESKTOP, reduced_motion="reduce")
            await context.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # the picture has no other
            self._all.append(Window(await context.new_page(), self._server))
            self._all[-1].watch()
        window = self._all[self._used]
        self._used += 1
        kept = "" if user is None else session(user, scope)
        if path.startswith("/#/") and window.page.url.startswith(f"{self._server.address}/#/"):
            await window.enter(kept, path)
            return window
        await window.page.goto(f"{self._server.address}/console/icon.svg")  # no scripts yet
        await window.page.evaluate(KEEP, kept)
        await window.open(path)
        return window

    async def close(self) -> None:
        """End the test: no window may have failed. The windows stay for the next test, with nobody signed in.

        Less those that expect refusals: one may still be on its way.
        """
        failures = [failure for window in self._all[: self._used] for failure in window.failures]
        used, self._all = self._all[: self._used], self._all[self._used :]
        for window in used:
            await window.page.unroute_all()
            for page in window.page.context.pages[1:]:  # of a test that failed
                await page.close()
            if window.expects_refusals:
                await window.page.context.close()
                continue
            await window.page.evaluate(LEAVE)
            window.failures.clear()
            self._all.append(window)
        self._used = 0
        assert failures == [], failures


@asynccontextmanager
async def opened(server: Reachable, browser: Browser, **options: Any) -> AsyncIterator[Window]:
    """Open an empty window with a storage of its own. Its pages must not break their policy."""
    context = await browser.new_context(**options)
    await context.add_init_script(WATCH)
    window = Window(await context.new_page(), server)
    window.watch()
    try:
        yield window
        assert await window.page.evaluate("window.violations") == []
    finally:
        await context.close()


async def sign_in_link(server: Reachable, uid: str, scopes: frozenset[str] = SCOPES) -> str:
    """Return a link as `stream-server sign-in` prints it."""
    store = Store(server.redis_url, timeout_seconds=PATIENCE)
    try:
        return f"{server.address}/#code={await store.sign_ins.issue(SignIn(uid, scopes))}"
    finally:
        await store.close()


def session(user: dict[str, Any], scope: str, token: str = "") -> str:
    """Return a session as the console keeps it, with ``token`` or one with ``scope``."""
    end = (time.time() + 600) * 1000
    given = {"token": token or mint(user["id"], scope), "refreshToken": "none", "user": user}
    return json.dumps({**given, "expires": end, "refreshAt": end})


async def named_user(api: Api, login: str, name: str = "") -> dict[str, Any]:
    """Create a user without a password and return the user's own card."""
    uid = (await api.users([login]))[login]
    if name:
        await api.done("PATCH", "/v1/users/me", token=mint(uid), json={"name": name})
    user: dict[str, Any] = await api.done("GET", "/v1/users/me", token=mint(uid))
    return user
