"""Windows of the console: one browser context for each signed-in user, and what must never happen in any of them."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Locator, Page, Request, expect

from tests.browser import axe
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

PATIENCE_MS = 20_000
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
REFUSED = "Failed to load resource"
"""How the browser reports an answer of 4xx or 5xx, which a test may want."""


@dataclass
class Window:
    """A tab of one user. ``failures`` are script errors, console errors, policy reports and foreign requests."""

    page: Page
    server: Server
    user: dict[str, Any]
    failures: list[str] = field(default_factory=list)
    expects_refusals: bool = False

    def watch(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("pageerror", lambda error: self.failures.append(f"script: {error}"))
        self.page.on("console", self._hear)
        self.page.on("request", self._see)
        self.page.on("dialog", lambda dialog: self.failures.append(f"dialog: {dialog.message}"))

    def _hear(self, message: ConsoleMessage) -> None:
        is_wanted = self.expects_refusals and message.text.startswith(REFUSED)
        if message.type in {"error", "warning"} and not is_wanted:
            self.failures.append(f"console: {message.text}")

    def _see(self, request: Request) -> None:
        if not request.url.startswith((self.server.address, "data:", "about:")):
            self.failures.append(f"foreign request: {request.url}")

    async def open(self, path: str) -> None:
        """Open a path of the server, such as ``/#/people``, as from a bookmark."""
        await self.page.goto("about:blank")
        await self.page.goto(self.server.address + path)

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
        await self.page.evaluate(axe.source())
        return await axe.faults(self.page)

    async def write(self, text: str) -> None:
        """Post a status by the form of the page."""
        await self.page.locator(".page .composer textarea").first.fill(text)
        await self.page.locator(".page .composer button.primary").first.click()


async def open_window(
    browser: Browser, server: Server, user: dict[str, Any] | None, *, scope: str = "read write stream", **more: Any
) -> Window:
    """Open a context of its own for a user, with a session as the console keeps it; None is nobody."""
    kept = [] if user is None else [{"name": "stream-server.session", "value": json.dumps(_session(user, scope))}]
    state: Any = {"cookies": [], "origins": [{"origin": server.address, "localStorage": kept}]}
    context = await browser.new_context(
        storage_state=state, **({"viewport": DESKTOP, "reduced_motion": "reduce"} | more)
    )
    window = Window(await context.new_page(), server, user or {})
    window.watch()
    return window


def _session(user: dict[str, Any], scope: str) -> dict[str, Any]:
    end = (time.time() + 600) * 1000
    return {"token": mint(user["id"], scope), "refreshToken": "none", "user": user, "expires": end, "refreshAt": end}


async def named_user(api: Api, login: str, name: str = "") -> dict[str, Any]:
    """Create a user without a password and return the user's own card."""
    uid = (await api.users([login]))[login]
    if name:
        await api.done("PATCH", "/v1/users/me", token=mint(uid), json={"name": name})
    user: dict[str, Any] = await api.done("GET", "/v1/users/me", token=mint(uid))
    return user
