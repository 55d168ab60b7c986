"""What a person works with is in sight: lists below their titles, menus of low rows, and no window of another view."""

import pytest
from playwright.async_api import expect

from tests.browser.test_console_columns import columns
from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api, mint

pytestmark = pytest.mark.extended

IS_BELOW = """list => {
  const [form, title] = [document.querySelector("main .row.end"), document.querySelector("main h1")];
  const top = list.getBoundingClientRect().top;
  return [form, title].every(one => top >= one.getBoundingClientRect().bottom);
}"""


async def test_a_list_stands_below_its_title_and_its_form(site_api: Api, windows: Windows) -> None:
    """Also a list that comes in one piece."""
    ida = await named_user(site_api, "ida_sight")
    token = mint(ida["id"])
    await site_api.done("POST", "/v1/rules", token=token, json={"rules": [{"rule": "ginkgo"}]})
    await site_api.done("PUT", "/v1/subscriptions/trees", token=token, json={"parameters": {"track": "ginkgo"}})
    window = await windows.open(ida, "/#/people")
    for path, text in (("rules", "ginkgo"), ("subscriptions", "trees")):
        await window.go(f"#/people/{path}", text)
        row = window.page.locator("main").get_by_role("listitem").filter(has_text=text)
        await expect(row).to_be_visible()
        assert await row.evaluate(IS_BELOW), path


async def test_the_menu_of_a_low_row_comes_into_sight(site_api: Api, windows: Windows) -> None:
    user = await named_user(site_api, "ivo_sight")
    window = await windows.open(user, columns("juniper"))
    column = window.page.locator(".column").first
    await expect(column.locator(".state")).to_contain_text("live")
    for number in range(12):
        await site_api.post(user["id"], f"juniper {number}")
    rows = column.locator(".post")
    await expect(rows).to_have_count(12)
    low = await rows.evaluate_all(
        "rows => rows.findLastIndex(row => row.getBoundingClientRect().bottom < innerHeight - 10)"
    )
    await rows.nth(low).get_by_label("More about this post").click()
    await expect(rows.nth(low).locator(".menu-list button").last).to_be_in_viewport()


async def test_a_window_closes_with_its_view(site_api: Api, windows: Windows) -> None:
    """Its draft stays."""
    window = await windows.open(await named_user(site_api, "ines_sight"), "/#/people")
    await window.page.get_by_role("link", name="Streams").first.click()
    await window.button("Add a column").first.click()
    await window.page.get_by_role("combobox", name="Words").fill("larch,")
    await window.page.go_back()
    await expect(window.page.get_by_role("heading", name="Home")).to_be_visible()
    await expect(window.page.get_by_role("dialog")).to_have_count(0)
    await window.page.go_forward()
    await window.button("Add a column").first.click()
    await expect(window.page.get_by_role("dialog")).to_contain_text("larch")
