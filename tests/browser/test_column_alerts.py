"""What tells of posts that nobody saw, and where a column stands and how wide."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Locator, expect

from tests.browser.windows import DESKTOP, PHONE, Window, Windows, named_user
from tests.end_to_end.api import Api

pytestmark = pytest.mark.extended

HIDE = """isHidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
"""Does what the browser does when another tab is shown."""

SPY = """() => {
  window.tones = window.late = 0;
  const now = Date.now();
  Date.now = () => now + window.late;
  window.notices = [];
  const { start } = OscillatorNode.prototype;
  OscillatorNode.prototype.start = function() { window.tones += 1; start.call(this); };
  window.Notification = class {
    static permission = "default";
    static answer = "denied";
    static async requestPermission() { return (this.permission = this.answer); }
    constructor(title, options) { window.notices.push([title, options.body]); }
    close() {}
  };
}"""
"""Counts tones and notifications, answers the question for the permission, and stops the clock of the page."""


def address(*words: str) -> str:
    return f"/#/streams/{quote(json.dumps([{'words': [word]} for word in words]))}"


async def press(column: Locator, name: str) -> None:
    await column.locator(".column-head .menu summary").click()
    await column.get_by_role("button", name=name, exact=True).click()


async def opened(api: Api, windows: Windows, login: str, *words: str) -> tuple[Window, dict[str, Any]]:
    user = await named_user(api, login)
    window = await windows.open(user, address(*words))
    await expect(window.page.locator(".column .state").last).to_contain_text("live")
    return window, user


async def test_posts_that_nobody_saw_are_counted_until_they_are_seen(site_api: Api, windows: Windows) -> None:
    """In the title, the head, and by a sound and a notification, if the user has chosen so. What is seen counts not."""
    window, user = await opened(site_api, windows, "alerted", "alarm", "quiet")
    page, column = window.page, window.page.locator(".column").first
    await page.evaluate(SPY)
    await page.evaluate(HIDE, True)
    await site_api.post(user["id"], "alarm and quiet: nobody asked")
    await page.evaluate(HIDE, False)
    await expect(column.locator(".post")).to_have_count(1)
    await press(column, "Alert me")
    await page.get_by_label("With a notification").click()
    problem = page.get_by_role("dialog").get_by_role("alert")
    await expect(problem).to_contain_text("does not let this page show notifications")
    await expect(page.get_by_label("With a notification")).not_to_be_checked()
    await page.evaluate("Notification.answer = 'granted'")
    await page.get_by_label("With a notification").check()
    await page.get_by_label("With a sound").check()
    await expect(page.get_by_label("Count posts")).to_be_checked()
    assert await window.faults() == []
    await page.keyboard.press("Escape")
    await site_api.post(user["id"], "alarm, and it is seen")
    await expect(column.locator(".post")).to_have_count(2)
    await expect(page).to_have_title("Streams · stream-server")
    await page.evaluate(HIDE, True)
    sign = column.get_by_role("button", name="Alerts are on")
    await expect(sign).to_be_visible()
    await expect(page.locator(".column").last.get_by_role("button", name="Alerts are on")).to_be_hidden()
    for n in range(3):
        await site_api.post(user["id"], f"alarm and quiet {n}")
    await expect(page).to_have_title("(3) Streams · stream-server")
    await expect(column.locator(".unread")).to_have_text("3 unread")
    await expect(page.locator(".column").last.locator(".unread")).to_be_hidden()
    for unread, ms, told in ((4, 2999, [1, 1]), (5, 3000, [2, 1]), (6, 10_000, [3, 2])):  # ms after the first ones
        await page.evaluate("ms => { window.late = ms; }", ms)
        await site_api.post(user["id"], f"alarm at {ms}")
        await expect(page).to_have_title(f"({unread}) Streams · stream-server")
        assert await page.evaluate("[window.tones, window.notices.length]") == told
    titles, (first, last) = zip(*await page.evaluate("window.notices"), strict=True)
    assert titles == ("alarm", "alarm")
    assert first in {"1 new post", "2 new posts", "3 new posts"}
    assert last in {"5 new posts", "6 new posts"}
    await page.evaluate(HIDE, False)
    await expect(page).to_have_title("Streams · stream-server")
    await expect(column.locator(".unread")).to_be_hidden()
    rows = ["alarm and quiet 0", "New since you left", "alarm, and it is seen"]
    await expect(column.locator(".rows > *").filter(has_text=re.compile("|".join(rows)))).to_contain_text(rows)
    await page.evaluate(HIDE, True)
    await site_api.post(user["id"], "alarm at last")
    await expect(page).to_have_title("(1) Streams · stream-server")
    await page.evaluate(HIDE, False)
    await expect(column.locator(".rows > *").nth(1)).to_have_text("New since you left")
    await expect(column.locator(".row-note")).to_have_count(1)
    await page.reload()  # its clock goes on for the next test


async def test_alerts_and_width_stay_with_the_column_and_are_in_no_address(site_api: Api, windows: Windows) -> None:
    """They outlast a reload. A link names neither, and a column that comes by one has no alerts."""
    window, user = await opened(site_api, windows, "keeper", "alarm", "other")
    page = window.page
    column = page.locator(".column").first
    await press(column, "Alert me")
    await page.get_by_label("Count posts").check()
    await page.keyboard.press("Escape")
    await press(column, "Wider")
    await expect(column).to_have_attribute("data-width", "wide")
    wide, normal = [await page.locator(".column").nth(n).bounding_box() for n in range(2)]
    assert wide is not None
    assert normal is not None
    assert wide["width"] > normal["width"] + 100
    assert not any(name in page.url for name in ("alerts", "width"))
    await page.reload()
    await expect(column.locator(".state")).to_contain_text("live")
    await expect(column).to_have_attribute("data-width", "wide")
    await page.evaluate("location.hash = '#/people'")
    await expect(page.locator(".column")).to_have_count(0)
    await site_api.post(user["id"], "alarm while People is shown")
    await expect(page).to_have_title("(1) Home · stream-server")
    await page.evaluate("location.hash = '#/people/talks'")
    await expect(page).to_have_title("(1) Messages · stream-server")
    await page.evaluate("location.hash = '#/streams'")
    await expect(page).to_have_title("Streams · stream-server")
    stranger = [{"words": ["alarm"], "alerts": {"sound": True}, "kept": {"alerts": {}}, "width": "wide"}]
    await page.evaluate("hash => { location.hash = hash; }", f"/streams/{quote(json.dumps(stranger))}")
    await expect(page.locator(".guests")).to_contain_text("come from a link")
    await expect(column).to_have_attribute("data-width", "normal")
    await press(column, "Alert me")
    await expect(page.get_by_label("Count posts")).not_to_be_checked()


async def test_a_column_on_a_phone_that_is_not_on_the_screen_counts_in_its_tab(site_api: Api, windows: Windows) -> None:
    window, user = await opened(site_api, windows, "phoned", "near", "far")
    page = window.page
    await press(page.locator(".column").last, "Alert me")
    await page.get_by_label("Count posts").check()
    await page.keyboard.press("Escape")
    await page.set_viewport_size(PHONE)
    await page.locator(".board").evaluate("board => board.scrollTo(0, 0)")
    tab, current = page.locator(".column-tabs button").nth(1), page.locator(".column-tabs [aria-current=true]")
    await expect(current).to_have_text(["near"])
    await site_api.post(user["id"], "far away")
    await expect(tab).to_have_text("far 1 unread")
    await tab.click()
    await expect(tab).to_have_text("far")
    await expect(current).to_have_text(["far"])
    await page.locator(".board").evaluate("board => board.scrollTo(0, 0)")
    await expect(current).to_have_text(["near"])
    assert await window.faults() == []
    await page.set_viewport_size(DESKTOP)


async def test_a_column_moves_by_dragging_its_head_and_by_keys(site_api: Api, windows: Windows) -> None:
    """It says its new place, and the handle keeps the focus. A drag from a button, or before Esc, moves nothing."""
    window, _ = await opened(site_api, windows, "mover", "one", "two", "three")
    page = window.page
    titles = page.locator(".column h2")
    first = page.locator(".column").first
    start = await first.locator("h2").bounding_box()
    goal = await page.locator(".column").last.locator("h2").bounding_box()
    button = await first.get_by_role("button", name="Pause").bounding_box()
    assert start is not None
    assert goal is not None
    assert button is not None

    async def drag(x: float, y: float, to: float) -> None:
        await page.mouse.move(x, y)
        await page.mouse.down()
        await page.mouse.move(to, y, steps=4)
        await page.mouse.up()

    await drag(button["x"] + 5, button["y"] + 5, goal["x"] + 300)
    await expect(titles).to_have_text(["one", "two", "three"])
    await page.mouse.move(start["x"] + 5, start["y"] + 5)
    await page.mouse.down()
    await page.mouse.move(goal["x"] + 250, start["y"] + 5, steps=4)
    await expect(first).to_have_class(re.compile("dragged"))
    await page.keyboard.press("Escape")
    await expect(first).not_to_have_class(re.compile("dragged"))
    await page.mouse.move(goal["x"] + 300, start["y"] + 5, steps=4)
    await page.mouse.up()
    await expect(titles).to_have_text(["one", "two", "three"])
    await drag(start["x"] + 5, start["y"] + 5, goal["x"] + 300)
    await expect(titles).to_have_text(["two", "three", "one"])
    await expect(page.locator(".notes")).to_contain_text("one is column 3 of 3")
    grip = page.locator(".column", has_text="one").get_by_role("button", name="Move")
    await grip.focus()
    await page.keyboard.press("ArrowLeft")
    await expect(titles).to_have_text(["two", "one", "three"])
    await expect(grip).to_be_focused()
    await expect(page.locator(".notes")).to_contain_text("one is column 2 of 3")
    await page.keyboard.press("ArrowLeft")
    await page.keyboard.press("ArrowLeft")
    await expect(titles).to_have_text(["one", "two", "three"])
    assert await window.faults() == []
