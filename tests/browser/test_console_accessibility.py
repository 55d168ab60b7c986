"""axe-core finds no fault in the console's states, as they look light, dark, in forced colours, zoomed and on a phone.

Each state is opened once, and checked in two looks, so that all looks come about equally often: ``--full`` checks all.
A new view is one row of `VIEWS`, and another state one row of `STATES`.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser import axe
from tests.browser.windows import DESKTOP, PHONE, Window, opened, sign_in_link
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

Size = dict[str, int]
Opener = Callable[[Window, "Person"], Awaitable[None]]

LOOKS: dict[str, tuple[Any, dict[str, Any]]] = {
    "light": (DESKTOP, {"color_scheme": "light"}),
    "dark": (DESKTOP, {"color_scheme": "dark"}),
    "forced colours": (DESKTOP, {"color_scheme": "dark", "forced_colors": "active"}),
    "200 %": ({"width": 640, "height": 512}, {"color_scheme": "light"}),
    "400 %": ({"width": 320, "height": 256}, {"color_scheme": "dark"}),
    "phone": (PHONE, {"color_scheme": "light"}),
}
"""The size of the window, and what the system prefers."""


class Person:
    """Who looks, and where: ``uid`` is signed in by ``link``, ``login`` has a profile and ``status`` is a post."""

    def __init__(self, address: str, uid: str, link: str, status: dict[str, Any]) -> None:
        self.address, self.uid, self.link, self.status = address, uid, link, status


async def door(window: Window, person: Person) -> None:
    await window.page.goto(person.address)
    await expect(window.page.get_by_role("heading", name="Sign in")).to_be_visible()


async def sign_up(window: Window, _: Person) -> None:
    await window.button("Create an account").click()
    await expect(window.page.get_by_role("heading", name="Create an account")).to_be_visible()


async def streams(window: Window, person: Person) -> None:
    await window.follow(person.link)
    column = await window.add_column("nougat")
    await column.get_by_role("button", name="Why").first.click()
    await expect(column.locator(".why")).to_be_visible()


async def column_menu(window: Window, _: Person) -> None:
    await window.page.locator(".column .menu summary").last.click()
    await expect(window.page.locator(".column .menu[open]")).to_be_visible()


async def looking_back(window: Window, _: Person) -> None:
    await window.page.keyboard.press("Escape")
    column = await window.add_column("nougat", "cake")
    await column.locator(".column-head summary").click()
    await column.get_by_role("button", name="Look back").click()
    await expect(column.locator(".brush")).to_be_visible()
    await column.get_by_role("button", name="Show", exact=True).click()
    await expect(column.locator(".state[data-state=range]")).to_be_visible()


async def refused_column(window: Window, _: Person) -> None:
    columns = quote(json.dumps([{"rule": "nougat OR"}]))
    await window.page.keyboard.press("Escape")
    await window.page.evaluate("hash => { location.hash = hash; }", f"#/streams/{columns}")
    await expect(window.page.locator(".state[data-state=refused]").first).to_be_attached()


async def builder(window: Window, _: Person) -> None:
    await window.page.keyboard.press("c")
    await window.page.keyboard.type("nougat,")
    await window.button("Try the past hour").click()
    await expect(window.page.locator(".trial")).to_contain_text("post in")
    await window.page.locator(".map").press("Enter")


async def composer(window: Window, _: Person) -> None:
    await in_dialog(window, "n", "Write a post")


async def keys(window: Window, _: Person) -> None:
    await in_dialog(window, "?", "Keys")


async def account(window: Window, _: Person) -> None:
    await window.page.keyboard.press("Escape")
    await window.page.locator(".who").click()
    await expect(window.page.get_by_role("dialog")).to_be_visible()


async def in_dialog(window: Window, key: str, title: str) -> None:
    await window.page.keyboard.press("Escape")
    await window.page.keyboard.press(key)
    await expect(window.page.get_by_role("dialog")).to_contain_text(title)


async def docs(window: Window, person: Person) -> None:
    await window.page.goto(f"{person.address}/docs#statuses_post")
    await expect(window.page.locator(".docs-try").first).to_be_visible()


def view(path: str, text: str) -> Opener:
    """Return what opens a view by its address, in which ``{login}`` and ``{status}`` stand for what there is."""

    async def opens(window: Window, person: Person) -> None:
        await window.page.keyboard.press("Escape")
        await window.go(path.format(login=person.status["login"], status=person.status["id"]), text)

    return opens


async def post_menu(window: Window, person: Person) -> None:
    await view("#/people", "nougat")(window, person)
    await window.post("nougat").last.locator(".menu summary").click()
    await expect(window.page.locator("article.status .menu[open]")).to_be_visible()


VIEWS = {
    "#/people": "nougat", "#/people/status/{status}": "nougat", "#/people/@{login}": "nougat",
    "#/people/notifications": "Notifications", "#/people/lists": "lists", "#/operations": "Workers",
    "#/people/rules": "0 rules of", "#/people/subscriptions": "New subscription", "#/people/account": "session",
    "#/people/account/streams": "events delivered", "#/people/account/password": "present password",
    "#/people/moderation": "Reports", "#/people/moderation/suspensions": "Suspen", "#/people/moderation/audit": "Audit",
}  # fmt: skip
"""The addresses of views, and a text that each shows when it is ready."""

STATES: dict[str, Opener] = {
    "the door": door, "an account": sign_up, "streams": streams, "the menu of a column": column_menu,
    "a column that looks back": looking_back,
    "the builder": builder, "the composer": composer, "the keys": keys, "the session": account,
    "a refused column": refused_column, **{path: view(path, text) for path, text in VIEWS.items()},
    "the menu of a post": post_menu, "/docs": docs,
}  # fmt: skip
"""What brings the window into each state, from the state before."""


def chosen(*, full: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield each state with the looks in which it is checked."""
    looks = list(LOOKS)
    for at, state in enumerate(STATES):
        yield state, looks if full else [looks[at % len(looks)], looks[(at + 3) % len(looks)]]


async def take(page: Page, look: str) -> None:
    size, preferences = LOOKS[look]
    await page.set_viewport_size(size)
    await page.emulate_media(**{"forced_colors": "none", "reduced_motion": "reduce", **preferences})


async def test_the_views_have_no_fault(site_api: Api, site_server: Server, browser: Browser, *, full: bool) -> None:
    """The policy of the page is off here, since it lets no foreign script in; the other tests run under it."""
    uid = await site_api.user()
    status = await site_api.post(uid, "nougat for two, and #cake at https://example.com")
    person = Person(site_server.address, uid, await sign_in_link(site_server, uid), status)
    found, count = list[str](), 0
    async with opened(site_server, browser, bypass_csp=True, viewport=DESKTOP) as window:
        await window.page.add_init_script(axe.source())
        for state, looks in chosen(full=full):
            await take(window.page, "light")
            await STATES[state](window, person)
            for look in looks:
                await take(window.page, look)
                rules = () if full or look == looks[0] else axe.OF_A_LOOK
                found += [f"{state}, {look}: {fault}" for fault in await axe.faults(window.page, rules)]
                count += 1
    assert not found, "\n".join(found)
    assert count == len(STATES) * (len(LOOKS) if full else 2)
