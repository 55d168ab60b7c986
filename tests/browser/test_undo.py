"""Deeds in the console: what is undone never happens, and all else does, also if the page is left."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from playwright.async_api import Route, expect

from tests.browser.windows import Window, Windows, named_user
from tests.end_to_end.api import Api, mint
from tests.waiting import eventually

pytestmark = pytest.mark.extended

ELSEWHERE = "{}/console/icon.svg"
"""An address without scripts, to which one leaves the console."""

TIMERS = """() => {
  const [set, clear] = [setTimeout, clearTimeout];
  let last = 0;
  window.waits = new Map();
  window.setTimeout = (work, ms, ...more) => (ms === 8000 ? (waits.set(--last, work), last) : set(work, ms, ...more));
  window.clearTimeout = id => void (waits.delete(id) || clear(id));
}"""
"""Keeps the timers of eight seconds in `waits`, for a test that lets them end."""

Act = Callable[[Window], Awaitable[None]]


class Deed(NamedTuple):
    """A deed on a page of the console.

    Attributes:
        page: Where it is done, and a text by which one knows that the page is drawn.
        act: Does it.
        path: What the API answers the user there shows whether it was done.
        needle: A text that is in that answer either before or after the deed.
    """

    page: tuple[str, str]
    act: Act
    path: str
    needle: str


def press(name: str, within: str = ".page") -> Act:
    async def act(window: Window) -> None:
        await window.page.locator(within).get_by_role("button", name=name, exact=True).first.click()

    return act


def choose(name: str, within: str) -> Act:
    """Choose an entry of the menu in an element."""

    async def act(window: Window) -> None:
        await window.page.locator(within).first.locator(".menu summary").click()
        await press(name, within)(window)

    return act


async def deeds(api: Api, una: dict[str, Any]) -> dict[str, Deed]:
    """Make what can be deleted, left and refused by the user `una`, and return the deeds that do it."""
    others = await api.users(f"un{n}" for n in range(9))
    vic, wes, xan, yve, zed, quy, ray, sue, tom = others.values()
    uid = una["id"]

    async def call(who: str, method: str, path: str, **body: Any) -> Any:
        return await api.done(method, f"/v1/{path}", token=mint(who), json=body or None)

    await call(uid, "PATCH", "users/me", protected=True)
    await call(wes, "PATCH", "users/me", protected=True)
    for who, target in ((uid, vic), (uid, wes), (zed, uid)):
        await call(who, "PUT", f"users/me/following/{target}")
    for relation, target in (("blocks", xan), ("mutes", yve)):
        await call(uid, "PUT", f"users/me/{relation}/{target}")
    mine = (await api.post(uid, "mine to delete"))["id"]
    commented = (await api.post(vic, "to comment on"))["id"]
    for author in (ray, sue):
        await api.post(author, "not for me #undone")
    comment = (await call(uid, "POST", f"statuses/{commented}/comments", message="a comment"))["id"]
    for kind in ("likes", "favorites"):
        await call(uid, "PUT", f"users/me/{kind}/{commented}")
    lists = [(await call(uid, "POST", "lists", name=name))["id"] for name in ("Stays", "Goes")]
    await call(uid, "PUT", f"lists/{lists[0]}/members/{vic}")
    about = {"kind": "public"}
    groups = [(await call(uid, "POST", "groups", name=name, **about))["id"] for name in ("Stay", "Go")]
    await call(vic, "PUT", f"groups/{groups[0]}/members/me")
    theirs = (await call(vic, "POST", "groups", name="Theirs", **about))["id"]
    await call(uid, "PUT", f"groups/{theirs}/members/me")
    secret = (await call(tom, "POST", "groups", name="Secret", kind="private"))["id"]
    await call(tom, "PUT", f"groups/{secret}/members/{uid}")
    talk = (await call(tom, "POST", "talks", people=[uid]))["id"]
    await call(tom, "POST", f"talks/{talk}/messages", message="hello stranger")
    card, row = "article.status", ".user-row"
    conversation = f"status/{commented}"
    names = {uid: login for login, uid in others.items()}
    return {
        "like": Deed((conversation, "to comment on"), press("Like, 1 like"), f"users/me/likes/{commented}", "true"),
        "bookmark": Deed(("kept", "to comment on"), press("Bookmark"), f"users/me/favorites/{commented}", "true"),
        "comment": Deed(
            (conversation, "a comment"), press("Delete this comment"), f"statuses/{commented}/comments", comment
        ),
        "member of a list": Deed(
            (f"lists/{lists[0]}/members", names[vic]), press("Remove"), f"lists/{lists[0]}/members", vic
        ),
        "list": Deed((f"lists/{lists[1]}", "Goes"), press("Delete list"), f"users/{uid}/lists", lists[1]),
        "member of a group": Deed(
            (f"groups/{groups[0]}/members", names[vic]), press("Remove"), f"groups/{groups[0]}/members", vic
        ),
        "group": Deed((f"groups/{groups[1]}", "Go"), press("Delete group"), "users/me/groups", groups[1]),
        "leave a group": Deed((f"groups/{theirs}", "Theirs"), press("Leave"), "users/me/groups", theirs),
        "invitation": Deed(("groups", "Secret"), press("Decline"), "users/me/invitations", secret),
        "talk": Deed(("talks/requests", "hello stranger"), press("Decline"), "talks/requests", talk),
        "request": Deed(("requests", names[zed]), press("Decline"), "users/me/requests", zed),
        "own request": Deed(("requests/sent", names[wes]), press("Cancel request"), "users/me/requests/sent", wes),
        "unblock": Deed(("privacy", names[xan]), press("Unblock", row), "users/me/blocks", xan),
        "unmute": Deed(("privacy/muted", names[yve]), press("Unmute", row), "users/me/mutes", yve),
        "unfollow": Deed(("@" + names[vic], "Unfollow"), press("Unfollow"), f"users/{uid}/following", vic),
        "block": Deed(("@" + names[quy], "Follow"), choose("Block", ".profile"), "users/me/blocks", quy),
        "mute": Deed(("@" + names[tom], "Follow"), choose("Mute", ".profile"), "users/me/mutes", tom),
        "block an author": Deed(
            ("@" + names[ray], "#undone"), choose(f"Block @{names[ray]}", card), "users/me/blocks", ray
        ),
        "mute an author": Deed(
            ("@" + names[sue], "#undone"), choose(f"Mute @{names[sue]}", card), "users/me/mutes", sue
        ),
        "post": Deed(("@una", "mine to delete"), choose("Delete", card), f"users/{uid}/statuses", mine),
    }  # fmt: skip


async def state(api: Api, uid: str, all_deeds: dict[str, Deed]) -> dict[str, bool]:
    """Return for each deed whether its needle is in the answer of the API."""
    paths = {deed.path for deed in all_deeds.values()}
    answers = {path: (await api.call("GET", f"/v1/{path}", token=mint(uid))).body.decode() for path in paths}
    return {name: deed.needle in answers[deed.path] for name, deed in all_deeds.items()}


async def do(window: Window, deed: Deed) -> None:
    """Do it in the window, and wait for the note that tells of it."""
    await window.go(f"#/people/{deed.page[0]}", deed.page[1])
    await window.page.evaluate("document.querySelectorAll('.note').forEach(note => note.classList.add('old'))")
    await deed.act(window)
    await expect(window.page.locator(".note:not(.old)")).to_have_count(1)


async def test_what_is_undone_never_happens_and_all_else_does(site_api: Api, windows: Windows) -> None:
    """Each deed in turn is undone, by its button or by a key: no write was sent. Left alone, each is done."""
    una = await named_user(site_api, "una")
    all_deeds = await deeds(site_api, una)
    before = await state(site_api, una["id"], all_deeds)
    window = await windows.open(una, "/#/people")
    written: list[str] = []
    window.page.on("request", lambda each: written.append(each.url) if each.method in {"PUT", "DELETE"} else None)
    for n, deed in enumerate(all_deeds.values()):
        await do(window, deed)
        assert written == []
        await (window.button("Undo").click() if n % 2 else window.page.keyboard.press("z"))
        await expect(window.page.locator(".notes")).to_be_empty()
        await expect(window.page.locator("main")).to_contain_text(deed.page[1])
    assert await state(site_api, una["id"], all_deeds) == before
    assert written == []

    for deed in all_deeds.values():
        await do(window, deed)
        assert await window.page.locator(".note").count() <= 3
    await expect(window.page.locator(".note").last).to_contain_text("Post deleted")
    await window.page.goto(ELSEWHERE.format(site_api.server.address))

    async def is_all_done() -> bool:
        return not any(now == before[name] for name, now in (await state(site_api, una["id"], all_deeds)).items())

    await eventually(is_all_done, what="the deeds after the page was left")


async def test_a_deed_waits_while_its_note_is_looked_at(site_api: Api, windows: Windows) -> None:
    """It is done some seconds after the note lost the focus. What waits stays hidden on other pages, and is told."""
    ula, vim = await named_user(site_api, "ula"), await named_user(site_api, "vim")
    status = await site_api.post(ula["id"], "gone for good")
    await site_api.post(ula["id"], "stays")
    window = await windows.open(ula, "/#/people")
    await window.page.evaluate(TIMERS)
    await window.post("gone for good").locator(".menu summary").click()
    await window.button("Delete").click()
    await expect(window.post("gone for good")).to_be_hidden()
    await expect(window.page.get_by_role("status").filter(has_text="Post deleted")).to_be_visible()
    await expect(window.post("stays")).to_be_focused()
    assert await window.faults() == []
    assert await window.page.evaluate("waits.size") == 1
    await window.button("Undo").focus()
    assert await window.page.evaluate("waits.size") == 0
    await window.page.evaluate("location.hash = '#/people/@ula'")  # which gives the focus to the title of the page
    await expect(window.page.get_by_role("heading", name="ula")).to_be_visible()
    await expect(window.post("stays")).to_be_visible()
    await expect(window.post("gone for good")).to_be_hidden()
    assert await window.page.evaluate("waits.size") == 1
    assert (await site_api.call("GET", f"/v1/statuses/{status['id']}", token=mint(ula["id"]))).status == 200
    await window.page.evaluate("[...waits.values()].forEach(work => work())")
    await expect(window.page.locator(".notes")).to_be_empty()
    await expect(window.post("gone for good")).to_have_count(0)
    assert (await site_api.call("GET", f"/v1/statuses/{status['id']}", token=mint(ula["id"]))).status == 404

    window.expects_refusals = True
    await window.page.route(re.compile("/v1/users/me/mutes/"), lambda route: route.abort())
    await window.go("#/people/@vim", "Follow")
    await choose("Mute", ".profile")(window)
    await expect(window.page.locator(".pill", has_text="muted")).to_be_visible()
    await window.button("Dismiss").click()
    await expect(window.page.locator(".note.danger")).to_contain_text("cannot be reached")
    await expect(window.page.locator(".pill", has_text="muted")).to_have_count(0)
    muted = await site_api.done("GET", "/v1/users/me/mutes", token=mint(ula["id"]))
    assert vim["id"] not in str(muted)
    await window.page.goto(ELSEWHERE.format(site_api.server.address))


async def test_a_closed_column_comes_back(site_api: Api, windows: Windows) -> None:
    """It returns to its place, with its filter. Signing out sends what waits."""
    uri = await named_user(site_api, "uri")
    await site_api.post(uri["id"], "soon gone")
    window = await windows.open(uri, "/#/streams")
    titles = window.page.locator(".column h2")
    await expect(titles).to_have_text(["Everything", "People I follow", "Coffee and Redis"])
    for _ in range(2):
        await window.page.locator(".column .menu summary").nth(1).click()
        await window.page.locator(".menu[open]").get_by_role("button", name="Close column").click()
    await expect(titles).to_have_text(["Everything"])
    await window.page.keyboard.press("z")
    await expect(titles).to_have_text(["Everything", "Coffee and Redis"])
    await window.button("Undo").click()
    await expect(titles).to_have_text(["Everything", "People I follow", "Coffee and Redis"])
    await window.go("#/people/@uri", "soon gone")
    await choose("Delete", "article.status")(window)
    window.expects_refusals = True
    await window.page.route("**/v1/sessions", _answer_nothing)
    await window.page.locator(".who").click()
    await window.button("Sign out").click()
    await expect(window.page.get_by_role("heading", name="Sign in")).to_be_visible()
    mine = await site_api.done("GET", f"/v1/users/{uri['id']}/statuses", token=mint(uri["id"]))
    assert mine["statuses"] == []


async def _answer_nothing(route: Route) -> None:
    await route.fulfill(status=204)
