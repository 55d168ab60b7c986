"""A browser's EventSource on the native stream: a ticket opens it once, and a cursor continues it."""

from urllib.parse import urlencode

import pytest
from playwright.async_api import Page

from tests.browser.source import Source
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended


async def path(api: Api, token: str, **params: str) -> str:
    """Return the URL of a stream with a new ticket for the token."""
    made = await api.done("POST", "/v1/streams/ticket", token=token)
    return "/v1/stream?" + urlencode({**params, "ticket": made["ticket"]})


async def test_hello_and_posts_arrive(api: Api, site: str, tab: Page) -> None:
    """Each message is an event of its kind. Its id is the cursor, and the text is as posted."""
    uid = await api.user()
    source = await Source.opened(tab, site, await path(api, mint(uid), track="browsers"))
    (hello,) = await source.until("hello")
    status = await api.post(uid, "of browsers:\n<b>\u2028🍵</b>")
    (post,) = await source.until("post")
    assert post["message"]["status"]["message"] == status["message"]
    assert [one["id"] for one in (hello, post)] == [one["message"]["cursor"] for one in (hello, post)]


async def test_the_stream_is_compressed_and_each_event_arrives_at_once(api: Api, site: str, tab: Page) -> None:
    """The browser asks for gzip by itself, also when it comes back."""
    uid = await api.user()
    token = mint(uid)
    posted: list[str] = []
    since: dict[str, str] = {}
    for turn in range(2):
        source = await Source.opened(tab, site, await path(api, token, track="packed", **since))
        await source.until("hello")
        answer = await source.requests[-1].response()
        assert answer is not None
        assert await answer.header_value("content-encoding") == "gzip"
        for number in range(3):
            posted.append((await api.post(uid, f"packed {turn} {number}"))["id"])
            posts = await source.until("post", number + 1)
            assert posts[-1]["message"]["status"]["id"] == posted[-1]
        since = {"since": posts[-1]["id"]}
        await tab.goto("about:blank")


async def test_a_used_ticket_is_an_error_for_good(api: Api, site: str, tab: Page) -> None:
    """The 401 closes the EventSource, which does not reconnect."""
    used = await path(api, mint(await api.user()), track="x")
    assert (await api.call("GET", used.replace("/v1/stream", "/v1/events") + "&wait=0")).status == 200
    source = await Source.opened(tab, site, used)
    await source.until_closed()
    answer = await source.requests[0].response()
    assert answer is not None
    assert answer.status == 401
    assert await source.heard() == []


async def test_it_comes_back_by_itself_with_the_cursor_and_is_refused(api: Api, site: str, tab: Page) -> None:
    """The EventSource repeats its URL with `Last-Event-ID`. The ticket is used up, so a page needs a new one."""
    token = mint(await api.user(), ttl=6)  # the stream must open within this time, also on a busy machine
    source = await Source.opened(tab, site, await path(api, token, track="x"))
    (goodbye,) = await source.until("goodbye")
    assert goodbye["message"]["code"] == "token_expired"
    await source.until_closed()
    first, second = source.requests
    assert first.url == second.url
    assert "last-event-id" not in await first.all_headers()
    assert (await second.all_headers())["last-event-id"] == goodbye["id"]
    answer = await second.response()
    assert answer is not None
    assert answer.status == 401


async def test_another_ticket_goes_on_where_it_was(api: Api, site: str, tab: Page) -> None:
    """With the cursor as `since`, no event in between is missed or repeated."""
    uid = await api.user()
    token = mint(uid)
    source = await Source.opened(tab, site, await path(api, token, track="resumed"))
    await source.until("hello")
    first = await api.post(uid, "resumed one")
    (post,) = await source.until("post")
    assert post["message"]["status"]["id"] == first["id"]
    await tab.goto("about:blank")
    missed = [await api.post(uid, f"resumed {n}") for n in range(3)]
    again = await Source.opened(tab, site, await path(api, token, track="resumed", since=post["id"]))
    posts = await again.until("post", 3)
    assert [one["message"]["status"]["id"] for one in posts] == [one["id"] for one in missed]


async def test_a_page_of_another_origin_receives_nothing(api: Api, server: Server, site: str, tab: Page) -> None:
    """The browser hides an answer without CORS headers from the page, although the ticket was valid."""
    uid = await api.user()
    source = await Source.opened(tab, "about:blank", server.address + await path(api, mint(uid), track="x"))
    await source.until_closed()
    assert await source.heard() == []
