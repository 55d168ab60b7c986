"""What a user's columns keep: their place after a session, the posts of a pause, and themselves before a link."""

import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from stream_server.store import keys
from tests.browser.windows import Window, Windows, named_user, session, sign_in_link
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

ADVANCE = "ms => { const now = Date.now.bind(Date); Date.now = () => now() + ms; }"
"""Lets time pass for the page."""

TOKEN = "JSON.parse(localStorage.getItem('stream-server.session')).token"
KEPT = "JSON.parse(localStorage.getItem('stream-server.columns')).columns.map(one => one.words[0])"

SCOPES = "read write stream"


def columns(*words: str, rule: str = "") -> str:
    """Return the address of columns with one word each, and one with a rule, as a person sends it to another."""
    filters = [*({"words": [word]} for word in words), *([{"rule": rule}] if rule else [])]
    return f"/#/streams/{quote(json.dumps(filters))}"


HEAR = """() => {
  window.heard = [];
  new MutationObserver(changes => changes.forEach(({ target, addedNodes }) =>
    [target, ...addedNodes].forEach(node => heard.push(node.textContent ?? "")))
  ).observe(document, { childList: true, characterData: true, subtree: true });
}"""
"""Keeps each text that the page has shown or said."""

ADDRESS = columns("good", rule="bad AND (")


async def rows(column: Locator) -> list[str]:
    """Return the texts of the posts and the notes of a column, the oldest first."""
    return (await column.locator(".post .text, .row-note").all_text_contents())[::-1]


class Trimmed:
    """A window with a column for `tea`, on a server that reads all old posts from the log."""

    def __init__(self, server: Server, api: Api, window: Window, user: dict[str, Any], author: str) -> None:
        self.server = server
        self.api = api
        self.window = window
        self.column = window.page.locator(".column")
        self.user = user
        self.author = author
        self.posted = 0

    async def post(self, count: int) -> None:
        for _ in range(count):
            await self.api.post(self.author, f"tea {self.posted}")
            self.posted += 1

    def trim(self, left: int) -> None:
        """Leave the newest entries on the log, as the server's trimmer does in time."""
        redis = self.server.redis_client()
        assert redis.xtrim(keys.LOG, maxlen=left, approximate=False) > 0
        redis.close()

    async def end_session(self) -> None:
        """Revoke the token in use, of which no other can be had."""
        token = await self.window.page.evaluate(TOKEN)
        await self.api.done("DELETE", "/v1/sessions", token=token)
        await expect(self.window.page.get_by_role("alert")).to_contain_text("Your session has ended")
        await expect(self.column).to_have_count(0)

    async def sign_in(self) -> None:
        await self.window.enter(session(self.user, SCOPES), columns("tea"))
        await expect(self.column.locator(".state")).to_contain_text("live")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def trimmed(all_windows: Windows, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Trimmed]:
    flags = ("--ring-bytes", "0", "--heartbeat-seconds", "0.5")
    with Server(tmp_path_factory.mktemp("trimmed"), *flags) as server:
        windows = Windows(all_windows.browser, server)
        async with Api(server) as api:
            user = await named_user(api, "vera")
            window = await windows.open(user, columns("tea"))
            window.expects_refusals = True  # of revoked tokens
            await expect(window.page.locator(".column .state")).to_contain_text("live")
            yield Trimmed(server, api, window, user, await api.user())
            await windows.close()
            await window.page.context.close()


async def test_columns_go_on_after_a_session_that_ended(trimmed: Trimmed) -> None:
    """They miss nothing and repeat nothing, also of more posts than the past hour shows. What the log lost is a gap."""
    await trimmed.post(2)
    await expect(trimmed.column.locator(".post")).to_have_count(2)
    await trimmed.column.locator(".menu summary").press("Enter")
    await expect(trimmed.column.get_by_role("button", name="Close column")).to_be_visible()
    await trimmed.window.page.keyboard.press("Escape")
    await expect(trimmed.column.get_by_role("button", name="Close column")).to_be_hidden()
    await trimmed.window.page.keyboard.press("c")  # an open window does not lie over the question
    await trimmed.end_session()
    await expect(trimmed.window.page.get_by_role("dialog")).to_have_count(0)
    await trimmed.post(12)
    await trimmed.sign_in()
    await expect(trimmed.column.locator(".post")).to_have_count(14)
    texts = [f"tea {n}" for n in range(14)]
    assert await rows(trimmed.column) == texts
    await trimmed.end_session()
    await trimmed.post(4)
    trimmed.trim(2)
    await trimmed.sign_in()
    await expect(trimmed.column.locator(".post")).to_have_count(16)
    gap = "Gap: 2 entries of the log are missing here: the log no longer reaches back so far."
    assert await rows(trimmed.column) == [*texts, gap, "tea 16", "tea 17"]


async def test_a_paused_column_warns_before_its_posts_leave_the_log(trimmed: Trimmed) -> None:
    """It tells how far the log goes back, first when its pause comes near, then when posts of it are gone."""
    state, page = trimmed.column.locator(".state"), trimmed.window.page
    await trimmed.post(3)
    newest = trimmed.column.locator(".post .text").first
    await expect(newest).to_have_text(f"tea {trimmed.posted - 1}")
    await trimmed.column.get_by_role("button", name="Pause").click()
    await trimmed.window.go("#/people", "Home")  # a pause outlasts a look at another view
    await trimmed.post(1)
    await page.evaluate("location.hash = '#/streams'")
    await expect(state).to_have_text("paused, 1 waiting")
    trimmed.trim(2)
    await page.evaluate(ADVANCE, 300_000)
    await expect(state).to_contain_text("so posts of this pause will be missing soon")
    await trimmed.post(2)
    trimmed.trim(1)
    await page.evaluate(ADVANCE, 31_000)
    await expect(state).to_contain_text("are no longer on the server's log")
    await trimmed.column.get_by_role("button", name="Resume").click()
    await expect(newest).to_have_text(f"tea {trimmed.posted - 1}")
    gap = "Gap: 2 entries of the log are missing here: the log no longer reaches back so far."
    assert (await rows(trimmed.column))[-3:] == [f"tea {trimmed.posted - 4}", gap, f"tea {trimmed.posted - 1}"]


async def test_nobody_else_gets_the_columns_of_a_session(trimmed: Trimmed) -> None:
    """They may show what only their user may see. After a session that ended, another user's columns begin anew."""
    page = trimmed.window.page
    await page.evaluate("window.left = document.querySelector('.column')")
    await trimmed.end_session()
    await trimmed.sign_in()
    assert await page.evaluate("window.left.isConnected")
    await trimmed.end_session()
    await trimmed.window.enter(session(await named_user(trimmed.api, "viktor"), SCOPES), "/#/streams")
    await expect(page.locator(".who")).to_contain_text("viktor")
    await expect(trimmed.column.locator(".state")).to_contain_text("live")
    assert not await page.evaluate("window.left.isConnected")


async def test_a_link_replaces_no_columns_unasked(site_api: Api, windows: Windows) -> None:
    """The columns of a link stand there until one goes back, adds them to the own ones, or keeps them instead."""
    window = await windows.open(await named_user(site_api, "wilma"), columns("own"))
    titles = window.page.locator(".column h2")
    await expect(titles).to_have_text(["own"])
    choices = {"Back to mine": ["own"], "Add to mine": ["own", "foreign"], "Keep instead of mine": ["foreign"]}
    for choice, after in choices.items():
        await window.page.evaluate("hash => { location.hash = hash; }", columns("foreign")[1:])
        await expect(titles).to_have_text(["foreign"])
        await expect(window.page.locator(".guests")).to_contain_text("Yours are as you left them")
        await window.button(choice).click()
        await expect(titles).to_have_text(after)
        await expect(window.button(choice)).to_have_count(0)
        assert await window.page.evaluate(KEPT) == after
    await window.open(columns("other"))
    await expect(titles).to_have_text(["other"])
    assert await window.page.evaluate(KEPT) == ["foreign"]
    await window.page.get_by_role("link", name="Streams").first.click()
    await expect(titles).to_have_text(["foreign"])


async def test_a_bad_rule_of_a_link_stops_its_own_column_only(site_api: Api, windows: Windows) -> None:
    """It says what the server says. The others are live, whether the rules came to an open connection or opened one."""
    user = await named_user(site_api, "zoe")
    window = await windows.open(user, columns("fine"))
    window.expects_refusals = True
    column = window.page.locator(".column")
    await expect(column.locator(".state")).to_contain_text("live")
    for open_link in (window.page.evaluate("hash => { location.hash = hash; }", ADDRESS[1:]), window.open(ADDRESS)):
        await open_link
        await expect(column.locator(".state").last).to_contain_text("refused: a space means AND")
        await expect(column.locator(".state").first).to_contain_text("live")
        await site_api.post(user["id"], "good things")
        await expect(column.first.locator(".post").first).to_contain_text("good things")


async def test_a_refused_column_tells_its_mistake_once(site_api: Api, windows: Windows) -> None:
    """At the place in what the user wrote, to see and to hear, however the server learns of the rule."""
    user = await named_user(site_api, "zita")
    window = await windows.open(user, columns("fine"))
    window.expects_refusals = True
    page, refused = window.page, window.page.locator(".column").last
    await expect(refused.locator(".state")).to_contain_text("live")
    filters = [{"words": ["fine"]}, {"words": ["tea"], "rule": "cat OR (dog"}]
    link = f"/#/streams/{quote(json.dumps(filters))}"
    told = "refused: the ( is not closed; column 13: expected a closing parenthesis"
    await page.evaluate(HEAR)
    await page.evaluate("hash => { location.hash = hash; }", link[1:])
    await expect(refused.locator(".state > :first-child")).to_have_text(told)
    await page.add_init_script(f"({HEAR})()")
    heard = await page.evaluate("window.heard")
    await window.open(link)
    await expect(refused.locator(".state > :first-child")).to_have_text(told)
    heard += await page.evaluate("window.heard")
    assert {text for text in heard if "parenthesis" in text} <= {told, f"tea, cat OR (dog: {told}"}
    await expect(page.locator(".row-note")).to_have_count(0)


async def test_a_sign_in_link_asks_before_it_changes_the_user(
    site_api: Api, site_server: Server, windows: Windows
) -> None:
    """After "No" all is as before, and the link still works. A session that is over is not asked for."""
    window = await windows.open(await named_user(site_api, "xenia"), columns("own"))
    page, who = window.page, window.page.locator(".who")
    other = await named_user(site_api, "yusuf")
    link = await sign_in_link(site_server, other["id"])
    before = page.url
    for answer, login in (("No, stay @xenia", "xenia"), ("Yes, use the link", "yusuf")):
        await page.goto(link)
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("You are signed in as xenia (@xenia)")
        assert "code" not in page.url
        await dialog.get_by_role("button", name=answer).click()
        await expect(dialog).to_have_count(0)
        await expect(who).to_contain_text(login)
        if login == "xenia":
            assert page.url == before
    await expect(page.locator(".notes")).to_contain_text("You are @yusuf now, instead of @xenia.")
    await expect(page.locator(".column .state")).to_contain_text("live")
    window.expects_refusals = True
    await site_api.done("DELETE", "/v1/sessions", token=await page.evaluate(TOKEN))
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.goto(await sign_in_link(site_server, other["id"]))
    await expect(who).to_contain_text("yusuf")


async def test_what_matches_in_a_quoted_post_is_marked_there(site_api: Api, windows: Windows) -> None:
    """The server names no place in it. A word of the post's own text has its place, as before."""
    quoter = await named_user(site_api, "quoter")
    window = await windows.open(quoter, columns("rowanberry"))
    column = window.page.locator(".column")
    await expect(column.locator(".state")).to_contain_text("live")
    original = await site_api.post(quoter["id"], "a Rowanberry and a \N{CHERRIES}rowanberry")
    await site_api.post(quoter["id"], "look at this", origin=original["id"])
    quoting = column.locator(".post").first
    await expect(quoting.locator(".post-quote mark")).to_have_text(["Rowanberry", "rowanberry"])
    for post, told in (
        (quoting, "rowanberry in the quoted post"),
        (column.locator(".post").last, "rowanberry at char"),
    ):
        await post.get_by_role("button", name="Why").click()
        await expect(post.locator(".why li")).to_contain_text(told)


RATES = """() => {
  const rates = [...document.querySelectorAll(".column .rate")].map(one => one.textContent);
  return [...rates, / · (.+) in all columns/.exec(document.querySelector(".connection").textContent)?.[1] ?? ""];
}"""


async def test_a_post_in_two_columns_counts_once_in_the_bar(site_api: Api, windows: Windows) -> None:
    """Of two columns that show the same posts, the bar has the rate of one."""
    user = await named_user(site_api, "tally")
    window = await windows.open(user, columns("tallied", rule="tallied OR reckoned"))
    states = window.page.locator(".column .state")
    await expect(states.filter(has_text="live")).to_have_count(2)

    async def agree() -> bool:
        await site_api.post(user["id"], "tallied")
        first, second, together = await window.page.evaluate(RATES)
        return bool(first == second == together != "quiet")

    await eventually(agree, what="the rate of one column")
