"""The events before a position, page by page, as `GET` and `POST /v1/events` answer with `before`."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.hub import look_back
from stream_server.hub.catchup import reader
from stream_server.store import keys
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.http.request_limits import LIMITS
from stream_server.web.streaming import events_before
from tests.stream_server import tokens
from tests.stream_server.web.running_server import RunningServer, running_server
from tests.waiting import eventually

FAR_AHEAD = "9999-12-31T00:00:00Z"
Page = dict[str, Any]


@pytest.fixture
async def server(redis_url: str) -> AsyncIterator[RunningServer]:
    async with running_server(redis_url, {}) as server:
        yield server


async def page_before(server: RunningServer, before: str, **parameters: Any) -> Page:
    status, answer = await server.call("POST", "/v1/events", json={**parameters, "before": before})
    assert status == 200, answer
    found: Page = answer
    return found


async def pages_before(server: RunningServer, before: str, **parameters: Any) -> list[Page]:
    """Return all pages back from a position, the newest first."""
    pages = [await page_before(server, before, **parameters)]
    while pages[-1]["more"]:
        pages.append(await page_before(server, pages[-1]["cursor"], **parameters))
    return pages


async def post(server: RunningServer, text: str, uid: str = "") -> str:
    headers = {"Authorization": f"Bearer {tokens.fresh(uid or server.uid, 'write')}"}
    async with server.session.post("/v1/statuses", json={"message": text}, headers=headers) as response:
        answer = await response.json()
        assert response.status == 201, answer
    made: str = answer["id"]
    return made


def texts(page: Page) -> list[str]:
    return [event["status"]["message"] if event["kind"] == "post" else event["kind"] for event in page["events"]]


@pytest.mark.parametrize("filters", [{"rule": "tea"}, {"track": "tea"}, {"follow": "@me"}, {"sample": 100}])
async def test_pages_go_back_to_the_start_of_the_log(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, filters: dict[str, Any]
) -> None:
    """Each event comes once, in the order of the log, also where a page has to end before it has found enough."""
    monkeypatch.setattr(reader, "MAX_PAGE_ENTRIES", 3)
    friend = {"login": "friend", "name": "F", "email": "f@example.com", "password": "correct horse"}
    _, followed = await server.call("POST", "/v1/users", json=friend)
    assert (await server.call("PUT", f"/v1/users/me/following/{followed['id']}"))[0] == 200
    for n in range(7):
        await post(server, f"tea {n}", followed["id"])
        await post(server, "the end")
    wanted = [text for n in range(7) for text in (f"tea {n}", "the end") if "sample" in filters or "tea" in text]
    for most_entries, limit in ((look_back.MAX_SCANNED_ENTRIES, 2), (1, 100), (look_back.MAX_SCANNED_ENTRIES, 100)):
        monkeypatch.setattr(look_back, "MAX_SCANNED_ENTRIES", most_entries)
        found = await pages_before(server, FAR_AHEAD, kinds="post", limit=limit, **filters)
        assert all(len(page["events"]) <= limit for page in found)
        assert [text for page in found[::-1] for text in texts(page)] == wanted


async def test_a_page_begins_and_ends_where_it_is_told(server: RunningServer) -> None:
    """`before` excludes the event of its cursor, and so does `since`. Both may be times. Deleted posts are left out."""
    ids = [await post(server, f"tea {n}") for n in range(5)]
    whole = await page_before(server, FAR_AHEAD, rule="tea", explain="true", kinds="post")
    assert (texts(whole), whole["more"]) == ([f"tea {n}" for n in range(5)], False)
    assert whole["events"][0]["matched"][0]["parts"] == [{"part": "tea", "indices": [[0, 3]]}]
    cursors = [event["cursor"] for event in whole["events"]]
    inner = await page_before(server, cursors[4], rule="tea", since=cursors[1])
    assert (texts(inner), inner["more"]) == (["tea 2", "tea 3"], False)
    times = [event["at"] for event in whole["events"]]
    by_time = await page_before(server, times[3], rule="tea", since=times[1])
    assert set(texts(by_time)) == {f"tea {n}" for n in range(5) if times[1] <= times[n] < times[3]}
    assert texts(await page_before(server, "-1h", rule="tea")) == []
    await server.call("DELETE", f"/v1/statuses/{ids[3]}")
    again = await page_before(server, FAR_AHEAD, rule="tea", kinds="post")
    assert texts(again) == ["tea 0", "tea 1", "tea 2", "tea 4"]


async def test_the_start_of_a_trimmed_log_is_a_gap(server: RunningServer) -> None:
    """The gap stands before the oldest events, and only on the last page."""
    for n in range(6):
        await post(server, f"tea {n}")
    hub, store = server.app[HUB], server.app[STORE]
    newest = await store.log.head()
    await eventually(lambda: hub.head >= newest)  # the trimmer never takes what a server has not read yet
    await store.log._redis.execute(("XTRIM", keys.LOG, "MAXLEN", "=", 3))
    first, last = await pages_before(server, FAR_AHEAD, rule="tea", limit=2)
    assert texts(first) == ["tea 4", "tea 5"]
    assert texts(last) == ["gap", "tea 3"]
    assert last["events"][0]["reason"] == "trimmed"


async def test_an_answer_ends_with_the_page_that_makes_it_long(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "MAX_PAGE_ENTRIES", 2)
    monkeypatch.setattr(events_before, "MAX_ANSWER_BYTES", 700)
    for n in range(8):
        await post(server, f"tea {n}")
    found = await pages_before(server, FAR_AHEAD, rule="tea", kinds="post")
    assert len(found) > 2
    assert [text for page in found[::-1] for text in texts(page)] == [f"tea {n}" for n in range(8)]


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"rule": "tea", "before": "soon"}, (400, "invalid_cursor", "before")),
        ({"rule": "tea", "before": ""}, (400, "invalid_cursor", "before")),
        ({"rule": "tea", "before": "1704067200000-5000.3"}, (400, "invalid_cursor", "before")),
        ({"rule": "tea (", "before": "-1m"}, (400, "invalid_parameter", "rule")),
        ({"rules": "saved", "before": "-1m"}, (400, "invalid_parameter", "rules")),
        ({"subscription": "mine", "before": "-1m"}, (400, "conflicting_parameters", "before")),
        ({"rule": "tea", "before": "-1m", "since": FAR_AHEAD}, (400, "invalid_parameter", "since")),
    ],
)
async def test_what_names_no_page_is_refused(
    server: RunningServer, parameters: dict[str, str], error: tuple[int, str, str]
) -> None:
    status, answer = await server.call("POST", "/v1/events", json=parameters)
    assert (status, answer["error"]["code"], answer["error"]["param"]) == error


async def test_a_user_looks_back_once_at_a_time(redis_url: str) -> None:
    """As with a preview, it is refused while another one of the user runs. Afterwards the turn is free."""
    async with running_server(redis_url, {"limits": "on"}) as server:
        previews, asked = server.app[LIMITS].previews, {"rule": "tea", "before": "-0s"}
        previews.counts[server.uid] = 1
        status, answer = await server.call("GET", "/v1/events", params=asked)
        assert (status, answer["error"]["code"]) == (429, "rate_limited")
        del previews.counts[server.uid]
        for _ in range(2):
            assert (await server.call("GET", "/v1/events", params=asked))[0] == 200
        assert len(previews) == 0
