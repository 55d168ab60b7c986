"""The console in a tab, as a person uses it, with everything that the browser complained of."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, Locator, Page, expect

from stream_server.store.social.sign_ins import SignIn
from stream_server.store.store import Store
from tests.end_to_end.server import Server

SCOPES = frozenset({"read", "write", "stream", "firehose", "admin"})

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", e => violations.push(`${e.violatedDirective} ${e.blockedURI}`));
"""
"""Keeps what the page's policy forbade, before any script of the page runs."""


async def sign_in_link(server: Server, uid: str, scopes: frozenset[str] = SCOPES) -> str:
    """Return a link as `stream-server sign-in` prints it."""
    store = Store(server.redis_url, timeout_seconds=5)
    try:
        return f"{server.address}/#code={await store.sign_ins.issue(SignIn(uid, scopes))}"
    finally:
        await store.close()


class ConsolePage:
    """A tab with the console. ``problems`` are errors of scripts and of the console, and requests to other hosts."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.address = address
        self.problems: list[str] = []
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        page.on("console", lambda one: self.problems.append(f"console: {one.text}") if one.type == "error" else None)
        page.on("request", lambda request: self._check_host(request.url))
        page.on("websocket", lambda socket: self._check_host(socket.url))

    def _check_host(self, url: str) -> None:
        if urlsplit(url).netloc != urlsplit(self.address).netloc and not url.startswith("data:"):
            self.problems.append(f"another host: {url}")

    async def open(self, link: str) -> None:
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

    async def close_columns(self) -> None:
        """Close columns with which a new user begins."""
        for _ in range(await self.page.locator(".column").count()):
            await self.page.locator(".menu summary").first.click()
            await self.page.locator(".menu[open] >> text=Close column").click()

    async def violations(self) -> list[str]:
        return list(await self.page.evaluate("window.violations"))


async def texts(column: Locator) -> list[str]:
    """Return the texts of a column's posts, the oldest first."""
    return (await column.locator(".post .text").all_text_contents())[::-1]


@asynccontextmanager
async def opened(server: Server, browser: Browser, **options: Any) -> AsyncIterator[ConsolePage]:
    """Open an empty tab with a storage of its own. The page must not break its policy."""
    context = await browser.new_context(**options)
    await context.add_init_script(WATCH)
    console = ConsolePage(await context.new_page(), server.address)
    try:
        yield console
        assert await console.violations() == []
    finally:
        await context.close()
