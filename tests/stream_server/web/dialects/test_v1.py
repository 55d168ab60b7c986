"""The v1.1 streams of a real server: filters, backfill and endings."""

import asyncio
from pathlib import Path

import pytest

from filters.event import Event
from filters.sample import Sample
from tests.end_to_end.api import Api, mint
from tests.end_to_end.ears import word
from tests.end_to_end.server import Server
from tests.stream_server.web.dialects.line_listener import Listener

FILTER, SAMPLE, FIREHOSE = (f"/1.1/statuses/{name}.json" for name in ("filter", "sample", "firehose"))


async def listen(api: Api, path: str = FILTER, *, token: str = "", form: bool = False, **asked: str) -> Listener:
    """Open a stream and wait for its first heartbeat."""
    headers = {"Authorization": f"Bearer {token or mint(api.admin)}"}
    if form:
        response = await api.session.post(path, data=asked, headers=headers)
    else:
        response = await api.session.get(path, params=asked, headers=headers)
    assert (response.status, response.content_type) == (200, "application/json"), await response.text()
    return await Listener(response).until(lambda heard: heard.messages)


def texts(heard: Listener) -> list[str]:
    """Return the texts of the received statuses."""
    return [message["text"] for message in heard.messages if "text" in message]


def deletes(heard: Listener) -> list[str]:
    """Return the ids of the received deletes."""
    return [message["delete"]["status"]["id_str"] for message in heard.messages if "delete" in message]


async def test_what_is_tracked_comes_and_goes(api: Api) -> None:
    """A matching status arrives with its author as of posting, then its delete. Other statuses do not."""
    ann, term = await api.user(), word()
    await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"name": "Ann A", "bio": "pours"})
    async with await listen(api, track=term) as heard:
        await api.post(ann, "something else")
        posted = await api.post(ann, f"{term} for two")
        await api.delete(ann, posted["id"])
        await heard.until(deletes)
        (status,) = [message for message in heard.messages if "text" in message]
        assert (status["id_str"], status["text"]) == (posted["id"], f"{term} for two")
        author = status["user"]
        assert (author["id_str"], author["screen_name"]) == (ann, posted["login"])
        assert (author["name"], author["description"], author["statuses_count"]) == ("Ann A", "pours", 1)
        assert deletes(heard) == [posted["id"]]


async def test_it_says_that_it_lives(api: Api) -> None:
    """Blank lines arrive while there are no events."""
    async with await listen(api, track=word()) as heard:
        await heard.until(lambda heard: heard.signs > 3)


async def test_a_form_and_a_query_are_one(api: Api) -> None:
    """Lists in the query and the form are joined; track and follow are alternatives, language narrows both."""
    ann, term, other = await api.user(), word(), word()
    headers = {"Authorization": f"Bearer {mint(api.admin)}"}
    form = {"track": other, "follow": ann, "language": "EN", "Made_up": "1"}
    response = await api.session.post(f"{FILTER}?track={term}&delimited=no", data=form, headers=headers)
    async with Listener(response) as heard:
        for message, lang in (("one", "en"), (term, "de"), ("two", "en-GB")):
            await api.post(ann, message, lang=lang)
        for message in (f"three {term}", f"four {other}"):
            await api.post(api.admin, message, lang="en")
        await heard.until(lambda heard: len(texts(heard)) == 4)
        assert texts(heard) == ["one", "two", f"three {term}", f"four {other}"]


async def test_reposts_quotes_and_replies(api: Api) -> None:
    """``follow`` matches authors, answered users and reposted users, each rendered in its own form."""
    ann, bob = await api.user(), await api.user()
    async with await listen(api, form=True, follow=ann) as heard:
        first = await api.post(ann, "first")
        await api.post(bob, "", origin=first["id"])
        await api.post(bob, "I reply", in_reply_to=first["id"])
        await api.post(bob, "I quote", origin=first["id"])
        await api.post(ann, "I quote", origin=first["id"])
        await heard.until(lambda heard: len(texts(heard)) == 4)
        own, repost, reply, quote = (message for message in heard.messages if "text" in message)
        assert own["in_reply_to_status_id"] is None
        assert repost["text"] == f"RT @{first['login']}: first"
        shown = repost["retweeted_status"]
        assert (shown["id_str"], shown["user"]["id_str"]) == (first["id"], ann)
        assert (reply["in_reply_to_status_id_str"], reply["in_reply_to_user_id_str"]) == (first["id"], ann)
        assert reply["in_reply_to_screen_name"] == first["login"]
        assert (quote["user"]["id_str"], quote["quoted_status"]["id_str"]) == (ann, first["id"])


async def test_boxes_are_asked_about_points_and_places(api: Api) -> None:
    """A box matches a point inside it and a place that overlaps it."""
    name = word()
    async with await listen(api, locations="-10.5,50,-10,51,11.25,-60.5,11.5,-60") as heard:
        await api.post(api.admin, "out", location={"lon": -10.6, "lat": 50.5})
        await api.post(api.admin, "in", location={"lon": -10.25, "lat": 50.5})
        await api.post(api.admin, "over", place={"name": name, "box": [11.4, -61, 12, -60.4]})
        await heard.until(lambda heard: len(texts(heard)) == 2)
        assert texts(heard) == ["in", "over"]
        point, place = (message for message in heard.messages if "text" in message)
        assert point["coordinates"] == {"type": "Point", "coordinates": [-10.25, 50.5]}
        assert place["place"]["full_name"] == name


async def test_it_is_the_same_for_all(api: Api) -> None:
    """A stream never has posts of protected users, not even for them, and ignores the caller's blocks."""
    ann, bob, term = await api.user(), await api.user(), word()
    await api.done("PUT", f"/v1/users/me/blocks/{bob}", token=mint(ann))
    async with await listen(api, token=mint(ann), track=term) as heard:
        await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"protected": True})
        await api.post(ann, f"{term} one")
        await api.post(bob, f"{term} two")
        await heard.until(texts)
        assert texts(heard) == [f"{term} two"]


async def test_the_firehose_brings_everything_public(api: Api) -> None:
    """It sends posts and deletes, but no likes and follows."""
    ann, bob = await api.user(), await api.user()
    async with await listen(api, FIREHOSE) as heard:
        posted = await api.post(ann, word())
        await api.done("PUT", f"/v1/users/me/likes/{posted['id']}", token=mint(bob))
        await api.follow(bob, ann)
        await api.delete(ann, posted["id"])
        await heard.until(deletes)
        assert (texts(heard), deletes(heard)) == ([posted["message"]], [posted["id"]])
        assert len([message for message in heard.messages if message]) == 2


async def test_the_sample_is_one_in_a_hundred(api: Api) -> None:
    """It sends the same statuses as ``sample=1`` of the native API."""
    one_percent, taken, posted = Sample.parse("1"), "", []
    async with await listen(api, SAMPLE, form=True) as heard:
        while not taken:
            batch = await asyncio.gather(*(api.post(api.admin, "to be taken, perhaps") for _ in range(50)))
            posted += [status["id"] for status in sorted(batch, key=lambda status: int(status["id"]))]
            taken = next((one for one in posted if one_percent.matches(Event("post", status_id=one))), "")
        expected = [one for one in posted if one_percent.matches(Event("post", status_id=one))]
        await heard.until(lambda heard: len(texts(heard)) >= len(expected))
        assert [message["id_str"] for message in heard.messages if "text" in message] == expected


async def test_statuses_from_before_come_first(api: Api) -> None:
    """``count`` sends that many earlier statuses first; a negative one then ends the stream."""
    ann = await api.user()
    posted = [await api.post(ann, f"{number}") for number in range(5)]
    async with await listen(api, FIREHOSE, count="3") as heard:
        await api.post(ann, "5")
        await heard.until(lambda heard: len(texts(heard)) == 4)
        assert texts(heard) == ["2", "3", "4", "5"]
    async with await listen(api, form=True, follow=f"{ann}", count="-4") as heard:
        await heard.until_end()
        assert heard.cut is None
        assert texts(heard) == ["2", "3", "4", "5"]
        assert heard.messages[-1]["disconnect"] == {
            "code": 9, "stream_name": "statuses/filter", "reason": heard.messages[-1]["disconnect"]["reason"],
        }  # fmt: skip
    assert posted[0]["message"] == "0"


async def test_all_there_is_comes_where_more_is_wanted(own_folder: Path) -> None:
    """A ``count`` above the log's length starts at the first entry; an empty log sends none."""
    with Server(own_folder) as server:
        async with Api(server) as api:
            ended = await (await listen(api, FIREHOSE, count="-10")).until_end()
            assert texts(ended) == []
            await api.post(api.admin, "only")
            ended = await (await listen(api, FIREHOSE, count="-150000")).until_end()
            assert texts(ended) == ["only"]


async def test_better_statuses_than_there_are(api: Api) -> None:
    """All statuses have the level `low`, so `medium` sends no statuses and no deletes."""
    term = word()
    async with (
        await listen(api, track=term, filter_level="medium") as none,
        await listen(api, track=term, filter_level="low") as some,
    ):
        posted = await api.post(api.admin, term)
        await api.delete(api.admin, posted["id"])
        await some.until(deletes)
        signs = none.signs
        await none.until(lambda heard: heard.signs > signs + 1)
        assert [message for message in none.messages if message] == []


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_a_tokens_end_ends_it(api: Api, how: str) -> None:
    """The last message has code 6."""
    token = mint(await api.user(), ttl=1.0 if how == "expired" else 600)
    async with await listen(api, SAMPLE, token=token) as heard:
        if how == "revoked":
            await api.done("DELETE", "/v1/sessions", token=token)
        await heard.until_end()
        assert heard.messages[-1]["disconnect"]["code"] == 6
        assert heard.messages[-1]["disconnect"]["stream_name"] == "statuses/sample"


async def test_a_server_that_stops_says_so(own_folder: Path) -> None:
    """The last message has code 1."""
    with Server(own_folder) as server:
        async with Api(server) as api:
            heard = await listen(api, track="tea")
            await asyncio.to_thread(server.stop)
            await heard.until_end()
            assert heard.messages[-1]["disconnect"]["code"] == 1
