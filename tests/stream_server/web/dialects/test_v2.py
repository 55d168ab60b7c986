"""The v2 streams of a real server: changing rules, fields, replays, errors and endings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from filters.event import Event
from filters.sample import Sample
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.stream_server.web.dialects.line_listener import Listener

SEARCH = "/2/tweets/search/stream"
RULES = SEARCH + "/rules"
SAMPLE = "/2/tweets/sample/stream"


async def listen(api: Api, uid: str, path: str = SEARCH, token: str = "", **params: str) -> Listener:
    """Open a stream and wait until it sends something."""
    headers = {"Authorization": f"Bearer {token or mint(uid)}"}
    named = {name.replace("_fields", ".fields"): value for name, value in params.items()}
    response = await api.session.get(path, params=named, headers=headers)
    assert (response.status, response.content_type) == (200, "application/json"), await response.text()
    return await Listener(response).until(lambda heard: heard.messages)


async def add(api: Api, uid: str, value: str, tag: str = "") -> str:
    """Add a rule and return its id."""
    made = await api.done("POST", RULES, token=mint(uid), json={"add": [{"value": value, "tag": tag}]})
    rule_id: str = made["data"][0]["id"]
    return rule_id


async def test_a_stream_goes_by_the_rules_as_they_change(api: Api) -> None:
    """Each Tweet arrives once, with all rules that match; empty tags are present."""
    ann = await api.user()
    tea = await add(api, ann, "tea", "hot")
    async with await listen(api, ann) as heard:
        await api.post(ann, "ice one")
        await api.post(ann, "tea two")
        ice = await add(api, ann, "ice")
        await api.post(ann, "tea and ice three")
        await api.done("POST", RULES, token=mint(ann), json={"delete": {"ids": [tea]}})
        await api.post(ann, "tea four")
        await api.post(ann, "ice five")
        await heard.until(lambda heard: "ice five" in heard.texts)
        assert heard.texts == ["tea two", "tea and ice three", "ice five"]
        rules = [{rule["id"]: rule["tag"] for rule in tweet["matching_rules"]} for tweet in heard.tweets]
        assert rules == [{tea: "hot"}, {tea: "hot", ice: ""}, {ice: ""}]


async def test_it_says_that_it_lives(api: Api) -> None:
    """Line ends arrive repeatedly."""
    ann = await api.user()
    await add(api, ann, "tea")
    async with await listen(api, ann) as heard:
        await heard.until(lambda heard: heard.signs > 2)


async def test_what_was_asked_for_is_told(api: Api) -> None:
    """Members and included objects are as of posting."""
    ann, bob = await api.user(), await api.user()
    await api.done("PATCH", "/v1/users/me", token=mint(bob), json={"name": "Bob B", "bio": "brews"})
    await add(api, ann, "tea")
    fields = {"tweet_fields": "lang,created_at", "user_fields": "description", "expansions": "author_id,geo.place_id"}
    async with await listen(api, ann, **fields) as heard:
        posted = await api.post(bob, "tea", lang="en", place={"name": "Home"})
        await heard.until(lambda heard: heard.tweets)
        (tweet,) = heard.tweets
        (user,), (place,) = tweet["includes"]["users"], tweet["includes"]["places"]
        assert tweet["data"] == {
            "id": posted["id"], "text": "tea", "edit_history_tweet_ids": [posted["id"]], "author_id": bob,
            "created_at": posted["posted"], "lang": "en", "geo": {"place_id": place["id"]},
        }  # fmt: skip
        assert user == {"id": bob, "username": posted["login"], "name": "Bob B", "description": "brews"}
        assert place["full_name"] == "Home"


async def test_nothing_is_taken_back_and_nothing_is_told_that_not_everybody_may_see(api: Api) -> None:
    """No deletes and no posts of protected users arrive; the caller's mutes have no effect."""
    ann, bob = await api.user(), await api.user()
    await add(api, ann, "tea")
    await api.done("PUT", f"/v1/users/me/mutes/{bob}", token=mint(ann))
    async with await listen(api, ann) as heard:
        first = await api.post(bob, "tea one")
        await api.delete(bob, first["id"])
        await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"protected": True})
        await api.post(ann, "tea two")
        await api.post(bob, "tea three")
        await heard.until(lambda heard: "tea three" in heard.texts)
        assert (heard.texts, [message for message in heard.messages if "errors" in message]) == (
            ["tea one", "tea three"], [],
        )  # fmt: skip


async def test_who_comes_back_hears_what_was_missed(api: Api) -> None:
    """`backfill_minutes` sends earlier Tweets, the oldest first, and then live ones."""
    ann = await api.user()
    await add(api, ann, f"from:{ann}")
    for n in range(3):
        await api.post(ann, f"tea {n}")
    async with await listen(api, ann, backfill_minutes="1") as heard:
        await heard.until(lambda heard: len(heard.tweets) == 3)
        await api.post(ann, "tea 3")
        await heard.until(lambda heard: len(heard.tweets) > 3)
        assert heard.texts == [f"tea {n}" for n in range(4)]


async def test_a_replay_ends_where_it_was_asked_to(api: Api) -> None:
    """It sends Tweets from `start_time` to before `end_time` and ends without an error."""
    ann = await api.user()
    await add(api, ann, f"from:{ann}")
    posted = [await api.post(ann, f"tea {n}") for n in range(5)]
    times = [status["posted"] for status in posted]
    async with await listen(api, ann, start_time=times[1], end_time=times[3]) as heard:
        await heard.until_end()
        between = [status["message"] for status in posted if times[1] <= status["posted"] < times[3]]
        assert (heard.texts, heard.cut) == (between, None)
        assert [message for message in heard.messages if "errors" in message] == []
    async with await listen(api, ann, start_time=times[4]) as heard:
        await api.post(ann, "tea 5")
        await heard.until(lambda heard: heard.texts == ["tea 4", "tea 5"])


async def test_the_sample_is_the_same_one_in_a_hundred_for_all(api: Api) -> None:
    """Its messages have no matching rules."""
    ann, bob = await api.user(), await api.user()
    share = Sample.parse("1")
    async with await listen(api, ann, SAMPLE) as one, await listen(api, bob, SAMPLE) as other:
        expected: list[str] = []
        while not expected:
            posted = await asyncio.gather(*(api.post(ann, f"tea {n}") for n in range(50)))
            ids = sorted((status["id"] for status in posted), key=int)
            expected = [found for found in ids if share.matches(Event("post", author=ann, status_id=found))]
        for heard in (one, other):
            await heard.until(lambda heard: len(heard.tweets) >= len(expected))
            assert [tweet["data"]["id"] for tweet in heard.tweets] == expected
            assert {member for tweet in heard.tweets for member in tweet} == {"data"}


async def test_the_end_is_told(api: Api) -> None:
    """The error has the type that clients look for."""
    ann = await api.user()
    await add(api, ann, "tea")
    async with await listen(api, ann, token=mint(ann, ttl=1)) as heard:
        await heard.until_end()
        (error,) = heard.messages[-1]["errors"]
        assert (error["title"], error["disconnect_type"]) == ("operational-disconnect", "ForceDisconnect")


async def test_who_has_no_rules_is_told_to_make_some(api: Api) -> None:
    """The answer is 409 with X's text."""
    refused = await api.call("GET", SEARCH, token=mint(await api.user()))
    assert (refused.status, refused.headers["Content-Type"]) == (409, "application/problem+json")
    assert (refused.json["title"], refused.json["connection_issue"]) == (
        "ConnectionException",
        "RuleConfigurationIssue",
    )


@pytest.mark.parametrize(
    ("params", "names"),
    [
        ({"tweet.fields": "colour"}, "tweet.fields"),
        ({"expansions": "author"}, "expansions"),
        ({"backfill_minutes": "6"}, "backfill_minutes"),
        ({"backfill_minutes": "-1"}, "backfill_minutes"),
        ({"start_time": "yesterday"}, "start_time"),
        ({"start_time": "-5m"}, "start_time"),
        ({"start_time": "2026-13-01T00:00:00Z"}, "start_time"),
        ({"start_time": "2999-01-01T00:00:00Z"}, "start_time"),
        ({"end_time": "2999-01-01T00:00:00Z"}, "end_time"),
        ({"end_time": "2024-01-01T00:00:00Z"}, "end_time"),
    ],
)
@pytest.mark.parametrize("path", [SEARCH, SAMPLE])
async def test_a_bad_parameter_is_a_problem(api: Api, path: str, params: dict[str, Any], names: str) -> None:
    """The answer names it, and no stream begins."""
    ann = await api.user()
    await add(api, ann, "tea")
    refused = await api.call("GET", path, token=mint(ann), params=params)
    assert (refused.status, refused.json["title"]) == (400, "Invalid Request")
    assert list(refused.json["errors"][0]["parameters"]) == [names]


async def test_a_parameter_that_is_not_known_is_ignored(api: Api) -> None:
    """As in X."""
    ann = await api.user()
    await add(api, ann, "tea")
    async with await listen(api, ann, colour="blue") as heard:
        assert heard.messages


async def test_who_connects_too_often_hears_when_they_may_again(own_folder: Path) -> None:
    """The answer is 429 with the headers that clients use to wait."""
    with Server(own_folder, "--heartbeat-seconds", "0.2", "--reconnect-limit", "1") as strict:
        async with Api(strict) as api:
            ann = await api.user()
            async with await listen(api, ann, SAMPLE) as heard:
                assert heard.response.headers["x-rate-limit-remaining"] == "0"
                refused = await api.call("GET", SAMPLE, token=mint(ann))
            assert (refused.status, refused.json["title"]) == (429, "Too Many Requests")
            assert (refused.headers["x-rate-limit-limit"], refused.headers["x-rate-limit-remaining"]) == ("1", "0")
            assert int(refused.headers["x-rate-limit-reset"]) > 0
