"""The v2 streams of a real server: changing rules, fields, replays, errors and endings."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from filters.event import Event
from filters.sample import Sample
from tests.end_to_end.api import Api, mint, with_brief_token
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
    return await Listener(response).until(lambda stream: stream.messages)


async def add_rule(api: Api, uid: str, value: str, tag: str = "") -> str:
    """Add a rule and return its id."""
    made = await api.done("POST", RULES, token=mint(uid), json={"add": [{"value": value, "tag": tag}]})
    rule_id: str = made["data"][0]["id"]
    return rule_id


async def test_a_stream_follows_changes_of_its_rules(api: Api) -> None:
    ann = await api.user()
    tea = await add_rule(api, ann, "tea", "hot")
    async with await listen(api, ann) as stream:
        await api.post(ann, "ice one")
        await api.post(ann, "tea two")
        ice = await add_rule(api, ann, "ice")
        await api.post(ann, "tea and ice three")
        await api.done("POST", RULES, token=mint(ann), json={"delete": {"ids": [tea]}})
        await api.post(ann, "tea four")
        await api.post(ann, "ice five")
        await stream.until(lambda stream: "ice five" in stream.texts)
        assert stream.texts == ["tea two", "tea and ice three", "ice five"]
        rules = [{rule["id"]: rule["tag"] for rule in tweet["matching_rules"]} for tweet in stream.tweets]
        assert rules == [{tea: "hot"}, {tea: "hot", ice: ""}, {ice: ""}]


async def test_requested_fields_and_expansions_arrive(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    await api.done("PATCH", "/v1/users/me", token=mint(bob), json={"name": "Bob B", "bio": "brews"})
    await add_rule(api, ann, "tea")
    fields = {"tweet_fields": "lang,created_at", "user_fields": "description", "expansions": "author_id,geo.place_id"}
    async with await listen(api, ann, **fields) as stream:
        posted = await api.post(bob, "tea", lang="en", place={"name": "Home"})
        await stream.until(lambda stream: stream.tweets)
        (tweet,) = stream.tweets
        (user,), (place,) = tweet["includes"]["users"], tweet["includes"]["places"]
        assert tweet["data"] == {
            "id": posted["id"], "text": "tea", "edit_history_tweet_ids": [posted["id"]], "author_id": bob,
            "created_at": posted["posted"], "lang": "en", "geo": {"place_id": place["id"]},
        }  # fmt: skip
        assert user == {"id": bob, "username": posted["login"], "name": "Bob B", "description": "brews"}
        assert place["full_name"] == "Home"


async def test_a_stream_sends_no_deletes_and_no_protected_posts(api: Api) -> None:
    """The mutes of the caller have no effect."""
    ann, bob = await api.user(), await api.user()
    await add_rule(api, ann, "tea")
    await api.done("PUT", f"/v1/users/me/mutes/{bob}", token=mint(ann))
    async with await listen(api, ann) as stream:
        first = await api.post(bob, "tea one")
        await api.delete(bob, first["id"])
        await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"protected": True})
        await api.post(ann, "tea two")
        await api.post(bob, "tea three")
        await stream.until(lambda stream: "tea three" in stream.texts)
        assert (stream.texts, [message for message in stream.messages if "errors" in message]) == (
            ["tea one", "tea three"], [],
        )  # fmt: skip


async def test_backfill_minutes_sends_earlier_posts_first(api: Api) -> None:
    ann = await api.user()
    await add_rule(api, ann, f"from:{ann}")
    for n in range(3):
        await api.post(ann, f"tea {n}")
    async with await listen(api, ann, backfill_minutes="1") as stream:
        await stream.until(lambda stream: len(stream.tweets) == 3)
        await api.post(ann, "tea 3")
        await stream.until(lambda stream: len(stream.tweets) > 3)
        assert stream.texts == [f"tea {n}" for n in range(4)]


async def test_a_stream_resumes_after_a_cursor(api: Api) -> None:
    ann = await api.user()
    await add_rule(api, ann, f"from:{ann}")
    await api.post(ann, "before")
    cursor = await api.head()
    await api.post(ann, "after")
    async with await listen(api, ann, lastEventId=cursor) as stream:
        await stream.until(lambda stream: stream.tweets)
        assert stream.texts == ["after"]
    headers = {"Authorization": f"Bearer {mint(ann)}"}
    head = await api.call("HEAD", SEARCH, headers=headers)
    assert (head.status, head.headers["Content-Type"], head.body) == (200, "application/json", b"")


async def test_a_replay_sends_posts_from_start_time_to_before_end_time(api: Api) -> None:
    ann = await api.user()
    await add_rule(api, ann, f"from:{ann}")
    posted = [await api.post(ann, f"tea {n}") for n in range(5)]
    times = [status["posted"] for status in posted]
    async with await listen(api, ann, start_time=times[1], end_time=times[3]) as stream:
        await stream.until_end()
        between = [status["message"] for status in posted if times[1] <= status["posted"] < times[3]]
        assert (stream.texts, stream.cut) == (between, None)
        assert [message for message in stream.messages if "errors" in message] == []
    async with await listen(api, ann, start_time=times[4]) as stream:
        await api.post(ann, "tea 5")
        await stream.until(lambda stream: stream.texts == ["tea 4", "tea 5"])


async def test_the_sample_is_the_same_for_all_users(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    share = Sample.parse("1")
    async with await listen(api, ann, SAMPLE) as one, await listen(api, bob, SAMPLE) as other:
        expected: list[str] = []
        while not expected:
            posted = await asyncio.gather(*(api.post(ann, f"tea {n}") for n in range(50)))
            ids = sorted((status["id"] for status in posted), key=int)
            expected = [found for found in ids if share.matches(Event("post", author=ann, status_id=found))]
        for stream in (one, other):
            await stream.until(lambda stream: len(stream.tweets) >= len(expected))
            assert [tweet["data"]["id"] for tweet in stream.tweets] == expected
            assert {member for tweet in stream.tweets for member in tweet} == {"data"}


async def test_an_expired_token_ends_the_stream_with_a_disconnect_error(api: Api) -> None:
    ann = await api.user()
    await add_rule(api, ann, "tea")
    async with await with_brief_token(ann, lambda token: listen(api, ann, token=token)) as stream:
        await stream.until_end()
        (error,) = stream.messages[-1]["errors"]
        assert (error["title"], error["disconnect_type"]) == ("operational-disconnect", "ForceDisconnect")


async def test_a_stream_without_rules_is_refused_with_409(api: Api) -> None:
    refused = await api.call("GET", SEARCH, token=mint(await api.user()))
    assert (refused.status, refused.headers["Content-Type"]) == (409, "application/problem+json")
    assert refused.json["title"] == "ConnectionException"
    assert refused.json["connection_issue"] == "RuleConfigurationIssue"


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
async def test_an_invalid_parameter_is_refused_by_name(api: Api, path: str, params: dict[str, Any], names: str) -> None:
    ann = await api.user()
    await add_rule(api, ann, "tea")
    refused = await api.call("GET", path, token=mint(ann), params=params)
    assert (refused.status, refused.json["title"]) == (400, "Invalid Request")
    assert list(refused.json["errors"][0]["parameters"]) == [names]


async def test_an_unknown_parameter_is_ignored(api: Api) -> None:
    ann = await api.user()
    await add_rule(api, ann, "tea")
    async with await listen(api, ann, colour="blue") as stream:
        assert stream.messages


async def test_too_many_connections_get_429_with_rate_limit_headers(own_folder: Path) -> None:
    async with (
        Server(own_folder, "--heartbeat-seconds", "0.2", "--limits", "dialect_connects=1") as strict,
        Api(strict) as api,
    ):
        ann = await api.user()
        async with await listen(api, ann, SAMPLE) as stream:
            assert stream.response.headers["x-rate-limit-remaining"] == "0"
            refused = await api.call("GET", SAMPLE, token=mint(ann))
        assert (refused.status, refused.json["title"]) == (429, "Too Many Requests")
        assert (refused.headers["x-rate-limit-limit"], refused.headers["x-rate-limit-remaining"]) == ("1", "0")
        assert int(refused.headers["x-rate-limit-reset"]) > 0


async def test_a_replay_sends_what_the_rules_of_then_matched(api: Api) -> None:
    """Also to a user who has no rules any more, or had none at the start. Who had none in between gets 409."""
    ann = await api.user()
    before = await api.post(ann, "tea zero")
    tea = await add_rule(api, ann, "tea")
    first = await api.post(ann, "tea one")
    async with await listen(api, ann, start_time=before["posted"]) as stream:
        await stream.until(lambda stream: stream.texts == ["tea one"])
    await api.done("POST", RULES, token=mint(ann), json={"delete": {"ids": [tea]}})
    later = await api.post(ann, "tea two")
    while later["posted"] == first["posted"]:
        later = await api.post(ann, "tea three")
    async with await listen(api, ann, start_time=first["posted"], end_time=later["posted"]) as stream:
        await stream.until_end()
        assert stream.texts == ["tea one"]
    last = later
    while last["posted"] == later["posted"]:
        last = await api.post(ann, "tea four")
    refused = await api.call("GET", SEARCH, token=mint(ann), params={"start_time": last["posted"]})
    assert refused.status == 409


async def test_an_edited_status_comes_again_under_its_id(api: Api) -> None:
    """Live and on a replay, as long as it matches a rule. A text that leaves the rules is not shown."""
    ann = await api.user()
    await add_rule(api, ann, "tea", "hot")
    async with await listen(api, ann) as stream:
        posted = await api.post(ann, "tea one")
        path = f"/v1/statuses/{posted['id']}"
        for text in ("tea two", "milk", "tea three"):
            await api.done("PATCH", path, token=mint(ann), json={"message": text})
        await stream.until(lambda stream: stream.texts == ["tea one", "tea two", "tea three"])
        for tweet in stream.tweets:
            assert tweet["data"]["edit_history_tweet_ids"] == [tweet["data"]["id"]] == [posted["id"]]
            assert [rule["tag"] for rule in tweet["matching_rules"]] == ["hot"]
    async with await listen(api, ann, start_time=posted["posted"]) as again:
        await again.until(lambda again: len(again.texts) == 3)
        assert set(again.texts) == {"tea three"}
