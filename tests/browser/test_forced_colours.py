"""Forced colours: what a colour tells elsewhere is told there by an outline, a border, or a colour that stays."""

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.windows import DESKTOP, PHONE, opened, sign_in_link
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

IS_LIKE = """([selector, property, system]) => {
  const [element, pseudo] = selector.split("::");
  const plain = document.body.appendChild(document.createElement("i"));
  plain.style.color = system;
  const colour = getComputedStyle(plain).color;
  plain.remove();
  const found = document.querySelector(element);
  return found && getComputedStyle(found, pseudo && `::${pseudo}`)[property] === colour;
}"""
"""Whether the first such element, or its pseudo-element, has in a property a colour of the system. Null without it."""


NOTE = "rows => rows.append(Object.assign(document.createElement('p'), { className: 'row-note gap' }))"


async def chosen(page: Page, selector: str, colour: str = "outlineColor") -> None:
    """What is chosen has the colour for that."""
    await page.wait_for_function(IS_LIKE, arg=[selector, colour, "Highlight"])


async def kept(page: Page, selector: str, colour: str, plain: str) -> None:
    """A sign is told from what is plain."""
    await page.locator(selector.partition("::")[0]).first.wait_for(state="attached")
    assert await page.evaluate(IS_LIKE, [selector, colour, plain]) is False, selector


async def test_what_colours_tell_is_told_without_them(site_api: Api, site_server: Server, browser: Browser) -> None:
    uid = await site_api.user()
    await site_api.post(uid, "halva for two")
    looks = {"viewport": DESKTOP, "forced_colors": "active", "reduced_motion": "reduce"}
    async with opened(site_server, browser, **looks) as window:
        page = window.page
        await window.follow(await sign_in_link(site_server, uid))
        column = await window.add_column("halva")
        await expect(column.locator(".post")).to_have_count(1)
        await chosen(page, ".views a[aria-current]")
        await kept(page, ".column .state::before", "color", "CanvasText")
        await kept(page, ".column .unread", "backgroundColor", "Canvas")
        await kept(page, ".post mark", "backgroundColor", "Canvas")
        menu = column.locator(".column-head .menu summary")
        await menu.click()
        await column.get_by_role("button", name="Look back", exact=True).click()
        slider = column.get_by_role("slider", name="Choose a time")
        await expect(column.locator(".counts")).to_contain_text("1 post")
        await slider.press("End")
        await chosen(page, ".brush-mark", "fill")
        await menu.click()
        await column.get_by_role("button", name="Clear", exact=True).click()
        await kept(page, ".note", "borderLeftColor", "CanvasText")
        await window.button("Dismiss").click()
        # No note of a gap comes without a fault of the server: this is one as a column draws it.
        await column.locator(".rows").evaluate(NOTE)
        await kept(page, ".row-note.gap", "borderLeftColor", "CanvasText")

        await page.keyboard.press("c")
        await page.get_by_role("combobox", name="Words").fill("halva,")
        await page.get_by_label("Further conditions").press_sequentially("-fr")
        await chosen(page, ".completions [aria-selected=true]")
        assert (
            await page.get_by_role("dialog")
            .locator(".primary")
            .first.evaluate("button => getComputedStyle(button).borderTopStyle")
            == "double"
        )
        await page.keyboard.press("Escape")
        await page.keyboard.press("Escape")
        await page.set_viewport_size(PHONE)
        await chosen(page, ".column-tabs [aria-current=true]")
        await page.set_viewport_size(DESKTOP)
        await window.go("#/operations", "Workers")
        await chosen(page, "button[aria-pressed=true]")
        await expect(page.locator(".connection")).to_have_text("live")
        await kept(page, ".connection::before", "backgroundColor", "Canvas")
        assert window.failures == []
