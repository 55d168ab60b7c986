"""The console's streams as a person uses them: from a link to one's own post, and what must not go wrong on the way."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from tests.browser.windows import Window, opened, sign_in_link
from tests.command_line import Running, clean_environment, running
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import ROOT, Server, restartable
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

HOSTILE = (
    "hostile <img src=x onerror=alert(1)>\u202e gnirts \u202d",
    "hostile " + "z" + "\u0335" * 271,
    "hostile 3",
)
"""Markup and marks that turn the direction of writing; a letter with 271 combining characters; a harmless post."""

FLOOD = """
() => new Promise(done => {
  const socket = window.sockets.at(-1), frames = [];
  let sent = 0, last = performance.now();
  const status = n => ({ id: `9${n}`, uid: "1", login: "flood", message: `flood ${n}`, posted: new Date().toISOString(),
                         entities: {}, lang: "en", likes: 0 });
  const tick = () => {
    const now = performance.now();
    frames.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
  const timer = setInterval(() => {
    for (let i = 0; i < 10; i++, sent++) {
      const message = { kind: "post", cursor: `f${sent}`, at: new Date().toISOString(), status: status(sent),
                        matched: [{ id: "r1", tag: window.floodTag, parts: [{ part: "flood", indices: [[0, 5]] }] }] };
      socket.onmessage(new MessageEvent("message", { data: JSON.stringify(message) }));
    }
    if (sent < 1000) return;
    clearInterval(timer);
    frames.sort((a, b) => a - b);
    done({ frames: frames.length, p50: frames[frames.length >> 1], p99: frames[Math.floor(frames.length * .99)],
           worst: frames.at(-1) });
  }, 20);
})
"""
"""1,000 posts in two seconds, as frames of the page's own socket, and the times of its frames in ms."""

KEEP_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket { constructor(...all) { super(...all); window.sockets.push(this); } };
"""


@pytest_asyncio.fixture(loop_scope="session")
async def console(server: Server, browser: Browser) -> AsyncIterator[Window]:
    async with opened(server, browser) as found:
        yield found
        assert found.failures == []


async def test_from_the_link_to_ones_own_post(api: Api, server: Server, console: Window) -> None:
    """The link signs in once. A column shows one's own post with the matched word, and says why."""
    console.expects_refusals = True
    link = await sign_in_link(server, await api.user())
    page = console.page
    await console.follow(link)
    await expect(page.locator(".column").first).to_be_visible()
    assert "code" not in page.url
    column = await console.add_column("greenhouse", "two words")
    await page.keyboard.press("n")
    await page.keyboard.type("my first greenhouse post")
    await page.keyboard.press("Tab")
    await page.get_by_role("dialog").get_by_role("button", name="Post", exact=True).click()
    await expect(column.locator(".post mark")).to_have_text("greenhouse")
    await column.get_by_role("button", name="Why").click()
    await expect(column.locator(".why")).to_contain_text("greenhouse at characters 9\N{EN DASH}19")
    await column.get_by_role("button", name="Every part of the rule").click()
    await expect(column.locator(".parts")).to_contain_text('no "two words"')
    await page.reload()
    await expect(page.locator(".column").last.locator(".post mark")).to_have_text("greenhouse")
    await page.evaluate("localStorage.clear()")
    await page.goto("about:blank")
    await page.goto(link)
    await expect(page.get_by_role("alert").first).to_contain_text("this sign-in link was used".capitalize())


async def test_the_builder_draws_how_many_posts_there_were(api: Api, server: Server, console: Window) -> None:
    """In each minute of the past hour, or in each hour of a longer time. Another rule has another chart."""
    uid, page = await api.user(), console.page
    for number in range(2):
        await api.post(uid, f"persimmon {number}")
    await console.follow(await sign_in_link(server, uid))
    await page.keyboard.press("c")
    await page.get_by_label("Further conditions").fill("persimmon")
    await page.get_by_role("button", name="Try the past hour").click()
    trial = page.locator(".trial")
    counted = re.compile("^2 posts, at most [12] in a minute$")  # a minute may have ended between the two
    await expect(trial.get_by_role("img", name=counted)).to_be_visible()
    await trial.get_by_role("button", name="Week").click()
    await expect(trial.get_by_role("img", name=re.compile("^2 posts, at most [12] in an hour"))).to_be_visible()
    await expect(trial.get_by_role("button", name="Week")).to_have_attribute("aria-pressed", "true")
    await page.get_by_role("button", name="Add column").click()
    column = page.get_by_role("feed", name="Posts: persimmon")
    await expect(column.get_by_text("persimmon 1")).to_be_visible()


async def test_the_builder_tries_a_rule_and_marks_a_mistake(api: Api, server: Server, console: Window) -> None:
    """The server's error stands under its token; the past hour is counted; boxes are drawn by keys and by numbers."""
    console.expects_refusals = True
    uid = await api.user()
    await api.post(uid, "pineapple one")
    await api.post(uid, "pineapple two", location={"lon": -178.5, "lat": 1.0})
    page = console.page
    await console.follow(await sign_in_link(server, uid))
    await page.keyboard.press("c")
    rule = page.get_by_label("Further conditions")
    await rule.fill("pineapple form:ada")
    await expect(page.locator(".mistake")).to_have_text("form:ada")
    await rule.fill("pineapple")
    people = page.get_by_role("combobox", name="People")
    await people.fill("nobody_here")
    await page.get_by_role("button", name="Add column").click()
    await expect(page.get_by_role("alert").filter(has_text="There is no user nobody_here.")).to_be_visible()
    await expect(people).to_have_value("nobody_here")
    await people.fill("")
    await page.get_by_role("button", name="Try the past hour").click()
    trial = page.locator(".trial")
    await expect(trial).to_contain_text("2 posts in the past hour")
    await rule.fill("pineapple one")
    await expect(trial).to_be_empty()  # it told of another rule
    words = page.get_by_role("combobox", name="Words")
    await words.fill("two")  # and not a key more
    await rule.fill("pineapple")
    await words.fill("nothing of this")
    await page.get_by_role("button", name="Try the past hour").click()
    await expect(trial).to_contain_text("1 post in the past hour")
    await expect(page.locator(".rule")).to_have_text('(two OR "nothing of this") pineapple')
    for _ in range(2):
        await words.press("Backspace")
    await expect(trial).to_be_empty()
    await rule.fill("")
    await page.get_by_role("button", name="Try the past hour").click()
    await expect(trial).to_contain_text("give words, people, areas or conditions")
    await rule.fill("pineapple")
    world = page.get_by_role("application")
    await world.press("Enter")
    await world.press("ArrowRight")
    await world.press("Shift+ArrowUp")
    await expect(page.locator(".chip-text", has_text="-8, 5, 12, 17")).to_be_visible()
    for name, value in (("West", "170"), ("East", "-170"), ("South", "-10"), ("North", "10")):
        await page.get_by_label(name).fill(value)
        await page.get_by_label(name).press("Tab")
    await expect(page.locator(".rule")).to_have_text('locations:"170,-10,-170,10" pineapple')
    await expect(page.locator(".chip-text", has_text="170, -10, -170, 10")).to_be_visible()
    await page.get_by_role("button", name="Add column").click()
    await expect(page.locator(".column").last.locator(".post .text")).to_have_text("pineapple two")


async def test_a_preview_that_comes_late_is_not_shown(api: Api, server: Server, console: Window) -> None:
    """The rule was changed while the server counted: the answer tells nothing of the rule on show."""
    uid = await api.user()
    page = console.page
    await console.follow(await sign_in_link(server, uid))
    await expect(page.locator(".column").first.locator(".state")).to_have_text(re.compile("live"))
    await page.keyboard.press("c")
    _, may_answer = await console.hold("**/v1/rules/preview")
    await page.get_by_label("Further conditions").fill("early")
    await page.get_by_role("button", name="Try the past hour").click()
    await expect(page.locator(".trial")).to_have_text("Reading the past hour…")
    await page.get_by_label("Further conditions").fill("late")
    async with page.expect_response("**/v1/rules/preview") as answered:
        may_answer.set()
    assert (await answered.value).ok
    # The page reads what it has asked for in this order. Playwright may never hear of the end of an answer of its own.
    await page.evaluate("fetch('/healthz').then((answer) => answer.text())")
    await expect(page.locator(".trial")).to_be_empty()
    await page.get_by_role("button", name="Try the past hour").click()
    await expect(page.locator(".trial")).to_contain_text("0 posts in the past hour")


async def test_a_new_account_has_a_form_of_its_own(api: Api, server: Server, console: Window) -> None:
    """The browser checks what it can. A refusal is told at its field, and the new user is signed in where it began."""
    console.expects_refusals = True
    page = console.page
    taken = (await api.sign_up("taken"))["login"]
    await page.goto(f"{server.address}/#/people")
    assert await page.locator(".sign-in input").count() == 2
    await page.get_by_role("button", name="Create an account").click()
    await expect(page.get_by_role("heading", name="Create an account")).to_be_visible()
    await expect(page.get_by_label("Username")).to_be_focused()
    for label, value in (("Username", taken), ("Email", "new@example.com"), ("Password", "short")):
        await page.get_by_label(label).fill(value)
    assert not await page.get_by_label("Password").evaluate("field => field.checkValidity()")
    await expect(page.get_by_label("Password")).to_have_attribute("autocomplete", "new-password")
    await page.get_by_label("Password").fill("long enough")
    await page.get_by_role("button", name="Create an account").click()
    await expect(page.get_by_role("alert")).to_contain_text("taken")
    await expect(page.get_by_label("Username")).to_be_focused()
    await page.get_by_label("Username").fill("fresh")
    await page.get_by_role("button", name="Create an account").click()
    await expect(page.locator(".who")).to_contain_text("fresh")
    await expect(page.locator("main.people")).to_be_visible()
    await page.locator(".who").click()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    await page.get_by_role("button", name="Create an account").click()
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_label("Username or email").fill("fresh")
    await page.get_by_label("Password").fill("long enough")
    await page.get_by_label("Password").press("Enter")
    await expect(page.locator(".who")).to_contain_text("fresh")


async def test_a_hostile_post_is_text(api: Api, server: Server, console: Window) -> None:
    uid = await api.user()
    await console.follow(await sign_in_link(server, uid))
    column = await console.add_column("hostile")
    for text in HOSTILE:
        await api.post(uid, text)
    await expect(column.locator(".post")).to_have_count(len(HOSTILE))
    assert tuple((await column.locator(".post .text").all_text_contents())[::-1]) == HOSTILE
    assert await column.locator(".post img").count() == 0
    styles = "rows => rows.map(row => [getComputedStyle(row).contain, row.offsetHeight])"
    assert {style for style, _ in await column.locator(".post").evaluate_all(styles)} == {"paint"}, "a row cuts its ink"
    assert max(height for _, height in await column.locator(".post").evaluate_all(styles)) < 200
    direction = "e => getComputedStyle(e).unicodeBidi"
    assert await column.locator(".post .text").last.evaluate(direction) == "isolate"


async def test_an_address_that_names_nothing_breaks_no_view(api: Api, server: Server, console: Window) -> None:
    """Such links come from strangers: wrong escapes, names that every object of JavaScript has, and other paths."""
    console.expects_refusals = True
    asked: list[str] = []
    console.page.on("request", lambda request: asked.append(request.url))
    await console.follow(await sign_in_link(server, await api.user()))
    await expect(console.page.locator("main.streams")).to_be_visible()
    for address in ("#/people/%", "#/constructor/%", "#/people/constructor", "#/toString", "docs#%"):
        await console.page.goto(f"{server.address}/{address}")
        await expect(console.page.locator("main")).not_to_be_empty()
    for place in ("lists", "groups", "talks", "status"):
        await console.page.goto(f"{server.address}/#/people/{place}/..%2F..%2Fhostile")
        await expect(console.page.locator("main")).to_contain_text(f"There is no page {place}/../../hostile")
    await console.page.goto(f"{server.address}/#/people/tag/..%2F..%2Fhostile")
    await eventually(lambda: any("hostile" in url for url in asked))
    assert all("%2F..%2Fhostile" in url for url in asked if "hostile" in url)


async def test_a_flood_does_not_freeze_the_page(
    api: Api, server: Server, console: Window, record_property: pytest.FixtureRequest
) -> None:
    """500 posts a second: the rows and records are bounded, and the time of a frame is reported."""
    await console.page.add_init_script(KEEP_SOCKETS)
    await console.follow(await sign_in_link(server, await api.user()))
    for _ in range(await console.page.locator(".column").count()):
        await console.page.locator(".menu summary").first.click()
        await console.page.locator(".menu[open] >> text=Close column").click()
    column = await console.add_column("flood")
    await console.page.evaluate("window.floodTag = document.querySelector('.column').dataset.tag")
    found = await console.page.evaluate(FLOOD)
    record_property("frame_ms", found)  # type: ignore[operator]  # the fixture has no type
    print(found)  # noqa: T201 - the figure is what a person runs this test for
    await expect(column.locator(".post").first).to_contain_text("flood 999")
    rows = column.locator(".rows > article")
    assert await rows.count() == 300, "posts, and perhaps a row for those that one late frame left out"
    assert found["frames"] >= 5, "the page drew meanwhile"
    await expect(column.locator(".end-note")).to_contain_text("The newest 300 are shown")


CLOSE_WHILE_OPENING = """
window.ended = 0;
window.WebSocket = class extends WebSocket {
  constructor(...all) {
    super(...all);
    this.addEventListener("close", () => window.ended++);
    queueMicrotask(() => document.querySelectorAll(".menu button").forEach(button =>
      button.textContent.includes("Close column") && button.click()));
  }
};
"""
"""Closes all columns as soon as the socket of one is opening, as a person does on a slow machine."""


async def test_a_column_that_closes_while_its_socket_opens_reports_no_error(
    api: Api, server: Server, console: Window
) -> None:
    """Browsers report a socket that is closed before it is open as an error of the page."""
    await console.page.add_init_script(CLOSE_WHILE_OPENING)
    await console.follow(await sign_in_link(server, await api.user()))
    await expect(console.page.locator(".column")).to_have_count(0)
    await eventually(lambda: console.page.evaluate("window.ended > 0"), what="the end of the socket")


PROGRAMS = """
async ([address, token]) => {
  const { program } = await import("/console/snippets.js");
  const { aloneParameters, newFilter } = await import("/console/filter.js");
  const parameters = aloneParameters(newFilter({ words: ["it's", 'a "copied" word', "tea"], languages: ["en"] }));
  return ["curl", "Python", "JavaScript"].map(language => program(language, address, parameters, token));
}
"""


async def test_a_copied_program_runs_as_it_is(api: Api, server: Server, console: Window, tmp_path: Path) -> None:
    """Each program that the page prints hears a post. Quotes in a filter do no harm."""
    uid = await api.user()
    await console.follow(await sign_in_link(server, uid))
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    scripts = await console.page.evaluate(PROGRAMS, [server.address, mint(uid)])
    if shutil.which("node") is None:
        scripts.pop()
    for script in scripts:
        copied = re.sub(r"^(?=curl -N|\.venv/|node )", "exec ", script, flags=re.MULTILINE)  # else its end is not ours
        with running("bash", "-c", f"cd {tmp_path}\n{copied}", folder=tmp_path, env=clean_environment()) as program:

            async def hears(out: Running = program) -> bool:
                await api.post(uid, "it's tea", lang="en")
                return "it's tea" in out.out

            await eventually(hears, what=f"the post in the output of {script}")
            program.process.kill()


async def test_a_column_of_saved_rules_with_one_tag_is_copied_as_such(
    api: Api, server: Server, console: Window, tmp_path: Path
) -> None:
    """The wire has no such filter: each program leaves out the matches of other rules."""
    uid = await api.user()
    rules = [{"rule": "mocha", "tag": "k'ffee"}, {"rule": "matcha", "tag": "other"}]
    await api.done("POST", "/v1/rules", token=mint(uid), json={"rules": rules})
    await console.follow(await sign_in_link(server, uid))
    page = console.page
    filters = json.dumps([{"saved": f"tag:{rules[0]['tag']}"}])
    await page.goto(f"{server.address}/#/streams/{quote(filters)}")
    await page.locator(".column-head .menu summary").click()
    await page.get_by_role("button", name="Copy as code").click()
    await page.get_by_label("with my token").check()
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    for language in ["curl", "Python", *(["JavaScript"] if shutil.which("node") else [])]:
        await page.get_by_role("button", name=language, exact=True).click()
        script = await page.locator(".program").inner_text()
        with running("bash", "-c", f"cd {tmp_path}\n{script}", folder=tmp_path, env=clean_environment()) as program:

            async def hears(out: Running = program) -> bool:
                await api.post(uid, "no matcha")
                await api.post(uid, "a mocha")
                return "a mocha" in out.out

            await eventually(hears, what=f"the post in the output of {script}")
            assert "matcha" not in program.out
            for one in (await api.done("GET", "/v1/streams", token=mint(uid)))["streams"]:
                await api.call("DELETE", f"/v1/streams/{one['connection']}", token=mint(uid))  # or it ended by itself
            await asyncio.to_thread(program.process.wait, PATIENCE)


async def texts(column: Locator) -> list[str]:
    """Return the texts of a column's posts, the oldest first."""
    return (await column.locator(".post .text").all_text_contents())[::-1]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """Start a server on a port that it keeps after a restart."""
    with restartable(tmp_path / "own", "--heartbeat-seconds", "0.5") as server:
        yield server


async def test_two_tabs_share_a_session_that_is_refreshed(tmp_path: Path, browser: Browser) -> None:
    """Tokens live for three seconds. One tab at a time refreshes, since a second use would end the session."""
    refreshed: list[int] = []
    with Server(tmp_path / "own", "--token-ttl-seconds", "3", "--heartbeat-seconds", "0.5") as own:
        async with opened(own, browser) as console, Api(own) as api:
            uid, page = await api.user(), console.page
            console.expects_refusals = True  # a busy machine may send a request or a ticket whose token has just ended
            page.context.on(
                "response", lambda answer: refreshed.append(answer.status) if "/v1/sessions" in answer.url else None
            )
            await console.follow(await sign_in_link(own, uid))
            await expect(page.locator(".column").first.locator(".state")).to_have_text(re.compile("live"))
            other = await page.context.new_page()
            await other.goto(own.address)
            tabs = (page, other)
            for tab in tabs:
                await expect(tab.locator(".column").first.locator(".state")).to_have_text(re.compile("live"))
            await eventually(lambda: len(refreshed) >= 4, what="three refreshes after the log-in")
            await api.post(uid, "after three lives of a token")
            for tab in tabs:
                await expect(tab.locator(".column").first.locator(".post .text")).to_have_text(
                    "after three lives of a token"
                )
            (session,) = (await api.done("GET", "/v1/sessions", token=mint(uid)))["sessions"]
            assert session
            assert set(refreshed) == {201}
            assert console.failures == []


async def test_nothing_is_missed_or_doubled_when_the_server_is_killed(own: Server, browser: Browser) -> None:
    """Two columns on one socket, one of them paused, and a sample with a socket of its own."""
    async with opened(own, browser) as console, Api(own) as api:
        uid, page = await api.user(), console.page
        await console.follow(await sign_in_link(own, uid))
        everything = page.locator(".column").first
        left, right = await console.add_column("left"), await console.add_column("right")
        posted = [f"{side} {n}" for n in range(3) for side in ("left", "right")]
        for text in posted:
            await api.post(uid, text)
        for column in (left, right):
            await expect(column.locator(".post")).to_have_count(3)
        await right.get_by_role("button", name="Pause").click()
        await api.post(uid, "right while paused")
        await expect(right.locator(".state")).to_have_text("paused, 1 waiting")
        own.kill()
        await expect(left.locator(".state")).to_have_text(re.compile("server away|connecting"))
        assert await texts(left) == ["left 0", "left 1", "left 2"], "rows stay"
        own.start()
        for text in ("left after", "right after"):
            await api.post(uid, text)
        await expect(left.locator(".post")).to_have_count(4)
        await right.get_by_role("button", name="Resume").click()
        await expect(right.locator(".post")).to_have_count(5)
        assert await texts(left) == ["left 0", "left 1", "left 2", "left after"]
        assert await texts(right) == ["right 0", "right 1", "right 2", "right while paused", "right after"]
        expected = [*posted, "right while paused", "left after", "right after"]
        await expect(everything.locator(".post .text")).to_have_text(expected[::-1])
