"""axe-core finds no fault in the console's views, light, dark and on a phone."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser import axe
from tests.browser.windows import opened, sign_in_link
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

LOOKS: tuple[dict[str, Any], ...] = (
    {"color_scheme": "light", "reduced_motion": "reduce"},
    {"color_scheme": "dark", "viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
)

VIEWS = ("#/people", "#/operations")


async def look(found: dict[str, list[str]], browser: Browser, server: Server, look: dict[str, Any], uid: str) -> None:
    """Open each view and window in a tab, and check it."""
    async with opened(server, browser, bypass_csp=True, **look) as console:
        page, mode = console.page, look["color_scheme"]
        await page.add_init_script(axe.source())
        await page.goto(server.address)
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        found[f"{mode}: the door"] = await axe.faults(page)
        await page.goto(await sign_in_link(server, uid))
        await expect(page.locator(".column").first.locator(".state")).to_contain_text("live")
        await page.keyboard.press("c")
        await page.keyboard.type("tea,cake,")
        await page.get_by_role("button", name="Try the past hour").click()
        await expect(page.locator(".trial")).to_contain_text("1 post in")
        found[f"{mode}: the builder"] = await axe.faults(page)
        await page.get_by_role("button", name="Add column").click()
        await page.locator(".column").last.get_by_role("button", name="Why").first.click()
        found[f"{mode}: streams"] = await axe.faults(page)
        for view in VIEWS:
            await page.evaluate("hash => { location.hash = hash; }", view)
            await expect(page.locator("main h1, main h2").first).to_be_attached()
            found[f"{mode}: {view}"] = await axe.faults(page)
        await page.goto(f"{server.address}/docs")
        await expect(page.locator("h1").first).to_be_visible()
        found[f"{mode}: /docs"] = await axe.faults(page)


async def test_the_views_have_no_fault(api: Api, server: Server, browser: Browser) -> None:
    """The policy of the page is off here, since it lets no foreign script in; the other tests run under it."""
    uid = await api.user()
    await api.post(uid, "tea for two, and #cake at https://example.com")
    found: dict[str, list[str]] = {}
    for one in LOOKS:
        await look(found, browser, server, one, uid)
    told = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not told, "\n".join(told)
    assert len(found) == len(LOOKS) * (4 + len(VIEWS))
