"""Windows as low as zoom makes them (WCAG 1.4.10): 1280 by 1024 pixels are 640 by 512 at 200 %, 320 by 256 at 400 %."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Browser, Page, ViewportSize, expect

from tests.browser.test_phone import BEYOND
from tests.browser.windows import Window, opened, sign_in_link
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

SIZES: dict[tuple[int, int], float] = {(844, 390): 0.5, (640, 512): 0.65, (320, 256): 0.5}
"""The least share of the height that is content when the page is scrolled, by the size of the window. The first is a
phone that lies on its side."""

POSTS = {(640, 512): 3, (320, 256): 1}
"""The least number of posts of two or three lines that are seen as a whole."""

WHOLE = """scroller => {
  const { top, bottom } = scroller.getBoundingClientRect();
  const isWhole = box => box.top >= Math.max(0, top) - 1 && box.bottom <= Math.min(innerHeight, bottom) + 1;
  return [...scroller.querySelectorAll(".post")].filter(post => isWhole(post.getBoundingClientRect())).length;
}"""

SHARE = """selector => {
  const content = document.querySelector(selector);
  content.scrollIntoView({ block: "nearest" });
  for (let at = content; at; at = at.parentElement) if (at === content || at.matches("dialog, .docs-page"))
    at.scrollTop = Math.min(300, at.scrollHeight / 2);
  const sticks = element => {
    for (let at = element; at && at !== content; at = at.parentElement)
      if (["sticky", "fixed"].includes(getComputedStyle(at).position)) return true;
    return false;
  };
  const { left, right } = content.getBoundingClientRect();
  const across = (Math.max(left, 0) + Math.min(right, innerWidth)) / 2;
  const places = Array.from({ length: innerHeight / 4 }, (_, index) => 4 * index + 2);
  const isContent = y => {
    const found = document.elementFromPoint(across, y);
    return content.contains(found) && !sticks(found);
  };
  return places.filter(isContent).length / places.length;
}"""
"""Returns the share of the window's height that shows content which scrolls. Bars that stick to an edge are none."""

COVERED = """() => {
  const root = document.querySelector("dialog[open]") ?? document;
  const isSeen = element => {
    element.focus();
    const { left, top, width, height } = element.getBoundingClientRect();
    return [0.5, 0.1, 0.9].some(across => [0.5, 0.1, 0.9].some(down =>
      element.contains(document.elementFromPoint(left + across * width, top + down * height))));
  };
  document.activeElement?.blur(); // what has the focus already does not scroll
  const controls = root.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']");
  return [...controls].filter(each => each.checkVisibility() && !each.disabled && !isSeen(each))
    .map(each => `covered: ${each.outerHTML.slice(0, 80)}`);
}"""
"""Returns the controls of which nothing can be seen and pressed when they have the focus (WCAG 2.4.11)."""


async def check(page: Page, name: str, content: str) -> list[str]:
    """Return what is wrong in the page as it is, at each size."""
    found: list[str] = []
    for (width, height), least in SIZES.items():
        await page.set_viewport_size(ViewportSize(width=width, height=height))
        share = await page.evaluate(SHARE, content)
        faults = [f"{share:.0%} is content"] if share < least else []
        faults += [*await page.evaluate(BEYOND), *await page.evaluate(COVERED)]
        found += [f"{name}, {width} by {height}: {fault}" for fault in faults]
    return found


async def open_builder(window: Window) -> None:
    await window.page.keyboard.press("c")
    await window.page.keyboard.type("oats,")
    await window.button("Try the past hour").click()
    await expect(window.page.locator(".trial")).to_contain_text("posts in")


async def open_view(window: Window, path: str, text: str) -> None:
    await window.page.keyboard.press("Escape")
    await window.go(path, text)


def dialog(key: str) -> Callable[[Window], Awaitable[None]]:
    async def opens(window: Window) -> None:
        await window.page.keyboard.press("Escape")
        await window.page.keyboard.press(key)
        await expect(window.page.get_by_role("dialog")).to_be_visible()

    return opens


async def test_content_has_the_room_and_nothing_is_covered(
    browser: Browser, site_server: Server, site_api: Api
) -> None:
    uid, other = await site_api.user(), await site_api.user()
    await site_api.done("PUT", f"/v1/users/me/following/{other}", token=mint(uid))
    talk = await site_api.done("POST", "/v1/talks", token=mint(other), json={"people": [uid]})
    message = {"message": "oats are what this talk is about, " * 20}
    for _ in range(3):
        await site_api.done("POST", f"/v1/talks/{talk['id']}/messages", token=mint(other), json=message)
    for turn in range(10):
        await site_api.post(uid, f"oats and a text that is as long as those of people are, number {turn}")
    found: list[str] = []
    async with opened(site_server, browser, viewport={"width": 640, "height": 512}, reduced_motion="reduce") as window:
        page = window.page
        await page.goto(site_server.address)
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        found += await check(page, "the door", "main")
        await window.follow(await sign_in_link(site_server, uid))
        column = await window.add_column("oats")
        await expect(column.locator(".post")).to_have_count(10)
        for (width, height), least in POSTS.items():
            await page.set_viewport_size(ViewportSize(width=width, height=height))
            await column.scroll_into_view_if_needed()
            count = await column.locator(".scroller").evaluate(WHOLE)
            found += [f"{width} by {height}: {count} whole posts"] if count < least else []
            strip = await page.locator(".column-tabs").bounding_box()
            assert strip is not None
            assert strip["height"] > 20
            await column.locator(".column-head summary").click()
            menu = await column.locator(".column-head .menu-list").bounding_box()
            assert menu is not None
            assert menu["y"] >= 0
            assert menu["y"] + menu["height"] <= height
            await page.keyboard.press("Escape")
        await column.get_by_role("button", name="Why").first.click()
        found += await check(page, "streams", ".column:last-of-type .scroller")
        await open_builder(window)
        found += await check(page, "builder", "dialog .window-body")
        for key in ("n", "?"):
            await dialog(key)(window)
            found += await check(page, f"window of {key}", "dialog")
        views = {
            "#/people": "oats", "#/people/notifications": "Notifications", f"#/people/talks/{talk['id']}": "oats",
            "#/operations": "Workers",
        }  # fmt: skip
        for path, text in views.items():
            await open_view(window, path, text)
            found += await check(page, path, "main")
        await page.goto(f"{site_server.address}/docs#statuses_post")
        await expect(page.locator(".docs-try").first).to_be_visible()
        found += await check(page, "/docs", "main")
    assert not found, "\n".join(found)


async def test_looking_back_leaves_room_for_posts(browser: Browser, site_server: Server, site_api: Api) -> None:
    """The form folds when the time is chosen, and the menu unfolds it."""
    uid = await site_api.user()
    for turn in range(5):
        await site_api.post(uid, f"barley and a text that is as long as those of people are, number {turn}")
    low = ViewportSize(width=320, height=256)
    async with opened(site_server, browser, viewport=low, reduced_motion="reduce") as window:
        await window.follow(await sign_in_link(site_server, uid))
        column = await window.add_column("barley")
        await expect(column.locator(".post")).to_have_count(5)
        for _ in range(2):
            await column.locator(".column-head summary").click()
            await column.get_by_role("button", name="Look back").click()
            await column.get_by_role("button", name="Show", exact=True).click()
            await expect(column.locator(".state")).to_contain_text("5 posts")
            await column.scroll_into_view_if_needed()
            assert await column.locator(".scroller").evaluate(WHOLE) >= 1
            await expect(column.locator(".look-back")).to_be_hidden()


TO_MAP = "dialog => { dialog.scrollTop += dialog.querySelector('.map').getBoundingClientRect().top - 300; }"
"""Scrolls the builder so that it could scroll both up and down with a finger on the map."""


async def swipe(page: Page, cdp: Any, across: int, down: int) -> float:
    """Move a finger over the map and rest there, so that nothing rolls on. Return how far the builder has scrolled."""
    window = page.get_by_role("dialog")
    await window.evaluate(TO_MAP)
    before: float = await window.evaluate("dialog => dialog.scrollTop")
    box = await page.locator(".map").bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    points = [{"x": x + across * step / 5, "y": y + down * step / 5} for step in (0, 1, 2, 3, 4, 5, 5, 5, 5, 5)]
    await cdp.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
    for point in points[1:]:
        await cdp.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    await cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    after: float = await window.evaluate("dialog => dialog.scrollTop")
    return after - before


async def test_a_finger_scrolls_past_the_map_and_draws_when_told(
    browser: Browser, site_server: Server, site_api: Api
) -> None:
    """A mouse draws at once, and keys make a box, as before."""
    phone: dict[str, Any] = {"viewport": {"width": 390, "height": 600}, "has_touch": True, "is_mobile": True}
    uid = await site_api.user()
    async with opened(site_server, browser, **phone) as window:
        page = window.page
        await window.follow(await sign_in_link(site_server, uid))
        await page.keyboard.press("c")
        boxes, drawing = page.locator(".map rect"), page.get_by_role("checkbox", name="Draw a box")
        cdp = await page.context.new_cdp_session(page)
        assert await swipe(page, cdp, 0, -100) > 50
        await drawing.tap()
        await expect(drawing).to_be_checked()
        assert await swipe(page, cdp, 60, 40) == 0
        await expect(boxes).to_have_count(1)
        await expect(drawing).not_to_be_checked()
        assert await swipe(page, cdp, 0, 100) < -50
        await expect(boxes).to_have_count(1)
        await page.locator(".map").hover(position={"x": 200, "y": 20})  # it waits until nothing scrolls any more
        await page.mouse.down()
        await page.locator(".map").hover(position={"x": 240, "y": 60})
        await page.mouse.up()
        await expect(boxes).to_have_count(2)
        await page.locator(".map").press("Enter")
        await expect(boxes).to_have_count(3)
        assert window.failures == []
