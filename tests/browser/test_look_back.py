"""What a column has of the past: older posts, a time chosen on a chart or typed, files, and an empty column again."""

import asyncio
import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.async_api import Download, Locator, Page, Route, expect

from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api, mint

pytestmark = pytest.mark.extended

ORDER = "feed => [...feed.querySelectorAll('.post .text')].map(text => text.textContent)"
ENDS = re.compile(r"^\d\d:\d\d\d\d:\d\d to \d\d:\d\d, 60 posts\d\d:\d\d$")
"""The row below a chart: where it begins, what is chosen, and where it ends."""

FORMULAS = ("=1+1", "+41 44", "-5 degrees", "@somebody else", 'said "so", and\nleft', "plain")


def address(*filters: dict[str, Any]) -> str:
    return f"/#/streams/{quote(json.dumps(filters))}"


async def posts(api: Api, author: str, *texts: str) -> None:
    for text in texts:
        await api.post(author, text)


async def press(column: Locator, name: str) -> None:
    """Press an entry of the column's menu."""
    await column.locator(".column-head .menu summary").click()
    await column.get_by_role("button", name=name, exact=True).click()


async def saved(page: Page, column: Locator, name: str, folder: Path) -> tuple[str, str]:
    """Return the name and the text of the file that an entry of the menu makes."""
    async with page.expect_download() as coming:
        await press(column, name)
    download: Download = await coming.value
    path = folder / download.suggested_filename
    await download.save_as(path)
    return path.name, path.read_bytes().decode()


async def live(column: Locator) -> None:
    await expect(column.locator(".state")).to_contain_text("live")


@pytest.mark.parametrize("kind", ["rule", "following", pytest.param("sample", marks=pytest.mark.nightly)])
async def test_older_posts_come_page_by_page_to_the_end_of_the_log(site_api: Api, windows: Windows, kind: str) -> None:
    """Each comes once, in order, for a column with a rule as for one without. The end is told in words."""
    reader = await named_user(site_api, f"older{kind}")
    author = (await named_user(site_api, f"writer{kind}"))["id"]
    texts = [f"antique{kind} {n}" for n in range(75)]
    await posts(site_api, author, *texts)
    if kind == "following":
        await site_api.follow(reader["id"], author)
    filters: dict[str, Any] = {"rule": {"words": [f"antique{kind}"]}, "following": {"following": True}, "sample": {}}
    window = await windows.open(reader, address(filters[kind]), scope="read write stream firehose")
    column = window.page.locator(".column")
    await live(column)
    older = column.get_by_role("button", name="Older")
    rows = column.locator(".post")
    if kind != "sample":
        await expect(rows).to_have_count(10)
        await older.click()
        await expect(rows).to_have_count(60)
    else:  # its stream begins half a minute ago
        await expect(rows.filter(has_text="antiquesample 74")).to_be_visible()
        await press(column, "Clear")
        await window.button("Dismiss").click()
        await expect(rows).to_have_count(0)
    while kind == "sample" and await rows.filter(has_text="antiquesample 0").count() == 0:
        before = await rows.count()
        await older.click()
        await expect(rows.nth(before)).to_be_attached()
    if kind != "sample":
        await older.click()
        await expect(column.locator(".older")).to_contain_text("The server's log begins here")
        await expect(older).to_be_hidden()
        await expect(rows).to_have_count(75)
    seen = [text for text in await column.locator(".rows").evaluate(ORDER) if text.startswith(f"antique{kind} ")]
    assert seen[:75] == texts[::-1]
    await site_api.post(author, f"antique{kind} new")
    await column.locator(".newer").click()
    await expect(rows.first).to_contain_text("new")


async def test_a_time_is_shown_instead_of_what_is_live(site_api: Api, windows: Windows, tmp_path: Path) -> None:
    """The chart chooses it by keys and by dragging. A file has all of it; live posts wait until one goes back."""
    reader = await named_user(site_api, "historian")
    await posts(site_api, reader["id"], *(f"relic {n}" for n in range(60)))
    window = await windows.open(reader, address({"words": ["relic"]}))
    page, column = window.page, window.page.locator(".column")
    state, rows = column.locator(".state"), column.locator(".post")
    await live(column)
    await press(column, "Look back")
    slider = column.get_by_role("slider", name="Choose a time")
    await expect(column.locator(".counts")).to_contain_text("60 posts")
    await slider.focus()
    await page.keyboard.press("End")
    assert await slider.get_attribute("aria-valuenow") == await slider.get_attribute("aria-valuemax")
    for _ in range(3):
        await page.keyboard.press("Shift+ArrowLeft")
    await expect(slider).to_have_attribute("aria-valuetext", re.compile(r"^\d\d:\d\d to \d\d:\d\d, 60 posts$"))
    await expect(column.locator(".counts-ends")).to_have_text(ENDS)
    assert await window.faults() == []
    await page.keyboard.press("Enter")
    await expect(state).to_have_text(re.compile(r"^\d\d:\d\d to \d\d:\d\d: 50 posts, and older onesBack to live$"))
    await expect(column.get_by_role("button", name="Pause")).to_be_hidden()
    await site_api.post(reader["id"], "relic of now")
    assert await state.locator(":scope > :first-child").evaluate("words => words.scrollWidth <= words.clientWidth")
    name, lines = await saved(page, column, "Export as JSON lines", tmp_path)
    assert re.fullmatch(r"relic-(\d{4}-\d\d-\d\dT\d{4}00Z)-to-(?!\1)\d{4}-\d\d-\d\dT\d{6}Z\.jsonl", name)
    assert [json.loads(line)["status"]["message"] for line in lines.splitlines()][:60] == [
        f"relic {n}" for n in range(60)
    ]
    await column.get_by_role("button", name="Older").click()
    await expect(rows).to_have_count(60)
    await expect(rows.filter(has_text="relic of now")).to_have_count(0)
    await expect(column.locator(".older")).to_contain_text("The time that is shown begins here")
    await state.get_by_role("button", name="Back to live").click()
    await live(column)
    await expect(rows.first).to_contain_text("relic of now")
    box = await slider.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 2, box["y"] + 20)
    await page.mouse.down()
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20, steps=3)
    await page.mouse.up()
    await expect(state).to_have_text(re.compile(r": 0 postsBack to live$"))
    await state.get_by_role("button", name="Back to live").click()
    for _ in range(2):  # closed and opened, it has the past hour
        await press(column, "Look back")
    await column.get_by_role("button", name="Show", exact=True).click()
    await expect(rows.first).to_contain_text("relic of now")
    hour = await column.get_by_label("From", exact=True).input_value()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile(f"^{hour[11:]} to "))
    await page.keyboard.press("Escape")
    await column.focus()
    await page.keyboard.press("Space")
    await live(column)


async def test_a_file_of_a_long_time_says_where_it_is_cut(site_api: Api, windows: Windows, tmp_path: Path) -> None:
    """It has the newest 10,000 posts. A page that is refused, as another tab looks back, is asked for again."""
    window = await windows.open(await named_user(site_api, "cutter"), address({"words": ["endless"]}))
    window.expects_refusals = True
    page, column = window.page, window.page.locator(".column")
    await live(column)
    asked: list[dict[str, Any]] = []

    async def answer(route: Route) -> None:
        body = json.loads(route.request.post_data or "")
        if body["limit"] == "10":  # what a new column begins with
            return await route.continue_()
        asked.append(body)
        if len(asked) == 1:
            error = {"code": "rate_limited", "message": "one at a time", "retry_after": 0}
            return await route.fulfill(status=429, json={"error": error})
        at, page_number = "2026-01-01T00:00:00Z", len(asked)
        status = {"uid": "1", "login": "a", "message": "endless", "posted": at, "entities": {}}
        ids = [f"{page_number}{n:04}" for n in range(int(asked[-1]["limit"]))]
        posts = [{"kind": "post", "cursor": f"{one}-0", "at": at, "status": {**status, "id": one}} for one in ids]
        return await route.fulfill(json={"events": posts, "cursor": f"{page_number}-0", "more": True})

    await page.route("**/v1/events", answer)
    await press(column, "Look back")
    await column.get_by_role("button", name="Show", exact=True).click()
    await expect(column.locator(".state")).to_contain_text("50 posts, and older ones")
    _, text = await saved(page, column, "Export as CSV", tmp_path)
    assert len(text.splitlines()) == 10_001
    told = "has 10,000 posts. The time has more: these are its newest 10,000, from 2026-01-01T00:00:00Z on"
    await expect(page.locator(".notes")).to_contain_text(told)
    shown, again, *copied = [one["before"] for one in asked]
    assert shown == again == copied[0]
    assert copied[1:] == [f"{n}-0" for n in range(3, len(asked))]
    for presses in range(1, 7):
        await column.get_by_role("button", name="Older").click()
        await expect(column.locator(".post")).to_have_count(50 + 50 * presses)  # also above the 300 of a live column


async def test_a_column_without_a_rule_has_no_chart_and_says_so(site_api: Api, windows: Windows) -> None:
    window = await windows.open(await named_user(site_api, "chartless"), address({"following": True}))
    column = window.page.locator(".column")
    await press(column, "Look back")
    await expect(column.locator(".look-back")).to_contain_text("this column has none")
    until = column.get_by_label("To", exact=True)
    now = await until.input_value()
    await until.fill("2020-01-01T10:00")
    await column.get_by_role("button", name="Show", exact=True).click()
    await expect(column.locator("input:invalid")).to_be_focused()  # it ends before it begins
    await until.fill(now)
    await column.get_by_role("button", name="Show", exact=True).click()
    await expect(column.locator(".state")).to_contain_text("0 posts")
    await column.get_by_role("button", name="Close", exact=True).click()
    await expect(column.locator(".look-back")).to_be_hidden()


async def test_a_file_has_the_rows_and_no_formulas_and_clear_can_be_undone(
    site_api: Api, windows: Windows, tmp_path: Path
) -> None:
    """A paused column's file has what it shows. A cell that a spreadsheet would run has an apostrophe."""
    reader = await named_user(site_api, "archivist")
    window = await windows.open(reader, address({"people": ["archivist"]}))
    page, column = window.page, window.page.locator(".column")
    rows = column.locator(".post")
    await live(column)
    await posts(site_api, reader["id"], *FORMULAS)
    await expect(rows).to_have_count(len(FORMULAS))
    name, text = await saved(page, column, "Export as CSV", tmp_path)
    assert re.fullmatch(r"-archivist-\d{4}-\d\d-\d\dT\d{6}Z\.csv", name)
    assert text.count("\r\n") == len(FORMULAS) + 1
    cells = list(csv.DictReader(io.StringIO(text, newline="")))
    guarded = [f"'{text}" if text[0] in "=+-@" else text for text in FORMULAS]
    assert [row["message"] for row in cells] == guarded
    assert {(row["login"], row["lang"] != "") for row in cells} == {("archivist", True)}
    await expect(page.locator(".notes")).to_contain_text("has an apostrophe")
    _, lines = await saved(page, column, "Export as JSON lines", tmp_path)
    events = [json.loads(line) for line in lines.splitlines()]
    assert [(event["kind"], event["status"]["message"]) for event in events] == [("post", text) for text in FORMULAS]
    assert all(event["cursor"] for event in events)
    await press(column, "Clear")
    await expect(rows).to_have_count(0)
    made = await site_api.post(reader["id"], "before an edit", location={"lat": -1.5, "lon": 7.25})
    await expect(rows).to_have_count(1)
    await site_api.done("PATCH", f"/v1/statuses/{made['id']}", token=mint(reader["id"]), json={"message": "after"})
    await expect(rows.locator(".text")).to_have_text(["after"])
    _, text = await saved(page, column, "Export as CSV", tmp_path)
    await expect(page.locator(".notes .note").filter(has_text="has 1 post.")).not_to_contain_text("apostrophe")
    [cells_of_edit] = csv.DictReader(io.StringIO(text, newline=""))
    assert (cells_of_edit["lat"], cells_of_edit["lon"]) == ("-1.5", "7.25")
    assert re.fullmatch(r"\d+-[\d.]+", cells_of_edit["cursor"])
    _, lines = await saved(page, column, "Export as JSON lines", tmp_path)
    assert json.loads(lines)["status"]["message"] == "after"
    await window.button("Undo").click()
    await expect(rows).to_have_count(len(FORMULAS) + 1)
    assert (await column.locator(".rows").evaluate(ORDER)) == ["after", *FORMULAS[::-1]]


async def test_the_chart_counts_on_while_it_is_seen(site_api: Api, windows: Windows) -> None:
    """Once a minute it asks for its newest bar and later ones. The bar of the console says what its numbers are of."""
    reader = await named_user(site_api, "chronicler")
    await posts(site_api, reader["id"], "annal 1", "annal 2")
    window = await windows.open(reader, "/#/people")
    page, column = window.page, window.page.locator(".column")
    await page.clock.install()
    await window.open(address({"words": ["annal"]}))
    await live(column)
    await press(column, "Look back")
    await expect(column.locator(".counts")).to_contain_text("2 posts")
    bars = await column.locator(".brush").get_attribute("aria-valuemax")
    await posts(site_api, reader["id"], "annal 3")
    async with page.expect_request("**/v1/rules/counts") as asked:
        await page.clock.run_for(61_000)
    assert '"from":"20' in str((await asked.value).post_data)
    await expect(column.locator(".counts")).to_contain_text("3 posts")
    assert await column.locator(".brush").get_attribute("aria-valuemax") == bars
    await expect(page.locator(".connection")).to_have_text(re.compile("^live · .+ in all columns · 99 % within "))
    await press(column, "Look back")
    questions: list[str] = []
    page.on("request", lambda request: questions.append(request.url) if "counts" in request.url else None)
    await page.clock.run_for(200_000)
    assert questions == []


KEEP_TOLD = """column => {
  window.told = [];
  const region = column.querySelector("[role=status]");
  new MutationObserver(() => window.told.push(region.textContent)).observe(region, { childList: true });
}"""


async def test_a_screen_reader_hears_what_a_time_has(site_api: Api, windows: Windows) -> None:
    """The end of reading with the number of posts, also of the next time that is shown."""
    reader = await named_user(site_api, "hearer")
    await posts(site_api, reader["id"], "chant 1", "chant 2")
    window = await windows.open(reader, address({"words": ["chant"]}))
    column = window.page.locator(".column")
    await live(column)
    await column.evaluate(KEEP_TOLD)
    await press(column, "Look back")
    show = column.get_by_role("button", name="Show", exact=True)
    await show.click()
    voice = column.locator(".state + [role=status]")
    await expect(voice).to_have_text(re.compile(r"^chant: .+: 2 posts$"))
    await column.get_by_label("To", exact=True).fill("2020-01-01T10:00")
    await column.get_by_label("From", exact=True).fill("2020-01-01T09:00")
    await show.click()
    await expect(voice).to_have_text(re.compile(r"^chant: .+09:00 to .+10:00: 0 posts$"))
    told = await window.page.evaluate("told")
    assert [text.rpartition(": ")[2] for text in told] == ["reading", "2 posts", "0 posts"]


PLACES = """panel => [...panel.querySelectorAll(".counts-plot, input, .row > button")]
  .map(one => one.getBoundingClientRect().top)"""


async def test_the_chart_keeps_its_place_while_it_is_counted(site_api: Api, windows: Windows) -> None:
    """Of an hour, a day and a week: it says that it counts, and nothing moves under the pointer."""
    reader = await named_user(site_api, "counter")
    await posts(site_api, reader["id"], "abacus 1")
    window = await windows.open(reader, address({"words": ["abacus"]}))
    column = window.page.locator(".column")
    await live(column)
    gate = asyncio.Event()

    async def hold(route: Route) -> None:
        await gate.wait()
        await route.continue_()

    await window.page.route("**/v1/rules/counts", hold)
    await press(column, "Look back")
    chart, panel = column.locator(".counts"), column.locator(".look-back")
    places = []
    for span in ("Hour", "Day", "Week"):
        await chart.get_by_role("button", name=span, exact=True).click()
        await expect(chart).to_contain_text("Counting…")
        places.append(await panel.evaluate(PLACES))
        gate.set()
        await expect(chart.locator(".counts-bars")).to_be_visible()
        await expect(chart).to_contain_text("1 post, at most 1 in")
        places.append(await panel.evaluate(PLACES))
        gate.clear()
    assert places == places[:1] * 6
    gate.set()
    await window.page.unroute_all(behavior="wait")
