"""The columns hold still: rows stay under the reader's eye, one stop of Tab, few announcements, and a true state."""

import json
import re
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, CDPSession, Locator, Route, expect

from tests.browser.test_console_columns import columns
from tests.browser.test_console_streams import KEEP_SOCKETS
from tests.browser.windows import DESKTOP, Window, Windows, named_user, opened, session
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server, restartable
from tests.waiting import eventually

pytestmark = pytest.mark.extended

SCOPES = "read write stream"

KEEP_WORDS = """
window.words = [];
const keep = () => words.push(document.querySelector(".connection")?.textContent ?? "");
const all = { childList: true, subtree: true };
addEventListener("DOMContentLoaded", () => new MutationObserver(keep).observe(document.body, all));
"""
"""Keeps what the page says of its connection."""

HELPERS = """
window.message = (kind, n, text = `flood ${n}`) => ({ kind, cursor: `f${n}${kind}`, at: new Date().toISOString(),
  status: { id: `9${n}`, uid: "1", login: "flood", message: text, posted: new Date().toISOString(), entities: {},
            lang: "en", likes: 0 },
  matched: [{ id: "r1", tag: document.querySelector(".column").dataset.tag,
              parts: [{ part: "flood", indices: [[0, 5]] }] }] });
window.hear = (one) => sockets.at(-1).onmessage(new MessageEvent("message", { data: JSON.stringify(one) }));
window.say = (first, count) => { for (let n = first; n < first + count; n++) window.hear(window.message("post", n)); };
window.top_of = (n) => document.querySelector(`[data-id="9${n}"]`)?.getBoundingClientRect().top;
"""
"""Messages as of the page's own socket: `say(first, count)` brings posts with ids that begin with a 9."""


class Still:
    """A window with one column for `flood`, whose posts are the test's."""

    def __init__(self, window: Window, devtools: CDPSession, address: str) -> None:
        self.window = window
        self.page = window.page
        self.devtools = devtools
        self.address = address
        self.column = window.page.locator(".column")
        self.newer = self.column.locator(".newer")
        self.posts = self.column.locator(".post")

    async def say(self, first: int, count: int) -> None:
        await self.page.evaluate("([first, count]) => say(first, count)", [first, count])

    async def begin(self, count: int) -> None:
        """Load the page anew, and let it show ``count`` posts."""
        await self.page.mouse.move(5, 5)
        await self.page.goto("about:blank")
        await self.page.goto(self.address)
        await expect(self.column.locator(".state")).to_contain_text("live")
        await self.say(0, count)
        await expect(self.posts.first).to_contain_text(f"flood {count - 1}")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def still(browser: Browser, site_server: Server, site_api: Api) -> AsyncIterator[Still]:
    async with opened(site_server, browser, viewport=DESKTOP, reduced_motion="reduce") as window:
        await window.page.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        await window.page.add_init_script(KEEP_SOCKETS + HELPERS)
        await window.page.goto(f"{site_server.address}/console/icon.svg")
        kept = session(await named_user(site_api, "stella"), SCOPES)
        await window.page.evaluate("kept => localStorage.setItem('stream-server.session', kept)", kept)
        devtools = await window.page.context.new_cdp_session(window.page)
        yield Still(window, devtools, site_server.address + columns("flood"))
        assert window.failures == []


async def _centre(found: Locator) -> tuple[float, float]:
    box = await found.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def _finger(still: Still, kind: str, at: Locator | None = None) -> None:
    x, y = await _centre(at) if at else (0.0, 0.0)
    points = [{"x": x, "y": y}] if at else []
    await still.devtools.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


Step = Callable[[Still, Locator], Coroutine[Any, Any, object]]

SELECT = "post => getSelection().selectAllChildren(post.querySelector('.text'))"
HOLDS: dict[str, tuple[Step, Step]] = {
    "pointer": (
        lambda still, post: post.hover(),
        lambda still, post: still.page.mouse.move(5, 5),
    ),
    "finger": (
        lambda still, post: _finger(still, "touchStart", post),
        lambda still, post: _finger(still, "touchEnd"),
    ),
    "focus": (
        lambda still, post: post.locator("[data-act=heart]").focus(),
        lambda still, post: still.page.keyboard.press("."),
    ),
    "selection": (
        lambda still, post: post.evaluate(SELECT),
        lambda still, post: still.page.evaluate("getSelection().empty()"),
    ),
    "an open why": (
        lambda still, post: post.evaluate("post => post.querySelector('[data-act=why]').click()"),
        lambda still, post: still.newer.click(),
    ),
    "an open menu": (
        lambda still, post: post.evaluate("post => post.querySelector('[data-act=more]').click()"),
        lambda still, post: still.newer.press("Enter"),
    ),
    "scrolling": (
        lambda still, post: still.column.locator(".scroller").evaluate("scroller => { scroller.scrollTop = 150; }"),
        lambda still, post: still.page.keyboard.press("."),
    ),
}


@pytest.mark.parametrize("holds", HOLDS)
async def test_rows_stay_where_they_are_while_somebody_is_at_them(still: Still, holds: str) -> None:
    """Arrivals wait and are counted. A deleted row leaves its place, and a longer text of an edit waits."""
    hold, release = HOLDS[holds]
    await still.begin(20)
    aimed = still.column.locator('[data-id="915"]')
    await hold(still, aimed)
    before = await still.page.evaluate("top_of(15)")
    room = await still.column.locator(".scroller").bounding_box()
    await still.say(20, 14)
    await still.page.evaluate("hear(message('delete', 18)); hear(message('edit', 17, 'flood, longer. '.repeat(15)));")
    await expect(still.newer).to_have_text("▲ 14 new")
    await expect(still.column.locator(".gone")).to_have_text("deleted")
    assert await still.page.evaluate("top_of(15)") == before
    assert await still.column.locator(".scroller").bounding_box() == room
    await release(still, aimed)
    await expect(still.posts.first).to_contain_text("flood 33")
    await expect(still.posts).to_have_count(33)
    await expect(still.column.locator('[data-id="917"]')).to_contain_text("longer")
    await expect(still.newer).to_be_hidden()
    await expect(still.column.locator(".gone")).to_have_count(0)
    await still.page.mouse.move(6, 6)
    await still.say(34, 1)
    await expect(still.posts.first).to_contain_text("flood 34")


TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"

HIDE = """() => {
  window.frames_of_before = window.requestAnimationFrame;
  window.kept = [];
  window.requestAnimationFrame = (work) => window.kept.push(work);
}"""
SHOW = """() => {
  window.requestAnimationFrame = window.frames_of_before;
  window.kept.forEach((work) => requestAnimationFrame(work));
}"""
"""Gives the page no frames, as a browser does to a hidden tab."""

READ_AT = """async n => {
  const post = document.querySelector(`[data-id="9${n}"]`);
  for (let before = NaN; Math.abs(top_of(n) - before) > 1 || Number.isNaN(before);) {
    post.scrollIntoView({ block: "center" });
    before = top_of(n);
    for (let frame = 0; frame < 4; frame++) await new Promise(requestAnimationFrame);
  }
  return top_of(n);
}"""
"""Scrolls to a post, and returns where it stands: rows get their heights as they come into sight."""

LEFT_OUT = re.compile(r"^([\d,]+) posts are left out here")


@pytest.mark.parametrize(("hidden", "came"), [(False, 2500), (True, 400)])
async def test_a_row_stands_where_posts_were_left_out(still: Still, hidden: bool, came: int) -> None:  # noqa: FBT001 - a table's column
    """The newest are above it, what was read is below it and stays there, and what is between can be loaded."""
    asked: list[dict[str, Any]] = []

    async def answer(route: Route) -> None:
        asked.append(route.request.post_data_json or {})
        first = 20 + 100 * (len(asked) - 1)
        events = await still.page.evaluate(
            "first => Array.from({ length: 100 }, (_, index) => message('post', first + index))", first
        )
        await route.fulfill(json={"events": events, "cursor": f"f{first + 99}post", "more": len(asked) < 2})

    await still.begin(20)
    if hidden:
        await still.page.evaluate(HIDE)
    else:
        await still.posts.nth(3).hover()
    await still.say(20, came)
    if hidden:
        await still.page.evaluate(SHOW)
    else:
        await expect(still.newer).to_have_text(f"▲ {came:,} new")
        await still.page.mouse.move(5, 5)
    gap = still.column.locator(".row-note.gap")
    await expect(gap).to_contain_text(LEFT_OUT)
    shown = await still.column.locator(".rows > *").evaluate_all(
        "rows => rows.map(row => row.dataset.id?.slice(1) ?? 'gap')"
    )
    place = shown.index("gap")
    left = int(LEFT_OUT.match(await gap.inner_text())[1].replace(",", ""))  # type: ignore[index]  # it was waited for
    assert shown[:place] == [str(20 + came - 1 - n) for n in range(came - left)]
    assert shown[place + 1 :] == [str(19 - n) for n in range(20)]
    assert place + left == came
    assert len(shown) == 300
    await still.page.route("**/v1/events", answer)
    load = gap.get_by_role("button", name="Load them")
    top = await still.page.evaluate(READ_AT, 19)
    await load.click()
    await expect(gap).to_contain_text(f"{left - 100:,} posts are left out")
    assert asked[0]["since"] == "f19post"
    await still.page.evaluate(TWO_FRAMES)
    assert await still.page.evaluate("top_of(19)") == pytest.approx(top, abs=2)
    top = await still.page.evaluate(READ_AT, 119)
    await load.click()
    await expect(gap).to_have_count(0)
    await still.page.evaluate(TWO_FRAMES)
    assert await still.page.evaluate("top_of(119)") == pytest.approx(top, abs=2)
    assert asked[1]["since"] == "f119post"
    after = await still.column.locator(".rows > *").evaluate_all("rows => rows.map(row => row.dataset.id.slice(1))")
    assert after[place:] == [str(n) for n in range(min(219, 20 + came - 1 - place), -1, -1)]
    await still.say(20 + came, 1)
    await still.page.keyboard.press(".")
    await expect(still.column.locator(".rows > *")).to_have_count(300)
    await still.page.unroute_all()


async def test_what_came_during_a_pause_is_read_below_what_came_since(still: Still) -> None:
    """Page by page, the last version of each post. What a page has beyond the posts above comes live."""
    asked: list[dict[str, Any]] = []
    pages = [[("post", 5), ("edit", 5), ("post", 6)], [("post", 7), ("post", 8), ("post", 9)]]

    async def answer(route: Route) -> None:
        body = route.request.post_data_json or {}
        if "explain" not in body:  # it asks how far the log goes back
            return await route.fulfill(json={"events": [], "cursor": "none", "more": False})
        asked.append(body)
        if len(asked) == 2:
            await still.say(8, 1)
            await expect(still.posts.first).to_contain_text("flood 8")
        events = await still.page.evaluate("all => all.map(([kind, n]) => message(kind, n))", pages[len(asked) - 1])
        return await route.fulfill(json={"events": events, "cursor": f"p{len(asked)}", "more": True})

    await still.begin(5)
    await still.column.get_by_role("button", name="Pause").click()
    await still.say(5, 3)
    await expect(still.column.locator(".state")).to_have_text("paused, 3 waiting")
    await still.page.route("**/v1/events", answer)
    await still.column.get_by_role("button", name="Resume").click()
    texts = still.posts.locator(".text")
    await expect(texts).to_have_text([f"flood {n}" for n in range(8, -1, -1)])
    assert [one["since"] for one in asked] == ["f4post", "p1"]
    await expect(still.column.locator(".row-note")).to_have_count(0)
    await still.say(9, 1)
    await expect(texts).to_have_text([f"flood {n}" for n in range(9, -1, -1)])
    await still.page.unroute_all()


COUNT_SAID = """
() => {
  window.said = [];
  const watch = (region) => new MutationObserver((all) => {
    const isVisible = region.textContent.trim();
    if (isVisible) window.said.push(region.textContent);
  }).observe(region, { subtree: true, childList: true, characterData: true });
  document.querySelectorAll("[role=status], [role=alert], [role=log], [aria-live]").forEach(watch);
  let sent = 100;
  window.posting = setInterval(() => { say(sent, 20); sent += 20; }, 1000);
}
"""


async def test_few_changes_are_announced(browser: Browser, site_server: Server, site_api: Api) -> None:
    """In a minute of 20 posts a second, and in a minute of a server that is away: kinds of state, and no numbers."""
    async with opened(site_server, browser) as window:
        page = window.page
        window.expects_refusals = True
        await page.clock.install()
        await page.add_init_script(KEEP_SOCKETS + HELPERS)
        await page.goto(f"{site_server.address}/console/icon.svg")
        kept = session(await named_user(site_api, "sally"), SCOPES)
        await page.evaluate("kept => localStorage.setItem('stream-server.session', kept)", kept)
        await page.goto(site_server.address + columns("flood", "other", "third"))
        state = page.locator(".column .state")
        await expect(state.first).to_contain_text("live")
        await page.clock.run_for(3000)
        await page.evaluate(COUNT_SAID)
        await page.clock.run_for(60_000)
        await expect(state.first).to_contain_text("live")
        await expect(page.locator(".connection")).to_contain_text("live · 20/s")
        assert await page.evaluate("said") == []
        await page.route("**/v1/**", lambda route: route.abort())
        await page.evaluate("clearInterval(posting); sockets.at(-1).onclose();")
        for _ in range(12):  # each try needs an answer of the network, which the page's clock does not turn
            await page.clock.run_for(5000)
            await expect(state.first).to_contain_text("server away")
        said = await page.evaluate("said")
        assert len(said) <= 3, said
        assert said[-1].startswith("server away")
        assert not any(re.search(r"\d", one) for one in said)


async def _open_json(still: Still, post: Locator) -> None:
    await post.get_by_role("button", name="More about this post").click()
    await post.get_by_role("button", name="JSON").click()


WINDOWS: dict[str, Step] = {
    "JSON": _open_json,
    "reply": lambda still, post: post.get_by_role("button", name="Reply").click(),
}


@pytest.mark.parametrize("window", WINDOWS)
async def test_rows_stay_while_a_window_of_one_of_them_is_open(still: Still, window: str) -> None:
    """And after it, until the pointer moves: the post is found where it was."""
    await still.begin(20)
    await still.column.locator('[data-id="918"]').hover()
    before = await still.page.evaluate("top_of(18)")
    await WINDOWS[window](still, still.column.locator('[data-id="918"]'))
    dialog = still.page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Close").hover()
    await still.say(20, 3)
    await still.page.evaluate(TWO_FRAMES)
    assert await still.page.evaluate("top_of(18)") == before
    await dialog.get_by_role("button", name="Close").click()
    await expect(dialog).to_have_count(0)
    await still.say(23, 1)
    await expect(still.newer).to_have_text("▲ 4 new")
    assert await still.page.evaluate("top_of(18)") == before
    await still.page.mouse.move(5, 5)
    await expect(still.posts.first).to_contain_text("flood 23")


FOCUSED = """
() => {
  const at = document.activeElement;
  return at.closest("article")?.dataset.id?.slice(1) + " " + (at.dataset.act ?? at.className.split(" ")[0]);
}
"""


async def test_a_column_is_one_stop_with_arrow_keys_inside(still: Still) -> None:
    await still.begin(30)
    keys = still.page.keyboard
    await still.column.locator(".column-head summary").focus()
    await keys.press("Tab")
    assert await still.page.evaluate(FOCUSED) == "29 post"
    await keys.press("Tab")
    await expect(still.column.get_by_role("button", name="Older")).to_be_focused()
    await keys.press("Tab")
    assert await still.page.evaluate("document.activeElement.closest('.column')") is None
    for _ in range(2):
        await keys.press("Shift+Tab")
    steps = {
        "ArrowDown": "28 post", "PageDown": "27 post", "ArrowUp": "28 post", "PageUp": "29 post", "k": "29 post",
        "End": "0 post", "Home": "29 post", "j": "28 post", "ArrowRight": "28 author", "ArrowLeft": "28 post",
    }  # fmt: skip
    for key, focused in steps.items():
        await keys.press(key)
        assert await still.page.evaluate(FOCUSED) == focused, key
    acts = ["author", "post-time", "reply", "heart", "why", "more"]
    for act in acts:
        await keys.press("ArrowRight")
        assert await still.page.evaluate(FOCUSED) == f"28 {act}"
    await keys.press("Enter")
    await keys.press("ArrowDown")
    await expect(still.page.get_by_role("button", name="Copy link")).to_be_focused()
    await keys.press("Escape")
    await keys.press("ArrowDown")
    assert await still.page.evaluate(FOCUSED) == "27 post"
    await keys.press("Tab")
    await keys.press("Shift+Tab")
    assert await still.page.evaluate(FOCUSED) == "27 post", "it is the same one after a look elsewhere"


async def test_a_tap_hits_what_the_finger_touched(still: Still) -> None:
    """Its click comes after the end of the touch. Rows that wait must not come between, under the finger."""
    liked: list[str] = []

    async def like(route: Route) -> None:
        liked.append(route.request.url.rpartition("/")[2])
        await route.fulfill(json={"likes": 1})

    await still.page.route("**/v1/users/me/likes/*", like)
    while not liked:  # a touch that a busy machine makes long is no tap
        await still.begin(20)
        await _finger(still, "touchStart", still.column.locator('[data-id="915"] [data-act=heart]'))
        await still.say(20, 14)
        await _finger(still, "touchEnd")
        await expect(still.posts.first).to_contain_text("flood 33")
    assert liked == ["915"]
    await still.page.unroute("**/v1/users/me/likes/*", like)


async def test_each_row_has_the_address_the_json_and_the_cursor_of_its_post(site_api: Api, windows: Windows) -> None:
    """A program that begins at the cursor gets what came behind the post, also of a post that an answer brought."""
    user = await named_user(site_api, "petra")
    first = await site_api.post(user["id"], "permalink first")
    window = await windows.open(user, columns("permalink"))
    page, posts = window.page, window.page.locator(".post")
    await expect(posts).to_have_count(1)
    await expect(page.locator(".column .state")).to_contain_text("live")
    second = await site_api.post(user["id"], "permalink second")
    await expect(posts).to_have_count(2)
    await page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    for row, status, newer in ((posts.nth(0), second, []), (posts.nth(1), first, [second["id"]])):
        link = f"#/people/status/{status['id']}"
        await expect(row.locator(".post-time")).to_have_attribute("href", link)
        await row.get_by_role("button", name="More about this post").click()
        await page.get_by_role("button", name="Copy link").click()
        assert (await page.evaluate("copied")).endswith(f"/{link}")
        await row.locator("summary").click()
        await page.get_by_role("button", name="Copy cursor").click()
        await expect(page.locator(".note").last).to_have_text("Copied")
        asked = {"track": "permalink", "since": await page.evaluate("copied"), "wait": "0"}
        answer = await site_api.done("POST", "/v1/events", token=mint(user["id"]), json=asked)
        assert [event["status"]["id"] for event in answer["events"]] == newer
        await row.locator("summary").click()
        await page.get_by_role("button", name="JSON", exact=True).click()
        shown = json.loads(await page.locator("dialog pre").inner_text())
        assert (shown["status"]["id"], shown["cursor"]) == (status["id"], asked["since"])
        await page.get_by_role("dialog").get_by_role("button", name="Copy").click()
        assert json.loads(await page.evaluate("copied")) == shown
        # A page of plain HTTP has no clipboard.
        await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined, configurable: true })")
        await page.get_by_role("dialog").get_by_role("button", name="Copy").click()
        await expect(page.locator(".note").last).to_contain_text("The text is selected")
        assert json.loads(await page.evaluate("String(getSelection())")) == shown
        await page.evaluate("delete navigator.clipboard")
        await page.keyboard.press("Escape")
    cursor = asked["since"]  # of the first post
    await posts.nth(1).locator(".post-time").click()
    await expect(page.locator("article.status")).to_contain_text("permalink first")
    await page.evaluate("copied = ''")
    await page.locator("article.status summary").click()
    await page.locator("article.status").get_by_role("button", name="Copy cursor").click()
    await expect(page.locator(".note").last).to_have_text("Copied")
    assert await page.evaluate("copied") == cursor, "a page does not tell it, and the log does"


async def test_a_post_that_the_log_has_lost_has_no_cursor_to_copy(site_api: Api, windows: Windows) -> None:
    """It is said, and nothing is copied."""
    user = await named_user(site_api, "pavla")
    await site_api.post(user["id"], "a platypus")
    window = await windows.open(user, "/#/people/@pavla")
    page, card = window.page, window.post("a platypus")
    await page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    await page.route("**/v1/events", lambda route: route.fulfill(json={"events": [], "cursor": "", "more": False}))
    await card.locator("summary").click()
    await card.get_by_role("button", name="Copy cursor").click()
    await expect(page.locator(".note").last).to_contain_text("The server's log does not have this post any more")
    assert await page.evaluate("window.copied") is None


async def test_a_row_reports_its_post_whose_page_has_the_time(site_api: Api, windows: Windows) -> None:
    """One's own post cannot be reported. The page of a post says the day and the clock time, and no age."""
    user, other = await named_user(site_api, "pilar"), await named_user(site_api, "primo")
    own, foreign = [await site_api.post(each["id"], "a bergamot") for each in (user, other)]
    window = await windows.open(user, columns("bergamot"))
    page = window.page
    for status, count in ((own, 0), (foreign, 1)):
        row = page.locator(f".post[data-id='{status['id']}']")
        await row.get_by_role("button", name="More about this post").click()
        await expect(row.get_by_role("button", name="Report …")).to_have_count(count)
    await row.get_by_role("button", name="Report …").click()
    await page.get_by_label("Note for the administrators").fill("no fruit")
    await page.get_by_role("button", name="Send report").click()
    await expect(page.locator(".note").last).to_contain_text("Thank you")
    found = (await site_api.done("GET", "/v1/admin/reports", token=mint(site_api.admin, "admin")))["reports"]
    assert [one["note"] for one in found if one["status"] == foreign["id"]] == ["no fruit"]
    await row.locator(".post-time").click()
    time = page.locator(".post-detail .post-header time").first
    await expect(time).to_have_text(re.compile(r"^\w+ \d+, \d{4}, \d\d:\d\d:\d\d$"))


async def test_a_refused_column_can_be_tried_again_and_edited_in_its_place(site_api: Api, windows: Windows) -> None:
    user = await named_user(site_api, "rita")
    window = await windows.open(user, columns("fine", rule="retried from:newcomer"))
    window.expects_refusals = True
    state = window.page.locator(".column .state").last
    await expect(state).to_contain_text("refused")
    await state.get_by_role("button", name="Edit filter").click()
    await expect(window.page.get_by_label("Further conditions")).to_have_value("retried from:newcomer")
    await window.page.keyboard.press("Escape")
    await state.get_by_role("button", name="Retry").click()
    await expect(state).to_contain_text("refused")
    newcomer = await named_user(site_api, "newcomer")
    await site_api.post(newcomer["id"], "retried before")
    await state.get_by_role("button", name="Retry").click()
    await expect(state).to_contain_text("live")
    await site_api.post(newcomer["id"], "retried after")
    await expect(window.page.locator(".column").last.locator(".post .text")).to_have_text(
        ["retried after", "retried before"]
    )


@contextmanager
def freezable(folder: Path, *flags: str) -> Iterator[Server]:
    """Run a server that a test may freeze. It ends as others do."""
    with restartable(folder, *flags) as server:
        try:
            yield server
        finally:
            if server.process is not None and server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Server]:
    with freezable(tmp_path / "frozen", "--heartbeat-seconds", "0.5") as server:
        yield server


async def test_a_server_that_stands_still_is_not_live(frozen: Server, browser: Browser) -> None:
    """A browser that says offline has to prove it. A missing heartbeat is told, and then that the server is away."""
    async with opened(frozen, browser) as window, Api(frozen) as api:
        window.expects_refusals = True
        user = await named_user(api, "frida")
        await window.page.goto(f"{frozen.address}/console/icon.svg")
        await window.page.evaluate("kept => localStorage.setItem('stream-server.session', kept)", session(user, SCOPES))
        await window.page.add_init_script(KEEP_SOCKETS)
        await window.page.goto(frozen.address + columns("ice"))
        state, posts = window.page.locator(".column .state"), window.page.locator(".column .post")
        await expect(state).to_contain_text("live")
        async with window.page.expect_response("**/healthz"):
            await window.page.evaluate("dispatchEvent(new Event('offline'))")
        await api.post(user["id"], "ice one")
        await expect(posts).to_have_count(1)
        await expect(state).to_have_text("live")
        await window.page.evaluate("dispatchEvent(new Event('online'))")
        assert await window.page.evaluate("sockets.length") == 1
        assert frozen.process is not None
        frozen.process.send_signal(signal.SIGSTOP)
        await expect(state).to_contain_text(re.compile(r"^silent for \d+ s, asking the server"))
        await expect(state).to_contain_text("server away")
        frozen.process.send_signal(signal.SIGCONT)
        await expect(state).to_have_text("live")
        await api.post(user["id"], "ice two")
        await expect(posts).to_have_count(2)
        await window.page.context.set_offline(True)
        await window.page.evaluate("sockets.at(-1).onmessage = null; sockets.at(-1).onclose = null;")
        await expect(state).to_contain_text(re.compile("server away|offline"))
        await window.page.context.set_offline(False)
        await expect(state).to_have_text("live")
        await eventually(lambda: window.page.evaluate("sockets.length > 2"), what="another socket")


@pytest.mark.parametrize("view", [pytest.param("streams", marks=pytest.mark.nightly), "people", "operations"])
async def test_each_view_says_that_a_server_stands_still(view: str, tmp_path: Path, browser: Browser) -> None:
    """In the same words in all views, before a heartbeat is overdue; and that it is back."""
    with freezable(tmp_path / "frozen") as server:
        async with opened(server, browser) as window, Api(server) as api:
            window.expects_refusals = True
            user = await named_user(api, "frederic")
            said = window.page.locator(".connection")
            await window.page.goto(f"{server.address}/console/icon.svg")
            kept = session(user, f"{SCOPES} admin")
            await window.page.evaluate("kept => localStorage.setItem('stream-server.session', kept)", kept)
            await window.page.add_init_script(KEEP_WORDS)
            await window.page.goto(f"{server.address}/#/{view}")
            await expect(said).to_contain_text("live")
            assert server.process is not None
            server.process.send_signal(signal.SIGSTOP)
            await expect(said).to_have_text(re.compile(r"^server away, try 2 in \d+ s \(the server does not answer\)$"))
            assert not [text for text in await window.page.evaluate("words") if text.startswith("silent")]
            server.process.send_signal(signal.SIGCONT)
            await expect(said).to_contain_text("live")


SLOW_HELLO = """
hear({ kind: "hello", cursor: "h", at: new Date().toISOString(), connection: "x", limits: {}, heartbeat_seconds: 3000 })
"""


async def test_a_quiet_server_is_asked_before_its_heartbeat_is_missing(still: Still) -> None:
    """A person looks at the page, so it says soon that the server does not answer."""
    await still.begin(1)
    await still.page.evaluate(SLOW_HELLO)
    async with still.page.expect_response("**/healthz"):
        pass
    await expect(still.column.locator(".state")).to_have_text("live")
    still.window.expects_refusals = True
    await still.page.route("**/healthz", lambda route: route.abort())
    await expect(still.column.locator(".state")).to_contain_text("(the server does not answer)")
    await still.page.goto("about:blank")
    await still.page.unroute_all()
    still.window.expects_refusals = False


FLOOD = """
(seconds) => new Promise((done) => {
  const aimed = document.querySelector('[data-id="917"]'), top = aimed.getBoundingClientRect().top, frames = [];
  let [sent, moved, last] = [0, 0, performance.now()];
  const began = last;
  const tick = () => {
    const now = performance.now();
    frames.push(now - last);
    last = now;
    if (aimed.getBoundingClientRect().top !== top || !aimed.isConnected) moved += 1;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  const timer = setInterval(() => {
    const due = Math.min(200 * seconds, Math.ceil((performance.now() - began) / 5));
    say(20 + sent, due - sent);
    sent = due;
    if (sent < 200 * seconds) return;
    clearInterval(timer);
    frames.sort((a, b) => a - b);
    done({ moved, frames: frames.length, p50: frames[frames.length >> 1], p99: frames[Math.floor(frames.length * .99)],
           worst: frames.at(-1), rows: document.querySelectorAll(".rows > *").length,
           megabytes: performance.memory ? Math.round(performance.memory.usedJSHeapSize / 1e6) : null });
  }, 20);
})
"""
"""200 posts a second. `moved` counts the frames in which the post under the pointer was elsewhere."""


@pytest.mark.parametrize("seconds", [pytest.param(2), pytest.param(60, marks=pytest.mark.nightly)])
async def test_a_flood_does_not_move_the_row_under_the_pointer(
    still: Still, seconds: int, record_property: Callable[[str, object], None]
) -> None:
    """200 posts a second come and wait. The page draws meanwhile, and shows at most 300 rows afterwards."""
    await still.begin(20)
    await still.column.locator('[data-id="917"]').hover()
    found = await still.page.evaluate(FLOOD, seconds)
    record_property("frame_ms", found)
    print(found)  # noqa: T201 - the figure is what a person runs this test for
    assert found["moved"] == 0
    assert found["rows"] == 20
    assert found["frames"] >= 5, "the page drew meanwhile"
    await expect(still.newer).to_have_text(f"▲ {200 * seconds:,} new")
    await still.newer.click()
    await expect(still.posts.first).to_contain_text(f"flood {20 + 200 * seconds - 1}")
    assert await still.column.locator(".rows > *").count() == 300


async def test_a_list_of_posts_in_people_is_one_stop_too(site_api: Api, windows: Windows) -> None:
    user = await named_user(site_api, "paul")
    for number in range(3):
        await site_api.post(user["id"], f"walk {number}")
    window = await windows.open(user, f"/#/people/@{user['login']}")
    await expect(window.page.locator("article.status")).to_have_count(3)
    await window.post("walk 1").focus()
    keys = window.page.keyboard
    text = "(at => at.closest('article').querySelector('.post-text').textContent + at.tagName)(document.activeElement)"
    first = "walk 2ARTICLE"
    steps = {"ArrowDown": "walk 0ARTICLE", "Home": first, "ArrowRight": "walk 2A", "ArrowLeft": first}
    for key, focused in steps.items():
        await keys.press(key)
        assert await window.page.evaluate(text) == focused, key
    await keys.press("Shift+Tab")
    await keys.press("Tab")
    assert await window.page.evaluate(text) == first
    await keys.press("Tab")
    assert not await window.page.evaluate("document.querySelector('[role=feed]').contains(document.activeElement)")
