"""Lists that come in pages and live: each item stands once, and what waits follows its edits and deletes."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.windows import KEEP, Window, Windows, named_user, opened, session
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended


async def test_ones_own_comment_stands_once(site_api: Api, windows: Windows) -> None:
    """Also when the page with it is read after it was written."""
    uma = await named_user(site_api, "uma")
    token = mint(uma["id"])
    status = await site_api.post(uma["id"], "potoroo")
    path = f"/v1/statuses/{status['id']}/comments"
    await asyncio.gather(*(site_api.done("POST", path, token=token, json={"message": f"old {n}."}) for n in range(40)))
    window = await windows.open(uma, f"/#/people/status/{status['id']}")
    comments = window.page.locator(".comment")
    await expect(window.page.get_by_text("A reply is a post of your own.")).to_be_visible()
    await expect(window.button("Show more comments")).to_be_visible()
    await window.page.get_by_label("Your comment").fill("the newest")
    await window.button("Comment").last.click()
    await expect(comments.last).to_contain_text("the newest")
    await window.button("Show more comments").click()
    await expect(comments).to_have_count(41)
    await expect(comments.last).to_contain_text("the newest")
    await expect(window.button("Show more comments")).to_be_hidden()


async def test_what_waits_is_edited_and_deleted(site_api: Api, windows: Windows) -> None:
    """On the page of mentions, while the focus is in the list. A list that begins anew has nothing that waits."""
    vic, wes = await named_user(site_api, "vic"), await named_user(site_api, "wes")
    await site_api.follow(vic["id"], wes["id"])
    await site_api.post(wes["id"], "@vic numbat")
    window = await windows.open(vic, "/#/people/mentions")
    await expect(window.page.locator(".connection")).to_have_text("live")
    await window.post("@vic numbat").focus()
    kept = await site_api.post(wes["id"], "@vic quokka")
    gone = await site_api.post(wes["id"], "@vic wombat")
    await expect(window.button("2 new posts")).to_be_visible()
    token = mint(wes["id"])
    await site_api.done("DELETE", f"/v1/statuses/{gone['id']}", token=token)
    await site_api.done("PATCH", f"/v1/statuses/{kept['id']}", token=token, json={"message": "@vic quokkas"})
    await window.button("1 new post").click()
    await expect(window.page.locator("article.status .post-text")).to_have_text(["@vic quokkas", "@vic numbat"])

    await window.go("#/people", "quokkas")
    await window.post("@vic numbat").focus()
    await site_api.post(wes["id"], "a bilby")
    await expect(window.button("1 new post")).to_be_visible()
    await window.button("Top").click()
    await expect(window.page.locator("article.status")).to_have_count(3)
    await expect(window.page.locator(".feed-new")).to_be_hidden()


Deed = Callable[[Window, Locator], Awaitable[Any]]


async def open_json(window: Window, post: Locator) -> None:
    await post.get_by_label("More").click()
    await post.get_by_role("button", name="JSON").click()
    await window.page.mouse.move(550, 300)


async def close_json(window: Window, post: Locator) -> None:
    await window.page.keyboard.press("Escape")
    await expect(window.page.locator("dialog")).to_have_count(0)  # which its event `close` takes away
    await window.page.mouse.move(5, 5)


async def leave_it(window: Window, post: Locator) -> None:
    await window.page.mouse.move(5, 5)


HOLDS: dict[str, tuple[Deed, Deed]] = {
    "pointer": (lambda window, post: post.hover(), leave_it),
    "focus": (lambda window, post: post.focus(), lambda window, post: post.blur()),
    "selection": (
        lambda window, post: post.evaluate(
            "post => getSelection().selectAllChildren(post.querySelector('.post-text'))"
        ),
        lambda window, post: window.page.evaluate("getSelection().empty()"),
    ),
    "menu": (
        lambda window, post: post.evaluate("post => { post.querySelector('details').open = true; }"),
        lambda window, post: post.evaluate("post => { post.querySelector('details').open = false; }"),
    ),
    "window": (open_json, close_json),
}
"""What somebody does at a post, and what ends it."""


@pytest.mark.parametrize("holds", HOLDS)
async def test_the_home_stays_where_it_is_while_somebody_is_at_it(site_api: Api, windows: Windows, holds: str) -> None:
    """As the columns do: what comes is counted, and shown when the reader goes on."""
    hold, release = HOLDS[holds]
    reader, author = await named_user(site_api, f"hope_{holds}"), await named_user(site_api, f"hugh_{holds}")
    await site_api.follow(reader["id"], author["id"])
    await site_api.post(author["id"], "an emu")
    window = await windows.open(reader, "/#/people")
    await expect(window.page.locator(".connection")).to_have_text("live")
    await window.page.mouse.move(5, 5)
    await hold(window, window.post("an emu"))
    before = await window.post("an emu").bounding_box()
    await site_api.post(author["id"], "a kiwi")
    await site_api.post(author["id"], "a rhea")
    await expect(window.page.locator(".feed-new")).to_have_text("2 new posts")
    assert await window.post("an emu").bounding_box() == before
    await release(window, window.post("an emu"))
    await expect(window.page.locator("article.status .post-text")).to_have_text(["a rhea", "a kiwi", "an emu"])
    await expect(window.page.locator(".feed-new")).to_be_hidden()


async def test_a_list_that_was_emptied_says_so(site_api: Api, windows: Windows) -> None:
    """While what empties it can be undone, and after what filled it was undone."""
    xara, xeno = await named_user(site_api, "xara"), await named_user(site_api, "xeno")
    token = mint(xara["id"])
    await site_api.done("PUT", f"/v1/users/me/blocks/{xeno['id']}", token=token)
    await site_api.done("PUT", "/v1/subscriptions/orders", token=token, json={"parameters": {"track": "sloe"}})
    window = await windows.open(xara, "/#/people", scope="read write stream admin")
    page = window.page
    await page.route("**/v1/admin/suspensions?*", lambda route: route.fulfill(json={"users": [], "next": None}))
    for path, row, deed, words in (
        ("privacy/blocked", page.locator(".user-row"), "Unblock", "You have blocked nobody."),
        ("subscriptions", page.locator("main").get_by_role("listitem"), "Delete", "You have no subscriptions yet."),
    ):
        none = page.get_by_text(words)
        await window.go(f"#/people/{path}", deed)
        await expect(none).to_be_hidden()
        await row.get_by_role("button", name=deed).click()
        await expect(none).to_be_visible()
        assert await window.faults() == []
        await window.button("Undo").click()
        await expect(none).to_be_hidden()
        await expect(row).to_be_visible()
    await window.go("#/people/moderation/suspensions", "Nobody is suspended.")
    await page.get_by_label("Username").fill("xeno")
    await window.button("Suspend").click()
    await expect(page.get_by_text("Nobody is suspended.")).to_be_hidden()
    await window.button("Undo").click()
    await expect(page.get_by_text("Nobody is suspended.")).to_be_visible()


LATER = """() => {
  const now = Date.now;
  Date.now = () => now() + 120_000;
}"""
"""Two minutes pass in the page."""


async def test_ages_go_on_within_a_minute(site_api: Api, site_server: Server, browser: Browser) -> None:
    """On a page of which no stream tells. No timer of a minute runs in this page."""
    yola, yann = await named_user(site_api, "yola"), await named_user(site_api, "yann")
    await site_api.post(yann["id"], "a dugong")
    async with opened(site_server, browser) as window:
        await window.page.add_init_script(
            "{ const set = setInterval; window.setInterval = (work, ms) => (ms < 60000 ? set(work, ms) : 0); }"
        )
        await window.page.goto(f"{site_server.address}/console/icon.svg")
        await window.page.evaluate(KEEP, session(yola, "read write stream"))
        await window.open("/#/people/@yann")
        age = window.post("a dugong").locator("time")
        await expect(age).to_have_text(re.compile(r"^(now|\d+ s ago|1 min ago)$"))
        await window.page.evaluate(LATER)
        await expect(age).to_have_text(re.compile(r"^[2-9] min ago$"))
