"""What the console tells: numbers and times as they are, and notes that stand in nobody's way."""

import pytest
from playwright.async_api import Browser, expect

from tests.browser.test_console_columns import columns
from tests.browser.windows import DESKTOP, Windows, named_user, opened, session
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

AGO = """async () => {
  const { ago } = await import("/console/people/text.js");
  return [0, 15, 600].map(seconds => ago(new Date(Date.now() - 1000 * seconds).toISOString()));
}"""

LEFT_OUT = """async () => {
  const { Rows } = await import("/console/rows.js");
  return [1, 1200, 0].map(count => new Rows("").leftOut(count).make().textContent.split(":")[0]);
}"""

RATES = """async () => {
  const { RatePlot, showRate } = await import("/console/plot.js");
  const now = Date.now;
  try {
    Date.now = () => 60_000;
    const plot = new RatePlot();
    const rates = [showRate(plot.rate())];
    for (const [second, posts] of [[1, 3], [40, 3], [50, 3], [52, 60], [58, 400], [90, 0], [180, 0]]) {
      Date.now = () => 60_000 + 1000 * second;
      for (let n = 0; n < posts; n++) plot.add(Date.now(), NaN);
      rates.push(showRate(plot.rate()));
    }
    return rates;
  } finally {
    Date.now = now;
  }
}"""
"""Rates after posts of some seconds, by a clock of the test's own."""

REFUSALS = """async () => {
  const { explain } = await import("/console/forms.js");
  const { ApiError } = await import("/console/client.js");
  return ["lang: has no value", "unknown status", "the login is taken"]
    .map(message => explain(new ApiError(400, { code: "invalid_parameter", message })));
}"""

TIMES = """async () => {
  const { words } = await import("/console/streams/brush.js");
  const at = hours => Date.now() + 3_600_000 * hours;
  return [-30, -3, 0, 0.1, 3].map(hours => words({ from: at(hours), to: at(hours) }).includes("/"));
}"""

"""Whether a time is told with its day, by the hours from now: for a time to come, a clock alone is of the past."""

SAY = "async text => (await import('/console/app.js')).app.say(text)"


async def test_words_and_numbers_agree(site_api: Api, windows: Windows) -> None:
    """A time that is past says so, and one post is no posts."""
    window = await windows.open(await named_user(site_api, "norma"), columns("sorrel"))
    assert await window.page.evaluate(AGO) == ["now", "15 s ago", "10 min ago"]
    assert await window.page.evaluate(LEFT_OUT) == [
        "1 post is left out here", "1,200 posts are left out here", "Some posts are left out here",
    ]  # fmt: skip
    assert await window.page.evaluate(REFUSALS) == [
        "lang: has no value.", "This post is no longer there.", "The username is taken.",
    ]  # fmt: skip
    assert await window.page.evaluate(TIMES) == [True, False, False, False, True]


async def test_an_address_without_an_id_names_no_page(site_api: Api, windows: Windows) -> None:
    """The server is not asked, whose words would be of a parameter."""
    window = await windows.open(await named_user(site_api, "nuno"), "/#/people")
    for path in ("status/abc", "lists/12x", "groups/me", "talks/new"):
        await window.go(f"#/people/{path}", f"There is no page {path}")


async def test_the_rate_of_few_posts_is_that_of_the_minute_which_the_plot_shows(
    site_api: Api, windows: Windows
) -> None:
    """It says "quiet" beside an empty plot only. Many posts show at once."""
    window = await windows.open(await named_user(site_api, "nadir"), columns("sorrel"))
    assert await window.page.evaluate(RATES) == [
        "quiet", "3/min", "6/min", "9/min", "1.2/s", "6.3/s", "7.8/s", "quiet",
    ]  # fmt: skip


async def test_a_note_goes_by_a_click_and_stays_while_one_reads_it(
    browser: Browser, site_server: Server, site_api: Api
) -> None:
    """It lies over a button, perhaps. Whoever selects its text does not dismiss it."""
    async with opened(site_server, browser, viewport=DESKTOP, reduced_motion="reduce") as window:
        page, note = window.page, window.page.locator(".note")
        await page.context.route("**/favicon.ico", lambda route: route.fulfill(status=204))
        await page.clock.install()
        await page.goto(f"{site_server.address}/console/icon.svg")
        kept = session(await named_user(site_api, "nola"), "read write stream")
        await page.evaluate("kept => localStorage.setItem('stream-server.session', kept)", kept)
        await page.goto(site_server.address + columns("sorrel"))
        await expect(page.locator(".column .state")).to_contain_text("live")
        await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 5"))  # a note lasts four seconds
        await page.evaluate(SAY, "a first note")
        await note.hover()
        await page.clock.resume()  # for axe
        assert await window.faults() == []
        await page.clock.pause_at(await page.evaluate("Date.now() / 1000 + 5"))
        await note.click()
        await expect(note).to_have_count(0)
        await page.evaluate(SAY, "a second note")
        box = await note.bounding_box()
        assert box
        await page.mouse.move(box["x"] + 20, box["y"] + box["height"] / 2)
        await page.mouse.down()
        await page.mouse.move(box["x"] + 80, box["y"] + box["height"] / 2, steps=4)
        await page.mouse.up()
        assert await page.evaluate("String(getSelection())")
        await page.clock.fast_forward(60_000)
        await expect(note).to_have_text("a second note")
        await page.mouse.move(5, 5)
        await page.clock.fast_forward(60_000)
        await expect(note).to_have_count(0)
        await page.evaluate(SAY, "a third note")
        await page.evaluate(SAY, "a fourth note")
        await note.last.click()
        await expect(page.locator(".note:hover")).to_have_text("a third note")  # it came under the pointer by itself
        await page.clock.fast_forward(60_000)
        await expect(note).to_have_count(0)
