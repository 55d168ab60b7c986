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

SENT = """() => {
  window.sent = [];
  const send = window.fetch;
  window.fetch = (...given) => (window.sent.push(given[1] ?? {}), send(...given));
}"""
"""Keeps the options of each request that the page sends."""

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


CARD, ROW, PROFILE = "article.status", ".user-row", ".profile"

DEEDS = {
    "like": Deed(("status/{commented}", "to comment on"), press("Like, 1 like"), "users/me/likes/{commented}", "true"),
    "bookmark": Deed(("kept", "to comment on"), press("Bookmark"), "users/me/favorites/{commented}", "true"),
    "comment": Deed(
        ("status/{commented}", "a comment"), press("Delete this comment"), "statuses/{commented}/comments", "{comment}"
    ),
    "member of a list": Deed(("lists/{stays}/members", "un0"), press("Remove"), "lists/{stays}/members", "{un0}"),
    "list": Deed(("lists/{goes}", "Goes"), press("Delete list"), "users/{una}/lists", "{goes}"),
    "member of a group": Deed(("groups/{stay}/members", "un0"), press("Remove"), "groups/{stay}/members", "{un0}"),
    "group": Deed(("groups/{go}", "Go"), press("Delete group"), "users/me/groups", "{go}"),
    "leave a group": Deed(("groups/{theirs}", "Theirs"), press("Leave"), "users/me/groups", "{theirs}"),
    "invitation": Deed(("groups", "Secret"), press("Decline"), "users/me/invitations", "{secret}"),
    "talk": Deed(("talks/requests", "hello stranger"), press("Decline"), "talks/requests", "{talk}"),
    "request": Deed(("requests", "un4"), press("Decline"), "users/me/requests", "{un4}"),
    "own request": Deed(("requests/sent", "un1"), press("Cancel request"), "users/me/requests/sent", "{un1}"),
    "subscription": Deed(("subscriptions", "tea-reader"), press("Delete"), "subscriptions", "tea-reader"),
    "unblock": Deed(("privacy", "un2"), press("Unblock", ROW), "users/me/blocks", "{un2}"),
    "unmute": Deed(("privacy/muted", "un3"), press("Unmute", ROW), "users/me/mutes", "{un3}"),
    "unfollow": Deed(("@un0", "Unfollow"), press("Unfollow"), "users/{una}/following", "{un0}"),
    "block": Deed(("@un5", "Follow"), choose("Block", PROFILE), "users/me/blocks", "{un5}"),
    "mute": Deed(("@un8", "Follow"), choose("Mute", PROFILE), "users/me/mutes", "{un8}"),
    "block an author": Deed(("@un6", "#undone"), choose("Block @un6", CARD), "users/me/blocks", "{un6}"),
    "mute an author": Deed(("@un7", "#undone"), choose("Mute @un7", CARD), "users/me/mutes", "{un7}"),
    "post": Deed(("@una", "mine to delete"), choose("Delete", CARD), "users/{una}/statuses", "{mine}"),
}
"""All deeds, with names in the place of the ids that `make` gives them."""

MADE: tuple[tuple[str, str, str, str, dict[str, Any]], ...] = (
    ("", "una", "PATCH", "users/me", {"protected": True}),
    ("", "un1", "PATCH", "users/me", {"protected": True}),
    *(("", "una", "PUT", f"users/me/following/{{{target}}}", {}) for target in ("un0", "un1")),
    ("", "un4", "PUT", "users/me/following/{una}", {}),
    ("", "una", "PUT", "users/me/blocks/{un2}", {}),
    ("", "una", "PUT", "users/me/mutes/{un3}", {}),
    ("", "una", "PUT", "subscriptions/tea-reader", {"parameters": {"track": "tea"}}),
    ("mine", "una", "POST", "statuses", {"message": "mine to delete"}),
    ("commented", "un0", "POST", "statuses", {"message": "to comment on"}),
    *(("", author, "POST", "statuses", {"message": "not for me #undone"}) for author in ("un6", "un7")),
    ("comment", "una", "POST", "statuses/{commented}/comments", {"message": "a comment"}),
    *(("", "una", "PUT", f"users/me/{kind}/{{commented}}", {}) for kind in ("likes", "favorites")),
    *((name.lower(), "una", "POST", "lists", {"name": name}) for name in ("Stays", "Goes")),
    ("", "una", "PUT", "lists/{stays}/members/{un0}", {}),
    *((name.lower(), "una", "POST", "groups", {"name": name, "kind": "public"}) for name in ("Stay", "Go")),
    ("", "un0", "PUT", "groups/{stay}/members/me", {}),
    ("theirs", "un0", "POST", "groups", {"name": "Theirs", "kind": "public"}),
    ("", "una", "PUT", "groups/{theirs}/members/me", {}),
    ("secret", "un8", "POST", "groups", {"name": "Secret", "kind": "private"}),
    ("", "un8", "PUT", "groups/{secret}/members/{una}", {}),
    ("talk", "un8", "POST", "talks", {"people": ["{una}"]}),
    ("", "un8", "POST", "talks/{talk}/messages", {"message": "hello stranger"}),
)
"""What is made before: the name of its id, who makes it, and the request."""


async def make(api: Api, una: dict[str, Any]) -> dict[str, Deed]:
    """Make what can be deleted, left and refused by the user `una`, and return the deeds that do it."""
    ids = {"una": una["id"], **await api.users(f"un{n}" for n in range(9))}
    for name, who, method, path, given in MADE:
        body = {key: [one.format(**ids) for one in value] if key == "people" else value for key, value in given.items()}
        answer = await api.done(method, f"/v1/{path.format(**ids)}", token=mint(ids[who]), json=body or None)
        if name:
            ids[name] = answer["id"]
    return {
        name: Deed((page.format(**ids), text), act, path.format(**ids), needle.format(**ids))
        for name, ((page, text), act, path, needle) in DEEDS.items()
    }


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
    all_deeds = await make(site_api, una)
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
    await expect(titles).to_have_text(["Everything", "From and to people I follow", "Coffee and Redis"])
    for _ in range(2):
        await window.page.locator(".column .menu summary").nth(1).click()
        await window.page.locator(".menu[open]").get_by_role("button", name="Close column").click()
    await expect(titles).to_have_text(["Everything"])
    await window.page.keyboard.press("z")
    await expect(titles).to_have_text(["Everything", "Coffee and Redis"])
    await window.button("Undo").click()
    await expect(titles).to_have_text(["Everything", "From and to people I follow", "Coffee and Redis"])
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


async def test_a_deed_on_its_way_outlives_the_page(site_api: Api, windows: Windows) -> None:
    """Its note is dismissed, so its request is sent at once. A request without `keepalive` ends with the page."""
    uda = await named_user(site_api, "uda")
    await site_api.post(uda["id"], "goes at once")
    window = await windows.open(uda, "/#/people")
    await window.page.evaluate(SENT)
    await window.post("goes at once").locator(".menu summary").click()
    await window.button("Delete").click()
    await window.button("Dismiss").click()
    await expect(window.post("goes at once")).to_have_count(0)
    deletes = await window.page.evaluate("sent.filter(each => each.method === 'DELETE')")
    assert [each["keepalive"] for each in deletes] == [True]


async def _answer_nobody(route: Route) -> None:
    await route.fulfill(status=404, json={"error": {"code": "not_found", "message": "there is no such user"}})


async def test_a_deed_that_the_server_does_not_know_is_undone(site_api: Api, windows: Windows) -> None:
    """Only a delete is done where there is nothing. A user who cannot be muted is not shown as muted."""
    uwe, ute = await named_user(site_api, "uwe"), await named_user(site_api, "ute")
    await site_api.post(ute["id"], "not to be muted")
    window = await windows.open(uwe, "/#/people/@ute")
    window.expects_refusals = True
    await window.page.route("**/v1/users/me/mutes/*", _answer_nobody)
    await choose("Mute @ute", "article.status")(window)
    await expect(window.post("not to be muted")).to_be_hidden()
    await window.button("Dismiss").click()
    await expect(window.page.locator(".notes")).to_contain_text("There is no such user.")
    await expect(window.post("not to be muted")).to_be_visible()
