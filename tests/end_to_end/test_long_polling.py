"""Long polling: one answer per request, with the same events and cursors as the streams."""

import asyncio

from tests.end_to_end.api import Api, mint, with_brief_token
from tests.waiting import PATIENCE


async def test_a_poll_starts_at_the_head_and_is_answered_by_the_first_event(api: Api) -> None:
    """Without `since` a poll returns no old events. A new post answers a waiting poll before its `wait` ends."""
    uid = await api.user()
    await api.post(uid, "old")
    first = await api.poll({"follow": uid})
    assert (first["events"], first["more"]) == ([], False)
    waiting = asyncio.create_task(api.poll({"follow": uid, "since": first["cursor"]}, wait=60))
    status = await api.post(uid, "new")
    page = await asyncio.wait_for(waiting, PATIENCE)
    assert [e["status"] for e in page["events"]] == [status]
    assert page["cursor"] == page["events"][-1]["cursor"]


async def test_cursor_is_an_alias_of_since(api: Api) -> None:
    """Both names work. A request with both is refused."""
    uid = await api.user()
    start = (await api.poll({"follow": uid}))["cursor"]
    status = await api.post(uid, "hello")
    for name in ("since", "cursor"):
        page = await api.poll({"follow": uid, name: start})
        assert [e["status"]["id"] for e in page["events"]] == [status["id"]]
    both = {"follow": uid, "since": start, "cursor": start}
    answer = await api.call("GET", "/v1/events", token=mint(uid), params=both)
    assert answer.error == (400, "conflicting_parameters", "cursor")


async def test_the_cursor_of_a_limited_page_is_that_of_its_last_event(api: Api) -> None:
    """The pages contain each event once, and `more` is true as long as the log has more."""
    uid = await api.user()
    cursor = (await api.poll({"follow": uid}))["cursor"]
    posted = [(await api.post(uid, str(n)))["id"] for n in range(7)]
    pages = []
    for _ in range(3):
        page = await api.poll({"follow": uid, "since": cursor, "limit": "3"})
        assert page["cursor"] == page["events"][-1]["cursor"]
        cursor = page["cursor"]
        pages.append(page)
    assert [e["status"]["id"] for p in pages for e in p["events"]] == posted
    assert [len(p["events"]) for p in pages] == [3, 3, 1]
    assert [p["more"] for p in pages] == [True, True, False]


async def test_an_empty_answer_comes_at_the_end_of_the_wait(api: Api) -> None:
    """The answer comes not before the end of `wait`, and that of a poll with a longer one comes later."""
    start = asyncio.get_running_loop().time()
    short, long = (asyncio.create_task(api.poll({"track": "nobodysaysthis"}, wait=wait)) for wait in (0.5, 60))
    done, _ = await asyncio.wait({short, long}, return_when=asyncio.FIRST_COMPLETED)
    assert done == {short}
    assert asyncio.get_running_loop().time() - start > 0.4
    assert short.result()["events"] == []
    long.cancel()


async def test_a_tokens_expiry_ends_the_wait_with_goodbye(api: Api) -> None:
    """The `goodbye` is in `events`."""
    uid = await api.user()
    params = {"track": "a", "wait": "60"}
    page = await with_brief_token(uid, lambda token: api.done("GET", "/v1/events", token=token, params=params))
    assert [(e["kind"], e["code"]) for e in page["events"]] == [("goodbye", "token_expired")]
