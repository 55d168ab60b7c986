"""No view is wider or taller than a small phone, and nothing in one lies beyond its edges."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.test_console_columns import columns
from tests.browser.windows import opened, sign_in_link
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

BEYOND = """() => {
  const { clientWidth: width, clientHeight: height, scrollWidth, scrollHeight } = document.documentElement;
  const scrolls = element => !["visible", "clip"].includes(getComputedStyle(element).overflowX);
  const inStrip = element => {
    for (let at = element.parentElement; at && !at.matches("main, dialog, body"); at = at.parentElement)
      if (scrolls(at) && at.getBoundingClientRect().right <= width + 1) return true;
    return false;
  };
  const isOut = element => {
    const { left, right, width: wide } = element.getBoundingClientRect();
    return wide > 1 && (right > width + 1 || left < -1) && element.checkVisibility() && !inStrip(element);
  };
  const found = [...document.querySelectorAll("body *")].filter(isOut).map(each => each.outerHTML.slice(0, 80));
  for (const each of document.querySelectorAll("main, dialog"))
    if (scrolls(each) && each.scrollWidth > each.clientWidth) found.push(`${each.className} scrolls sideways`);
  if (scrollWidth > width) found.push(`the page is ${scrollWidth - width} px too wide`);
  if (scrollHeight > height) found.push(`the page is ${scrollHeight - height} px too tall`);
  return found;
}"""
"""Returns what is beyond the edges of the page and in no strip that scrolls by itself."""

LONG = "Wolfeschlegelsteinhausenbergerdorffwelchevoralte" + "w" * 200


async def content(api: Api, uid: str) -> dict[str, str]:
    """Make something to show on each page, with long words and unread counts. Return the pages and a text on each."""
    other = await api.user()
    token, theirs = mint(uid), mint(other)
    await api.done("PUT", f"/v1/users/me/following/{uid}", token=theirs)
    await api.done("PUT", f"/v1/users/me/following/{other}", token=token)
    status = await api.post(other, LONG, place={"name": "A place with a long name"}, location={"lon": 1, "lat": 2})
    quoted = await api.post(uid, "and a quote of it", origin=status["id"])
    await api.done("POST", f"/v1/statuses/{status['id']}/comments", token=theirs, json={"message": LONG})
    for kind in ("likes", "favorites"):
        await api.done("PUT", f"/v1/users/me/{kind}/{status['id']}", token=token)
    about = {"name": LONG[:48], "description": LONG[:199]}
    made = await api.done("POST", "/v1/lists", token=token, json={**about, "private": True})
    await api.done("PUT", f"/v1/lists/{made['id']}/members/{other}", token=token)
    group = await api.done("POST", "/v1/groups", token=token, json={**about, "kind": "announcement"})
    talk = await api.done("POST", "/v1/talks", token=theirs, json={"people": [uid]})
    for _ in range(3):
        await api.done("POST", f"/v1/talks/{talk['id']}/messages", token=theirs, json={"message": LONG})
    login = quoted["login"]
    return {
        "people": "Wolfe", "people/notifications": "followed you", "people/talks": "Wolfe", "people/lists": "Wolfe",
        f"people/lists/{made['id']}": "Delete list", f"people/lists/{made['id']}/members": "Remove",
        "people/groups": "Wolfe", f"people/groups/{group['id']}": "Delete group", "people/mentions": "Mentions",
        f"people/groups/{group['id']}/members": login, f"people/status/{status['id']}": "A place",
        f"people/@{status['login']}": "Unfollow", f"people/@{login}": "quote of it", f"people/@{login}/followers": "@",
        "people/kept": "Wolfe", "people/requests": "Nobody waits", "people/privacy": "blocked nobody",
        f"people/talks/{talk['id']}": "Send", "operations": "Workers",
    }  # fmt: skip


async def check(found: dict[str, list[str]], page: Page, name: str) -> None:
    found[name] = await page.evaluate(BEYOND)


async def test_no_page_is_wider_than_a_phone(api: Api, server: Server, browser: Browser) -> None:
    """Each view with its windows, menus and forms open. A text for screen readers widens no page either."""
    uid = await api.user()
    pages = await content(api, uid)
    phone: dict[str, Any] = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
    found: dict[str, list[str]] = {}
    async with opened(server, browser, **phone) as console:
        page = console.page
        await page.goto(server.address)
        await check(found, page, "sign in")
        await page.get_by_role("button", name="Create an account").click()
        await check(found, page, "sign up")
        await console.follow(await sign_in_link(server, uid))
        await expect(page.locator(".column .post").first).to_be_visible()
        await check(found, page, "streams")
        await page.locator(".menu summary").first.click()
        await check(found, page, "menu of a column")
        for key, opener in (("c", "builder"), ("n", "composer"), ("?", "keys")):
            await page.keyboard.press("Escape")
            await page.keyboard.press(key)
            await expect(page.get_by_role("dialog")).to_be_visible()
            await check(found, page, opener)
        await page.keyboard.press("Escape")
        for path, text in pages.items():
            await page.evaluate("path => { location.hash = `#/${path}`; }", path)
            await expect(page.locator("main")).to_contain_text(text)
            await check(found, page, path)
        await page.evaluate("location.hash = '#/people'")
        card = page.locator("article.status").last
        for deed in ("Comment", "Reply", "Quote"):
            await card.get_by_role("button", name=deed).first.click()
            await check(found, page, deed)
        await card.get_by_text("Place, language").click()
        await card.locator(".menu summary").click()
        await check(found, page, "menu of a post")
        await card.locator(".menu").get_by_role("button", name="Mute").click()
        await expect(page.get_by_role("button", name="Undo")).to_be_visible()
        await check(found, page, "note")
        await page.goto(f"{server.address}/docs")
        await expect(page.locator("h1").first).to_be_visible()
        await check(found, page, "docs")
    told = [f"{name}: {fault}" for name, faults in found.items() for fault in faults]
    assert not told, "\n".join(told)


CUT = """tab => {
  const name = tab.querySelector("bdi");
  const { left, right } = name.getBoundingClientRect();
  const { left: begin, right: end } = tab.getBoundingClientRect();
  const isInside = left >= begin && right <= end;
  return { isInside, isCut: name.scrollWidth > name.clientWidth, how: getComputedStyle(name).textOverflow };
}"""


async def test_a_tab_with_a_long_name_tells_that_it_is_cut(
    site_api: Api, site_server: Server, browser: Browser
) -> None:
    """Its begin is seen, and "…" for the rest."""
    async with opened(site_server, browser, viewport={"width": 360, "height": 640}) as window:
        await window.follow(await sign_in_link(site_server, await site_api.user()))
        await window.open(columns("a-word-for-which-nobody-has-the-room-on-a-phone", "short"))
        tabs = window.page.locator(".column-tabs button:has(bdi)")
        await expect(tabs).to_have_count(2)
        long, short = [await tab.evaluate(CUT) for tab in await tabs.all()]
        assert long == {"isInside": True, "isCut": True, "how": "ellipsis"}
        assert not short["isCut"]
