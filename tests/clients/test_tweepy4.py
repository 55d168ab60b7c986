"""tweepy 4 on the real server, with its own calls and objects, and rules that change while it is connected."""

import uuid
from datetime import datetime
from typing import Any

import pytest

from filters.event import Event
from filters.sample import Sample
from tests.clients.venvs import client
from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server

pytestmark = pytest.mark.extended

PROGRAM = "tweepy4_v2.py"


async def ask(server: Server, uid: str, *words: str) -> dict[str, Any]:
    async with client("tweepy4", PROGRAM, server.address, mint(uid), *words) as program:
        answer: dict[str, Any] = await program.hear("answer")
        assert await program.end() == 0
        return answer


async def test_rules_are_added_listed_and_deleted(server: Server, api: Api) -> None:
    """One call has valid and invalid rules, as a dry run and for real."""
    ann = await api.user()
    made = await ask(server, ann, "add", "tea|hot drinks", "ice", "(")
    (tea, ice), summary = made["rules"], made["meta"]["summary"]
    assert (tea[1:], ice[1:]) == (["tea", "hot drinks"], ["ice", ""])
    assert (summary["created"], summary["not_created"]) == (2, 1)
    assert [(error["title"], error["value"]) for error in made["errors"]] == [("UnprocessableEntity", "(")]
    assert (await ask(server, ann, "get"))["rules"] == [tea, ice]
    tried = await ask(server, ann, "try", "tea milk")
    assert [rule[1] for rule in tried["rules"]] == ["tea milk"]
    gone = await ask(server, ann, "delete", tea[0])
    assert gone["meta"]["summary"] == {"deleted": 1, "not_deleted": 0}
    assert (await ask(server, ann, "get"))["rules"] == [ice]


async def test_a_stream_follows_the_rules_as_they_change(server: Server, api: Api) -> None:
    """The stream needs no reconnect. Each Tweet has all rules that matched, with and without tags."""
    ann = await api.user()
    (tea,) = (await ask(server, ann, "add", "tea|hot"))["rules"]
    async with client("tweepy4", PROGRAM, server.address, mint(ann), "filter") as program:
        assert await program.hear("connected")
        assert await program.hear("alive")
        await api.post(ann, "tea one")
        assert (await program.hear("tea one"))["rules"] == [[tea[0], "hot"]]
        (ice,) = (await ask(server, ann, "add", "ice"))["rules"]
        await api.post(ann, "tea and ice two")
        assert sorted((await program.hear("tea and ice two"))["rules"]) == sorted([[tea[0], "hot"], [ice[0], ""]])
        await ask(server, ann, "delete", tea[0])
        await api.post(ann, "tea three")
        await api.post(ann, "ice four")
        assert (await program.hear("ice four"))["rules"] == [[ice[0], ""]]
        told = {word for message in program.said for word in message}
        assert told == {"connected", "alive", "tea one", "tea and ice two", "ice four"}


async def test_tweets_arrive_as_objects(server: Server, api: Api) -> None:
    """They have users, places, media and originals. tweepy gives no warning and can parse everything."""
    ann, bob = await api.user(), await api.user()
    await ask(server, ann, "add", "tea")
    wanted = (
        "expansions=author_id,geo.place_id,attachments.media_keys,referenced_tweets.id",
        "tweet_fields=created_at,entities",
        "media_fields=url",
    )
    async with client("tweepy4", PROGRAM, server.address, mint(ann), "filter", *wanted) as program:
        await program.hear("connected")
        picture = {"url": "https://a.example/1.png", "type": "image"}
        posted = await api.post(bob, "my #tea", place={"name": "Home"}, media=[picture])
        told = await program.hear("my #tea")
        assert (told["id"], told["author"], told["tags"]) == (int(posted["id"]), int(bob), ["tea"])
        assert datetime.fromisoformat(told["created"]) == datetime.fromisoformat(posted["posted"])
        assert (told["users"], told["places"]) == ([[int(bob), posted["login"], posted["login"]]], ["Home"])
        assert told["media"] == [["photo", picture["url"]]]
        await api.post(ann, "", origin=posted["id"])
        repeated = await program.hear(f"RT @{posted['login']}: my #tea")
        assert (repeated["referenced"], repeated["tweets"]) == ([["retweeted", int(posted["id"])]], ["my #tea"])


async def test_the_sample_is_received(server: Server, api: Api) -> None:
    """The stream has the Tweets of the sample and no rules."""
    ann = await api.user()
    share = Sample.parse("1")
    async with client("tweepy4", PROGRAM, server.address, mint(ann), "sample") as program:
        await program.hear("connected")
        sampled = False
        while not sampled:
            posted = await api.post(ann, "sampled?")
            sampled = share.matches(Event("post", author=ann, status_id=posted["id"]))
        told = await program.hear("sampled?")
        assert (told["id"], told["rules"]) == (int(posted["id"]), [])


async def test_a_user_without_rules_is_refused(server: Server, api: Api) -> None:
    """The refusal has the status that tweepy expects."""
    async with client("tweepy4", PROGRAM, server.address, mint(await api.user()), "filter") as program:
        assert await program.hear("refused") == 409


async def test_the_end_of_a_token_is_reported(server: Server, api: Api) -> None:
    """The stream gets an error before it is closed."""
    ann = await api.user()
    await ask(server, ann, "add", "tea")
    async with client("tweepy4", PROGRAM, server.address, mint(ann, ttl=8), "filter") as program:
        await program.hear("connected")
        ((error),) = await program.hear("errors")
        assert error["disconnect_type"] == "ForceDisconnect"
        assert await program.hear("closed")


async def test_recent_posts_are_found_page_by_page(server: Server, api: Api) -> None:
    """The newest come first, as tweepy's objects. Each is on one page. Deleted and protected posts are not found."""
    ann, bob, word = await api.user(), await api.user(), f"w{uuid.uuid4().hex[:10]}"
    posted = [await api.post(bob, f"{word} {number} #tea") for number in range(23)]
    await api.delete(bob, posted[7]["id"])
    await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"protected": True})
    await api.post(ann, f"{word} for few")
    told = await ask(server, ann, "search", word, "10")
    kept = [status for status in posted[::-1] if status is not posted[7]]
    assert [tweet["id"] for tweet in told["found"]] == [int(status["id"]) for status in kept]
    assert all(tweet["tags"] == ["tea"] and tweet["author"] == int(bob) for tweet in told["found"])
    assert told["users"] == [[int(bob), posted[0]["login"], posted[0]["login"]]]
    first = told["metas"][0]
    assert (first["newest_id"], first["oldest_id"]) == (kept[0]["id"], kept[9]["id"])
    assert sum(meta["result_count"] for meta in told["metas"]) == 22
    assert "next_token" not in told["metas"][-1]
    nothing = await ask(server, ann, "search", f"{word}x", "10")
    assert (nothing["found"], nothing["metas"][-1]["result_count"]) == ([], 0)


async def test_recent_posts_are_counted(server: Server, api: Api) -> None:
    """The counts are those of the posts that a search finds, also between two ids."""
    ann, bob, word = await api.user(), await api.user(), f"w{uuid.uuid4().hex[:10]}"
    posted = [await api.post(bob, f"{word} {number}") for number in range(7)]
    await api.delete(bob, posted[3]["id"])
    for granularity in ("minute", "hour", "day"):
        told = await ask(server, ann, "count", word, granularity)
        assert told["meta"]["total_tweet_count"] == sum(told["counts"]) == 6
        assert told["gapless"]
    between = f"since_id={posted[1]['id']}", f"until_id={posted[5]['id']}"
    assert (await ask(server, ann, "count", word, "minute", *between))["meta"]["total_tweet_count"] == 2
