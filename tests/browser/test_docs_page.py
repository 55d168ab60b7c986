"""The page /docs: it lists every route by itself, without a network, and sends the requests that it shows."""

import asyncio
import os
import re

import pytest
from playwright.async_api import expect

from stream_server.web.routes import ROUTE_TABLE
from tests.browser.windows import DESKTOP, PHONE, Windows, named_user
from tests.end_to_end.api import Api, mint

pytestmark = pytest.mark.extended

OPEN_ALL = "main => { main.hidden = true; main.querySelectorAll('.docs-route > summary').forEach(row => row.click()); }"
"""Opens each route. The browser need not lay out and paint so many panels."""


async def test_it_lists_every_route_of_the_url_table(windows: Windows) -> None:
    """Each row of the table is there once, with its scope; each opens without a failure."""
    page = await windows.open(None, "/docs")
    await expect(page.page.locator(".docs-route").first).to_be_visible()
    rows = await page.page.locator(".docs-route > summary").all_inner_texts()
    others = await page.page.locator("#dialects .docs-plain li").all_inner_texts()
    operators = page.page.locator("#rules li")
    await expect(operators.filter(has_text="conversation_id:id in the thread")).to_have_count(1)
    await expect(operators.filter(has_text="track:value")).to_have_count(1)  # that of a filter
    shown = [tuple(text.split()[:2]) for text in [*rows, *others]]
    assert sorted(shown) == sorted((row.method, row.path) for row in ROUTE_TABLE)
    scope = page.page.locator("#statuses_post .docs-access")
    await expect(scope).to_have_text("scope write")
    await page.page.locator("main").evaluate(OPEN_ALL)
    await expect(page.page.locator(".docs-route[open] .docs-panel")).to_have_count(len(rows))
    shapes = await page.page.locator("#statuses_post .docs-name").all_text_contents()
    assert {"message", "location", "likes", "Idempotency-Key"} <= set(shapes)
    await page.page.locator("#object-Status").evaluate("details => { details.open = true; }")
    await expect(page.page.locator("#object-Status .docs-name", has_text="conversation").first).to_be_attached()


async def test_a_stream_shows_the_members_of_each_of_its_messages(windows: Windows) -> None:
    """Also a poll, whose answer has them as a list. They are there when they are opened."""
    page = await windows.open(None, "/docs#stream_filter_stream_get")
    panel = page.page.locator("#stream_filter_stream_get")
    message = panel.locator("details", has=page.page.locator("summary", has_text=re.compile("^Gap$")))
    await message.evaluate("details => { details.open = true; }")
    await expect(message.locator(".docs-name", has_text="reason")).to_be_attached()
    await page.page.evaluate("location.hash = '#long_poll_poll_events_get'")
    events = page.page.locator("#long_poll_poll_events_get details", has_text="StreamMessage").first
    await events.evaluate("details => { details.open = true; }")
    await expect(events.locator("summary", has_text=re.compile("^Post$"))).to_be_attached()
    example = page.page.locator("#long_poll_poll_events_get .docs-example")
    await expect(example).to_contain_text('"kind": "post"')
    assert await page.faults() == []


async def test_search_keys_and_deep_links(windows: Windows) -> None:
    """The search narrows the routes, the keys move between them, the address opens one, and open routes are tried."""
    page = await windows.open(None, "/docs")
    await expect(page.page.locator(".docs-route").first).to_be_visible()
    await page.page.keyboard.press("/")
    await page.page.keyboard.type("talks read")
    visible = page.page.locator(".docs-route:visible")
    await expect(visible.first).to_contain_text("/v1/talks")
    count = await visible.count()
    assert 0 < count < 8
    await expect(page.page.locator(".docs-count")).to_have_text(re.compile(rf"^{count} of \d+ routes$"))
    await page.page.keyboard.press("Escape")
    await page.page.locator("h1").click()
    await page.page.keyboard.press("j")
    await page.page.keyboard.press("j")
    await page.page.keyboard.press("Enter")
    opened = page.page.locator(".docs-route[open]")
    await expect(opened).to_have_count(1)
    address = page.page.url
    assert address.endswith("#" + str(await opened.get_attribute("id")))
    await page.page.goto("about:blank")
    await page.page.goto(address)
    await expect(page.page.locator(".docs-route[open]")).to_be_in_viewport()
    await page.page.evaluate("location.hash = '#server_liveness'")
    form = page.page.get_by_role("form", name="Try GET /healthz")
    await form.get_by_role("button", name="Send GET").click()
    await expect(form.locator(".docs-answer")).to_contain_text('"alive": true')
    await page.page.evaluate("location.hash = '#users_get'")
    page.expects_refusals = True
    form = page.page.get_by_role("form", name="Try GET /v1/users/{id}", exact=True)
    await form.get_by_role("button", name="Send GET").click()
    await expect(form.locator("input:invalid")).to_be_focused()
    await form.get_by_label("id").fill("1")
    await form.get_by_role("button", name="Send GET").click()
    await expect(form.locator(".docs-state")).to_contain_text("401")
    await expect(form).to_contain_text("This route needs a token.")


async def test_the_form_posts_and_its_curl_command_does_too(site_api: Api, windows: Windows) -> None:
    """With a session, the form writes a status. The shell that runs the shown command writes the same text again."""
    user = await named_user(site_api, "tess")
    window = await windows.open(user, "/docs#statuses_post")
    await window.page.set_viewport_size(PHONE)
    form = window.page.get_by_role("form", name="Try POST /v1/statuses", exact=True)
    text = """it's "quoted" $HOME `date` \\\\ ünïcode"""
    await form.locator("textarea").fill('{"message": "it\'s \\"quoted\\" $HOME `date` \\\\\\\\ ünïcode"}')
    await form.get_by_role("button", name="add lang to the body").click()
    await form.get_by_role("button", name="Send POST").click()
    await expect(form.locator(".docs-state")).to_contain_text("201")
    command = await form.locator(".docs-curl").inner_text()
    assert mint(user["id"])[:10] not in command
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", command, env={**os.environ, "TOKEN": mint(user["id"])}, stdout=asyncio.subprocess.DEVNULL
    )
    assert await shell.wait() == 0
    mine = await site_api.done("GET", f"/v1/users/{user['id']}/statuses", token=mint(user["id"]))
    assert [(status["message"], status["lang"]) for status in mine["statuses"]] == [(text, "en")] * 2
    assert await window.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await window.faults() == []
    await window.page.set_viewport_size(DESKTOP)


async def test_the_search_finds_words_of_bodies_by_their_beginnings(windows: Windows) -> None:
    """Of parameters and members within members too, and no middle of a word. Where none is found, the page says so."""
    page = (await windows.open(None, "/docs")).page
    search, shown = page.get_by_role("searchbox", name="Search routes"), page.locator(".docs-route:visible h3")
    await search.fill("webhook")
    await expect(shown.filter(has_text="/v1/subscriptions/{subscription}").first).to_contain_text("PUT")
    await search.fill("cursor")
    await expect(shown.filter(has_text="POST /v1/stream").first).to_be_visible()
    await search.fill("lat")
    await expect(shown.filter(has_text="POST /v1/statuses").first).to_be_visible()  # of its location
    await expect(shown.filter(has_text="relationship")).to_have_count(0)
    await search.fill("in_reply_to /v1/statuses")
    await expect(shown).to_have_count(1)
    await search.fill("zzzz")
    await expect(page.get_by_text("No route has these words.")).to_be_visible()
    await page.get_by_role("button", name="Show all routes").click()
    await expect(shown.first).to_be_visible()
    await expect(page.get_by_text("No route has these words.")).to_be_hidden()
