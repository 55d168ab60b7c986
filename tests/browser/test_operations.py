"""The view Operations: it draws the state of the server, asks only while somebody looks, and says what it needs."""

import pytest
from playwright.async_api import expect

from tests.browser.windows import Windows, named_user
from tests.end_to_end.api import Api
from tests.waiting import eventually

pytestmark = pytest.mark.extended

ADMIN = "read write stream firehose admin"
HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.dispatchEvent(new Event("visibilitychange"));
}"""
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
  history.add(state(4, worker({ pid: 9, events_delivered: 3 }), worker({ worker: 2, pid: 8, events_delivered: 10 })));
  return history.samples.map(({ values }) => values);
}"""


async def test_it_shows_the_server_while_it_is_seen(site_api: Api, windows: Windows) -> None:
    """Tiles, rates, streams by kind, refusals and workers follow what happens. A hidden page asks nothing."""
    user = await named_user(site_api, "opal")
    window = await windows.open(user, "/#/operations", scope=ADMIN)
    await expect(window.page.locator("[data-tile=redis] .ops-value")).to_contain_text("iB")
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    async with await site_api.stream({"track": "operations"}, uid=user["id"]):
        kind = window.page.locator(".ops-kinds dt", has_text="JSON lines")
        await expect(kind.locator("xpath=following-sibling::dd[1]")).to_contain_text("1")
        await site_api.call("GET", "/v1/statuses/1")
        await expect(window.page.get_by_role("cell", name="invalid_token")).to_be_visible()
    await expect(window.page.locator("[data-tile=requests] .ops-value")).to_contain_text("/s")
    label = await window.page.locator("[data-tile=requests] [role=img]").get_attribute("aria-label")
    assert str(label).startswith("Requests, the last")
    assert await window.faults() == []

    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    await window.page.clock.install()
    await window.page.reload()  # timers that began before the clock do not obey it
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    seen = len(asked)
    await window.page.clock.run_for(20_000)
    await eventually(lambda: len(asked) > seen, what="another look while the page is seen")
    await window.page.evaluate(HIDE, True)
    await window.page.clock.run_for(20_000)
    hidden = len(asked)
    await window.page.clock.run_for(20_000)
    assert len(asked) == hidden
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
