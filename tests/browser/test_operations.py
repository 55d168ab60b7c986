"""The view Operations: it draws the state of the server, asks only while somebody looks, and says what it needs."""

import re
import time
from collections import Counter

import msgspec
import pytest
from playwright.async_api import Locator, Route, ViewportSize, expect

from stream_server.monitoring.history import SAMPLE_SECONDS, Sample, name_server
from stream_server.store import keys
from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.waiting import eventually

pytestmark = pytest.mark.extended

NARROW: ViewportSize = {"width": 320, "height": 480}
"""What a zoom of 400 % leaves of a usual window."""

ADMIN = "read write stream firehose admin"
HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
CLOCK = "at => new Date(at * 1000).toLocaleTimeString([], { timeStyle: 'medium', hour12: false })"
COUNT_RATES = """async () => {
  const { History } = await import("/console/operations/history.js");
  const worker = (more) => ({ worker: 1, pid: 7, started: "s", ready: true, streams: { sse: 2, poll: 1 }, lag_ms: 3,
    live: 2, catching_up: 0, events_published: 0, events_delivered: 0, requests: 0, cpu_seconds: 0, loop_blocked: 0,
    loop_blocked_seconds: 0.05, memory_bytes: 5, refusals: {}, ...more });
  const state = (second, ...workers) => ({ at: `2026-01-01T00:00:0${second}.000Z`, workers,
    redis: { memory_bytes: 9 }, log: { entries: 4 }, jobs: { due: 1, parked: 2 } });
  const history = new History();
  history.add(state(0, worker({ events_delivered: 100 })));
  history.add(state(2, worker({ events_delivered: 150, refusals: { not_found: 4 } }), worker({ worker: 2, pid: 8 })));
  history.add(state(2, worker({ events_delivered: 999 })));
  history.add(state(4, worker({ pid: 9, events_delivered: 300 }), worker({ worker: 2, pid: 8, events_delivered: 10 })));
  return history.samples.map(({ values }) => values);
}"""


async def test_it_shows_the_server_while_it_is_seen(site_api: Api, windows: Windows) -> None:
    """Tiles, rates, streams by kind, refusals and workers follow what happens. A hidden page asks nothing."""
    user = await named_user(site_api, "opal")
    window = await windows.open(user, "/#/operations", scope=ADMIN)
    await expect(window.page.locator("[data-tile=redis] .ops-value")).to_contain_text("iB")
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    async with await site_api.stream({"track": "operations"}, uid=user["id"]):
        await expect(window.page.get_by_role("row", name="JSON lines 1")).to_be_visible()
        await site_api.call("GET", "/v1/statuses/1")
        await expect(window.page.get_by_role("cell", name="invalid_token")).to_be_visible()
    await expect(window.page.locator("[data-tile=requests] .ops-value")).to_contain_text("/s")
    label = await window.page.locator("[data-tile=requests] [role=img]").get_attribute("aria-label")
    assert str(label).startswith("Requests, the last")
    assert await window.faults() == []

    asked: list[str] = []
    answered: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    window.page.on("requestfinished", lambda request: answered.append(request.url))
    window.page.on("requestfailed", lambda request: answered.append(request.url))
    await window.page.clock.install()
    await window.page.reload()  # timers that began before the clock do not obey it
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    seen = len(asked)
    await window.page.clock.run_for(20_000)
    await eventually(lambda: len(asked) > seen, what="another look while the page is seen")
    await window.page.evaluate(HIDE, True)

    async def rests() -> bool:
        """Whether nothing was asked in thirty rounds. An answer that is under way at first lets the page ask again."""
        before, is_answered = len(asked), Counter(asked) <= Counter(answered)
        for _ in range(3):
            await window.page.clock.run_for(20_000)
        return is_answered and len(asked) == before

    await eventually(rests, what="a page that asks nothing")
    async with window.page.expect_response("**/v1/admin/operations"):
        await window.page.evaluate(HIDE, False)


async def test_without_the_scope_it_says_how_to_get_it(site_api: Api, windows: Windows) -> None:
    """The command of the page names the user. Rates come from the same process only, and from each answer once."""
    window = await windows.open(await named_user(site_api, "otto"), "/#/operations")
    await expect(window.page.locator("pre")).to_contain_text("stream-server sign-in --user otto --scope")
    first, second, third = await window.page.evaluate(COUNT_RATES)
    assert (first["delivered"], first["refusals"], first["streams"], first["hold"]) == (None, None, 3, 50)
    assert (second["delivered"], second["refusals"], second["streams"]) == (25, 2, 6)
    assert (third["delivered"], third["jobs"], third["lag"]) == (5, 3, 3)


async def test_an_hour_is_drawn_that_was_before_the_page(site_api: Api, site_server: Server, windows: Windows) -> None:
    """After a reload the plots have the hour, with axes and the highest value, to see, to hear and by the keyboard."""
    start = (int(time.time()) - 3500) // SAMPLE_SECONDS * SAMPLE_SECONDS
    kept = {}
    for step in range(300):
        at = start + step * SAMPLE_SECONDS
        sample = Sample(at, 1, 5, 0, 0, 4000 if step == 100 else 30, 0, 50, 2, 0.01, 9, 9, 9, step)
        kept[msgspec.json.encode(sample)] = at
    key = keys.operation_samples(name_server(int(site_server.address.rpartition(":")[2])))
    site_server.redis_client().zadd(key, kept)
    window = await windows.open(await named_user(site_api, "olga"), "/#/streams", scope=ADMIN)
    page = window.page
    window.expects_refusals = True
    async with page.expect_request("**/operations/history"):
        await page.route("**/operations/history", lambda route: route.fulfill(status=503))
        await page.evaluate("location.hash = '#/operations'")
    await expect(page.locator(".connection")).to_have_text("live")
    await page.unroute_all()
    tile = page.locator("[data-tile=requests]")
    peak, first = [await page.evaluate(CLOCK, at) for at in (start + 100 * SAMPLE_SECONDS, start)]
    whole = re.compile("the last (58|59|60) minutes")  # up to now, which has a rate from the second answer on
    for _ in range(2):
        picture = tile.get_by_role("img")
        await expect(picture).to_have_attribute("aria-label", whole)
        label = str(await picture.get_attribute("aria-label"))
        assert f"at most 4,000/s at {peak[:5]}" in label
        await expect(tile.locator(".ops-y")).to_have_text("4,000/s0/s")
        await expect(tile.locator(".ops-x")).to_contain_text(re.compile(f"^{first[:5]}max at {peak[:5]}"))
        await page.reload()
    await expect(picture).to_have_attribute("aria-label", whole)
    point = tile.get_by_role("slider", name="Requests, at")
    await point.press("Home")
    await expect(point).to_have_attribute("aria-valuetext", f"{first}  30/s")
    await expect(tile.locator(".ops-tip")).to_have_text(f"{first}  30/s")
    for _ in range(2):
        await point.press("ArrowRight")
    await expect(point).to_have_attribute("aria-valuetext", re.compile("  30/s$"))
    box = await point.bounding_box()
    assert box is not None
    await point.blur()
    ended = (time.time() - start) / 10
    await point.hover(position={"x": box["width"] * 100 / ended, "y": 5})
    await expect(tile.locator(".ops-tip")).to_contain_text(peak[:5])
    assert await window.faults() == []
    await page.set_viewport_size(NARROW)
    assert await page.evaluate("document.querySelector('main').scrollWidth <= innerWidth")
    await page.set_viewport_size({"width": 1100, "height": 700})


async def test_a_server_records_itself(site_api: Api) -> None:
    """Without anybody who looks, a sample is there after ten seconds."""

    async def history() -> bool:
        token = mint(site_api.admin, "admin")
        found = await site_api.done("GET", "/v1/admin/operations/history", token=token)
        return any(memory > 2**20 for memory in found["memory_bytes"])

    await eventually(history, what="a sample")


async def pages_of_one(route: Route) -> None:
    """Ask for a page of one stream instead of twenty."""
    await route.continue_(url=route.request.url.replace("count=20", "count=1"))


async def test_all_streams_are_listed_and_one_is_ended(site_api: Api, windows: Windows) -> None:
    """Sorted, of one user, added up by user, and ended; the table holds still while somebody works in it."""
    ida, jan = await named_user(site_api, "ines"), await named_user(site_api, "jana")
    root = await named_user(site_api, "oskar")
    async with (
        await site_api.stream({"track": "tulips"}, uid=ida["id"]) as small,
        await site_api.stream({"follow": ida["id"]}, uid=jan["id"]) as large,
        await site_api.stream({"track": "roses"}, uid=jan["id"]),
    ):
        for text in ("one", "two tulips"):
            await site_api.post(ida["id"], text)
        await large.until(lambda consumer: len(consumer.events) == 2)
        await small.until(lambda consumer: len(consumer.events) == 1)
        window = await windows.open(root, "/#/operations", scope=ADMIN)
        page = window.page
        table = page.get_by_role("region", name="Open streams")
        rows = table.locator("tbody tr:visible")
        sorted_by = table.get_by_role("columnheader", name="Entries behind")
        await expect(sorted_by).to_have_attribute("aria-sort", "descending")
        assert "▾" in await sorted_by.evaluate("head => getComputedStyle(head, '::after').content")
        await expect(rows.filter(has_text="roses")).to_contain_text("track: roses")
        await table.get_by_role("button", name="Delivered").click()
        await expect(rows.first).to_contain_text("@jana2")
        await expect(rows.nth(1)).to_contain_text("@ines1")
        await page.get_by_role("textbox", name="Streams of the user").fill("@jana")
        await window.button("Show").click()
        await expect(rows).to_have_count(2)
        await page.get_by_role("textbox", name="Streams of the user").fill("")
        await window.button("Show").click()
        await window.button("By user").click()
        await expect(table.get_by_role("columnheader", name="Streams")).to_be_visible()
        await expect(rows.filter(has_text="@jana")).to_have_text("@jana2200 B")
        await page.get_by_role("textbox", name="Streams of the user").fill("jana")
        await window.button("Show").click()
        await expect(rows).to_have_text(["@jana2200 B"])
        await expect(page.get_by_text("2 streams of @jana, without waiting polls")).to_be_visible()
        await window.button("Each stream").click()
        await expect(rows).to_have_count(2)
        assert await window.faults() == []
        await page.route("**/v1/admin/streams?*", pages_of_one)
        await table.get_by_role("button", name="Delivered").click()
        for turn, text in (("Next page", "roses"), ("Previous page", ida["id"])):
            await window.button(turn).click()
            await expect(rows).to_have_text(re.compile(text))
        await page.unroute_all()
        await window.button("Show").click()

        end = rows.filter(has_text=ida["id"]).get_by_role("button")
        await end.click()
        await expect(rows).to_have_count(1)
        await expect(page.locator(".notes")).to_contain_text(f"of @jana (/v1/stream, follow: {ida['id']}) ends")
        await page.locator(".notes").get_by_role("button", name="Undo").click()
        await expect(rows).to_have_count(2)
        await end.click()
        await page.locator(".notes").get_by_role("button", name="Dismiss").click()
        await large.until(lambda consumer: consumer.of("goodbye"))
        assert large.of("goodbye")[0]["code"] == "closed_by_operator"
        assert not small.ended


async def test_back_leads_to_the_place_where_one_was(site_api: Api, windows: Windows) -> None:
    """With what was chosen; and nothing is asked while another view is on show."""
    window = await windows.open(await named_user(site_api, "odette"), "/#/operations", scope=ADMIN)
    page, asked = window.page, list[str]()
    await page.clock.install()
    await window.open("/#/operations")
    async with await site_api.stream({"track": "placed"}, uid=site_api.admin):
        await window.button("By user").click()
        table = page.get_by_role("region", name="Open streams")
        await table.get_by_role("button", name="Delivered").click()
        sorted_by = table.get_by_role("columnheader", name="Delivered")
        await expect(sorted_by).to_have_attribute("aria-sort", "descending")
        await page.locator("main").evaluate("main => main.scrollTo(0, 400)")
        await page.get_by_role("link", name="People").first.click()
        await expect(page.get_by_role("heading", name="Home")).to_be_visible()
        await page.clock.run_for(20_000)
        page.on("request", lambda request: asked.append(request.url) if "/operations" in request.url else None)
        await page.clock.run_for(20_000)
        assert asked == []
        async with page.expect_request("**/operations/history"):
            await page.go_back()
        await expect(window.button("By user")).to_have_attribute("aria-pressed", "true")
        await expect(sorted_by).to_have_attribute("aria-sort", "descending")
        assert await page.locator("main").evaluate("main => main.scrollTop") == 400
        await expect(page).to_have_title("Operations · stream-server")
        await expect(page.locator(".connection")).to_have_text("live")


async def test_the_tables_hold_still_under_the_hand(site_api: Api, windows: Windows) -> None:
    """No row moves while the pointer or the focus is in a table, and the newest state is shown after that."""
    window = await windows.open(await named_user(site_api, "olaf"), "/#/operations", scope=ADMIN)
    page = window.page
    await page.clock.install()
    await page.reload()
    streams, workers = page.get_by_role("region", name="Open streams"), page.get_by_role("region", name="Workers")
    async with await site_api.stream({"track": "hold"}, uid=site_api.admin):
        for table in (workers, streams):
            await page.mouse.move(0, 0)
            cell = table.locator("tbody td").first
            await cell.hover()
            await cell.evaluate("cell => { cell.dataset.mark = 'same'; }")
            for _ in range(8):
                async with page.expect_response("**/v1/admin/operations"):
                    await page.clock.run_for(2100)
            await expect(cell).to_have_attribute("data-mark", "same")
            await page.mouse.move(0, 0)

            async def is_new(seen: Locator = cell) -> bool:
                await page.clock.run_for(2100)
                return await seen.get_attribute("data-mark") is None

            await eventually(is_new, what="a new table")


async def test_an_unknown_user_is_told_at_the_field_and_leaves_no_rows(site_api: Api, windows: Windows) -> None:
    """Nobody takes the rows of other users for those of this one. The server is not asked for the name again."""
    window = await windows.open(await named_user(site_api, "osip"), "/#/operations", scope=ADMIN)
    window.expects_refusals = True
    page = window.page
    search = page.get_by_role("search")
    async with await site_api.stream({"track": "unknowable"}, uid=site_api.admin):
        await window.button("Show").click()
        rows = page.get_by_role("region", name="Open streams").locator("tbody tr")
        await expect(rows.filter(has_text="unknowable")).to_be_visible()
        field = search.get_by_role("textbox", name="Streams of the user")
        await field.fill("nobody_of_this_name")
        await window.button("Show").click()
        await expect(search.get_by_role("alert")).to_have_text("Unknown user.")
        await expect(rows).to_have_count(0)
        await expect(page.get_by_text("without waiting polls.")).to_have_count(0)
        assert await window.faults() == []
        await field.fill("")
        await window.button("Show").click()
        await expect(rows.filter(has_text="unknowable")).to_be_visible()
        await expect(search.get_by_role("alert")).to_have_count(0)
