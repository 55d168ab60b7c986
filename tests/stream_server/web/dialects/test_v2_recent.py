"""Recent search and counts of v2: parameters, pages and what they show. `tests/clients/test_tweepy4.py` uses tweepy."""

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from stream_server.events.position import EPOCH_MS, format_iso_time
from stream_server.hub import look_back
from stream_server.hub.catchup import reader
from tests.end_to_end.api import Api, mint
from tests.stream_server.web.running_server import running_server

SEARCH, COUNTS = "/2/tweets/search/recent", "/2/tweets/counts/recent"

Json = dict[str, Any]


async def ask(api: Api, uid: str, path: str, query: str, **more: str) -> Json:
    named = {name.replace("_fields", ".fields"): value for name, value in more.items()}
    answer: Json = await api.done("GET", path, token=mint(uid), params={"query": query, **named})
    return answer


def ids(page: Mapping[str, Any]) -> list[str]:
    return [tweet["id"] for tweet in page.get("data", [])]


def new_word() -> str:
    return f"w{uuid.uuid4().hex[:10]}"


async def test_a_search_shows_the_requested_fields_and_each_expanded_object_once(api: Api) -> None:
    ann, word = await api.user(), new_word()
    place = {"name": "Home"}
    posted = [await api.post(ann, f"{word} {n}", place=place, lang="en") for n in range(3)]
    fields = {"tweet_fields": "lang", "expansions": "author_id,geo.place_id"}
    page = await ask(api, ann, SEARCH, f"{word} lang:en", **fields)
    assert ids(page) == [status["id"] for status in posted[::-1]]
    assert [tweet["lang"] for tweet in page["data"]] == ["en"] * 3
    assert [user["id"] for user in page["includes"]["users"]] == [ann]
    assert [place["full_name"] for place in page["includes"]["places"]] == ["Home"]
    assert page["meta"] == {"result_count": 3, "newest_id": posted[2]["id"], "oldest_id": posted[0]["id"]}


async def test_ids_and_times_bound_what_is_found_and_counted(api: Api) -> None:
    """Both ids are exclusive. A time counts from itself on, and up to before itself."""
    ann, word = await api.user(), new_word()
    posted = [(await api.post(ann, f"{word} {n}"))["id"] for n in range(5)]
    at = {n: format_iso_time((int(status) >> 12) + EPOCH_MS) for n, status in enumerate(posted)}
    bounds: list[tuple[Json, list[str]]] = [
        ({"since_id": posted[1]}, posted[2:]),
        ({"until_id": posted[3]}, posted[:3]),
        ({"since_id": posted[0], "until_id": posted[4]}, posted[1:4]),
        ({"start_time": at[2]}, posted[2:]),
        ({"end_time": at[2]}, posted[:2]),
        ({"start_time": at[1], "end_time": at[4], "since_id": posted[1]}, posted[2:4]),
        ({"since_id": posted[4]}, []),
        ({"until_id": posted[0]}, []),
    ]
    for bound, found in bounds:
        assert ids(await ask(api, ann, SEARCH, word, **bound)) == found[::-1], bound
        counted = await ask(api, ann, COUNTS, word, granularity="day", **bound)
        assert counted["meta"] == {"total_tweet_count": len(found)}, bound


async def test_blocks_and_mutes_of_the_caller_have_no_effect(api: Api) -> None:
    """As on the streams of v2, everybody gets the same public posts."""
    ann, bob, word = await api.user(), await api.user(), new_word()
    posted = await api.post(bob, word)
    await api.done("PUT", f"/v1/users/me/blocks/{bob}", token=mint(ann))
    assert ids(await ask(api, ann, SEARCH, word)) == [posted["id"]]


async def test_a_search_that_is_cut_goes_on_by_its_token(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may have no Tweet. All pages together have each match once, the newest first."""
    monkeypatch.setattr(reader, "MAX_PAGE_ENTRIES", 4)
    monkeypatch.setattr(look_back, "MAX_SCANNED_ENTRIES", 1)
    async with running_server(redis_url, {}) as server:
        token, posted = server.authorization["Authorization"].removeprefix("Bearer "), []
        for number in range(40):
            body = {"message": "tea" if number < 2 or number > 33 else "milk"}
            async with server.session.post("/v1/statuses", json=body, headers=server.authorization) as answer:
                posted.append((await answer.json())["id"])
        pages, params = [], {"query": "tea"}
        while True:
            headers = {"Authorization": f"Bearer {token}"}
            async with server.session.get(SEARCH, params=params, headers=headers) as answer:
                pages.append(await answer.json())
            if "next_token" not in pages[-1]["meta"]:
                break
            params["next_token"] = pages[-1]["meta"]["next_token"]
        assert [one for page in pages for one in ids(page)] == [*posted[:33:-1], *posted[1::-1]]
        assert any(page["meta"]["result_count"] == 0 for page in pages[:-1])


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({}, "query"),
        ({"query": "tea ("}, "query"),
        ({"query": "from:nobody_1"}, "query"),
        ({"query": "has:links"}, "query"),
        ({"query": "tea", "start_time": "yesterday"}, "start_time"),
        ({"query": "tea", "end_time": "2999-01-01T00:00:00Z"}, "end_time"),
        ({"query": "tea", "end_time": "2024-01-01T00:00:00Z"}, "end_time"),
        ({"query": "tea", "since_id": "x"}, "since_id"),
        ({"query": "tea", "until_id": "99999999999999999"}, "until_id"),
        ({"query": "tea", "next_token": "?"}, "next_token"),
    ],
)
@pytest.mark.parametrize("path", [SEARCH, COUNTS])
async def test_an_invalid_parameter_is_refused_by_name(api: Api, path: str, params: Json, names: str) -> None:
    refused = await api.call("GET", path, token=mint(api.admin), params=params)
    assert (refused.status, refused.json["title"]) == (400, "Invalid Request"), refused
    assert list(refused.json["errors"][0]["parameters"]) == [names]


@pytest.mark.parametrize(
    ("path", "param", "value"),
    [
        (SEARCH, "max_results", "9"), (SEARCH, "max_results", "101"), (SEARCH, "sort_order", "best"),
        (SEARCH, "tweet.fields", "colour"), (COUNTS, "granularity", "week"),
    ],
)  # fmt: skip
async def test_an_invalid_option_is_refused_by_name(api: Api, path: str, param: str, value: str) -> None:
    refused = await api.call("GET", path, token=mint(api.admin), params={"query": "tea", param: value})
    assert (refused.status, list(refused.json["errors"][0]["parameters"])) == (400, [param])
