"""The view Operations: it draws the state of the server, asks only while somebody looks, and says what it needs."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.windows import Window, named_user, open_window
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server

pytestmark = [pytest.mark.extended, pytest.mark.asyncio(loop_scope="session")]

expect.set_options(timeout=20_000)
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


@pytest_asyncio.fixture(loop_scope="session")
async def windows(shared_browser: Browser, site_server: Server) -> AsyncIterator[Callable[..., Awaitable[Window]]]:
    """Return a function that opens the view for a user. No window may have failed at the end."""
    opened: list[Window] = []

    async def one_more(user: dict[str, Any], **more: Any) -> Window:
        window = await open_window(shared_browser, site_server, user, **more)
        opened.append(window)
        await window.open("/#/operations")
        return window

    yield one_more
    for window in opened:
        await window.page.context.close()
    assert [failure for window in opened for failure in window.failures] == []


async def test_it_shows_the_server(site_api: Api, windows: Callable[..., Awaitable[Window]]) -> None:
    """Tiles, rates, streams by kind, refusals and workers follow what happens on the server."""
    user = await named_user(site_api, "opal")
    window = await windows(user, scope=ADMIN)
    await expect(window.page.locator("[data-tile=redis] .ops-value")).to_contain_text("iB")
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    async with await site_api.stream({"track": "operations"}, uid=user["id"]):
        kinds = window.page.locator(".ops-kinds")
        row = kinds.locator("dt", has_text="JSON lines").locator("xpath=following-sibling::dd[1]")
        await expect(row).to_contain_text("1")
        await site_api.call("GET", "/v1/statuses/1")
        await expect(window.page.get_by_role("cell", name="invalid_token")).to_be_visible()
    await expect(window.page.locator("[data-tile=requests] .ops-value")).to_contain_text("/s")
    label = await window.page.locator("[data-tile=requests] canvas").get_attribute("aria-label")
    assert str(label).startswith("Requests, the last")


async def test_it_asks_only_while_it_is_seen(site_api: Api, windows: Callable[..., Awaitable[Window]]) -> None:
    """A hidden page asks nothing. When it is seen again it asks at once."""
    window = await windows(await named_user(site_api, "olga"), scope=ADMIN)
    asked: list[str] = []
    window.page.on("response", lambda answer: asked.append(answer.url) if "/admin/operations" in answer.url else None)
    await window.page.clock.install()
    await window.page.reload()
    await expect(window.page.locator(".ops-good")).to_have_text("ready")
    await window.page.evaluate(HIDE, True)
    seen = len(asked)
    await window.page.clock.run_for(20_000)
    assert len(asked) == seen
    async with window.page.expect_response("**/v1/admin/operations"):
        await window.page.evaluate(HIDE, False)


async def test_without_the_scope_it_says_how_to_get_it(
    site_api: Api, windows: Callable[..., Awaitable[Window]]
) -> None:
    """The command of the page names the user."""
    window = await windows(await named_user(site_api, "otto"))
    await expect(window.page.locator("pre")).to_contain_text("stream-server sign-in --user otto --scope")


async def test_rates_come_from_the_same_process_only(site_api: Api, windows: Callable[..., Awaitable[Window]]) -> None:
    """A worker that was restarted counts from zero, and an answer that comes twice is left out."""
    window = await windows(await named_user(site_api, "odin"))
    first, second, third = await window.page.evaluate(COUNT_RATES)
    assert (first["delivered"], first["refusals"], first["streams"], first["hold"]) == (None, None, 3, 50)
    assert (second["delivered"], second["refusals"], second["streams"]) == (25, 2, 6)
    assert (third["delivered"], third["jobs"], third["lag"]) == (5, 3, 3)
