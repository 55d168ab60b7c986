"""The focus stays where the person works: after a choice in a menu, after a deed, and where a form was."""

from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.test_console_columns import columns
from tests.browser.windows import Windows, named_user, session
from tests.challenge_endpoint import challenge_endpoint
from tests.end_to_end.api import Api, mint

pytestmark = pytest.mark.extended

Choose = Callable[[Locator], Awaitable[None]]


async def by_keys(target: Locator) -> None:
    await target.press("Enter")


async def by_mouse(target: Locator) -> None:
    await target.click()


async def chosen(menu: Locator, label: str, choose: Choose) -> None:
    """Open a menu and choose an entry."""
    await choose(menu.locator("summary"))
    await choose(menu.get_by_role("button", name=label, exact=True))


async def closed(page: Page) -> None:
    """Close the window that a choice has opened."""
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("choose", [by_keys, pytest.param(by_mouse, marks=pytest.mark.nightly)])
async def test_a_column_s_menu_has_the_focus_after_a_choice(site_api: Api, windows: Windows, choose: Choose) -> None:
    """A window returns it to the menu. The last column that is closed passes it to a button."""
    user = await named_user(site_api, "foci" + choose.__name__)
    window = await windows.open(user, columns("sloe", "elder"))
    page = window.page
    column = page.locator(".column", has_text="sloe")
    menu = column.locator(".column-head .menu")
    await expect(column.locator(".state")).to_contain_text("live")
    for label in ("Edit filter", "Alert me", "Copy as code", "Save as rule"):
        await chosen(menu, label, choose)
        await closed(page)
        await expect(menu.locator("summary"), label).to_be_focused()
    for label in ("Wider", "Narrower", "Move right", "Move left", "Clear"):
        await chosen(menu, label, choose)
        await expect(menu.locator("summary"), label).to_be_focused()
    await chosen(menu, "Close column", choose)
    await expect(page.locator(".column")).to_be_focused()
    await chosen(page.locator(".column-head .menu"), "Close column", choose)
    await expect(page.locator(".empty").get_by_role("button", name="Add a column")).to_be_focused()


@pytest.mark.parametrize("choose", [by_keys, pytest.param(by_mouse, marks=pytest.mark.nightly)])
async def test_a_post_s_menu_has_the_focus_after_a_choice(site_api: Api, windows: Windows, choose: Choose) -> None:
    """So the arrows go on from the post, in a column and in People."""
    name = "berry" + choose.__name__
    author = (await named_user(site_api, f"au{name}"))["id"]
    reader = await named_user(site_api, f"re{name}")
    await site_api.follow(reader["id"], author)
    window = await windows.open(reader, columns(name))
    page = window.page
    await expect(page.locator(".column .state")).to_contain_text("live")
    for n in range(3):
        await site_api.post(author, f"{name} {n}")
    posts = page.locator(".column .post")
    await expect(posts).to_have_count(3)
    await choose(posts.nth(1).get_by_role("button", name="More about this post"))
    for label in ("JSON", "Report …"):
        if label != "JSON":
            await choose(posts.nth(1).locator(".menu summary"))
        await choose(posts.nth(1).get_by_role("button", name=label, exact=True))
        await closed(page)
        await expect(posts.nth(1).locator(".menu summary"), label).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(posts.nth(2)).to_be_focused()
    await window.go("#/people", f"{name} 2")
    card = window.post(f"{name} 1")
    await chosen(card.locator(".menu"), "JSON", choose)
    await closed(page)
    await expect(card.locator(".menu summary")).to_be_focused()
    await page.keyboard.press("ArrowDown")
    await expect(window.post(f"{name} 0")).to_be_focused()


async def test_a_subscription_s_row_keeps_the_focus(site_api: Api, windows: Windows) -> None:
    """While a button works and after it, after a choice of the menu, and where a form was."""
    user = await named_user(site_api, "felix")
    body = {"parameters": {"track": "sorb"}, "deliver": {"url": challenge_endpoint()}}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(user["id"]), json=body)
    window = await windows.open(user, "/#/people")
    page = window.page
    await window.go("#/people/subscriptions", "active")
    row = page.get_by_role("listitem").filter(has_text="orders").first
    asked, may_answer = await window.hold("**/v1/subscriptions/orders/test")
    test = row.get_by_role("button", name="Test")
    await test.press("Enter")
    await asked.wait()
    await expect(test).to_be_focused()
    await test.press("Enter")  # which does nothing, since the first one still works
    may_answer.set()
    await expect(row).to_contain_text("The test:")
    await expect(test).not_to_have_attribute("aria-busy", "true")
    await expect(test).to_be_focused()
    for before, after in (("Pause", "Resume"), ("Resume", "Pause")):
        await row.get_by_role("button", name=before).press("Enter")
        await expect(row.get_by_role("button", name=after)).to_be_focused()
    menu = row.locator(".menu")
    await chosen(menu, "Copy as code", by_keys)
    await closed(page)
    await expect(menu.locator("summary")).to_be_focused()
    await chosen(menu, "New secret", by_keys)
    await expect(page.locator(".secret")).to_contain_text("whsec_")
    await expect(menu.locator("summary")).to_be_focused()
    for end in ("Cancel", "Save"):
        await chosen(menu, "Edit", by_keys)
        await expect(row.get_by_label("Rule")).to_be_focused()
        await row.get_by_role("button", name=end).press("Enter")
        await expect(row.get_by_role("form")).to_have_count(0)
        await expect(row).to_be_focused()
    await window.button("New subscription").press("Enter")
    await page.get_by_role("button", name="Cancel").press("Enter")
    await expect(window.button("New subscription")).to_be_focused()
    await window.button("New subscription").press("Enter")
    await page.get_by_label("Name").fill("others")
    await page.get_by_label("Rule").fill("sorb")
    await window.button("Make").press("Enter")
    await expect(page.get_by_role("listitem").filter(has_text="others")).to_be_visible()
    await expect(window.button("New subscription")).to_be_focused()


async def test_the_next_request_has_the_focus(site_api: Api, windows: Windows) -> None:
    """An approved one goes, as a declined one does."""
    user = await named_user(site_api, "fidelis")
    await site_api.done("PATCH", "/v1/users/me", token=mint(user["id"]), json={"protected": True})
    for login in ("fest", "fido"):
        await site_api.follow((await named_user(site_api, login))["id"], user["id"])
    window = await windows.open(user, "/#/people")
    await window.go("#/people/requests", "@fest")
    rows = window.page.locator(".user-row")
    await rows.first.get_by_role("button", name="Approve").press("Enter")
    await expect(rows).to_have_count(1)
    await expect(rows).to_be_focused()


async def test_a_saved_rule_has_the_focus(site_api: Api, windows: Windows) -> None:
    window = await windows.open(await named_user(site_api, "fanny"), "/#/people")
    await window.go("#/people/rules", "0 rules of 1,000")
    await window.page.get_by_label("Rule", exact=True).fill("bullace")
    await window.button("Save the rule").press("Enter")
    await expect(window.page.get_by_role("listitem").filter(has_text="bullace")).to_be_focused()


async def test_the_page_of_the_account_has_the_focus_when_it_is_drawn_anew(site_api: Api, windows: Windows) -> None:
    """After the end of all other sessions, and when the streams are loaded again."""
    window = await windows.open(await site_api.sign_up("florian"), "/#/people")
    title = window.page.get_by_role("heading", name="Account")
    await window.go("#/people/account/sessions", "End all other sessions")
    await window.button("End all other sessions …").press("Enter")
    await window.button("End them").press("Enter")
    await expect(window.page.get_by_role("dialog")).to_have_count(0)
    await expect(title).to_be_focused()
    await window.go("#/people/account/streams", "Load again")
    await window.button("Load again").press("Enter")
    await expect(title).to_be_focused()


async def test_the_sign_in_page_has_the_focus_in_its_first_field(site_api: Api, windows: Windows) -> None:
    """At first, and after a session that ended."""
    window = await windows.open(None, "/")
    window.expects_refusals = True
    await expect(window.page.get_by_label("Username or email")).to_be_focused()
    user = await named_user(site_api, "fergus")
    await window.enter(session(user, "read write stream"), "/#/streams")
    await expect(window.page.locator(".column .state").first).to_contain_text("live")
    token = await window.page.evaluate("JSON.parse(localStorage.getItem('stream-server.session')).token")
    await site_api.done("DELETE", "/v1/sessions", token=token)
    await expect(window.page.get_by_role("alert")).to_contain_text("Your session has ended")
    await expect(window.page.get_by_label("Username or email")).to_be_focused()


async def test_what_is_selected_in_a_row_outlasts_its_refresh(site_api: Api, windows: Windows) -> None:
    """What did not change is not drawn anew."""
    user = await named_user(site_api, "fritz")
    body = {"parameters": {"rule": "rowan OR whitebeam"}}
    await site_api.done("PUT", "/v1/subscriptions/orders", token=mint(user["id"]), json=body)
    window = await windows.open(user, "/#/people")
    page = window.page
    await window.go("#/people/subscriptions", "rule: rowan OR whitebeam")
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('.entry-about bdi'))")
    async with page.expect_response("**/v1/subscriptions"):
        pass
    async with page.expect_request("**/v1/subscriptions"):  # so that the answer before is drawn
        pass
    assert await page.evaluate("String(getSelection())") == "rule: rowan OR whitebeam"
