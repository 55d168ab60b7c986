"""The v1.1 streams of a real server: filters, backfill and endings."""

import asyncio
from pathlib import Path

import pytest

from filters.event import Event
from filters.sample import Sample
from tests.end_to_end.api import Api, mint, with_brief_token
from tests.end_to_end.people import word
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
    return await Listener(response).until(lambda stream: stream.messages)


def texts(stream: Listener) -> list[str]:
    return [message["text"] for message in stream.messages if "text" in message]


def deletes(stream: Listener) -> list[str]:
    """Return the ids of the received deletes."""
    return [message["delete"]["status"]["id_str"] for message in stream.messages if "delete" in message]


async def test_a_tracked_status_and_its_delete_arrive(api: Api) -> None:
    ann, term = await api.user(), word()
    await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"name": "Ann A", "bio": "pours"})
    async with await listen(api, track=term) as stream:
        await api.post(ann, "something else")
        posted = await api.post(ann, f"{term} for two")
        await api.delete(ann, posted["id"])
        await stream.until(deletes)
        (status,) = [message for message in stream.messages if "text" in message]
        assert (status["id_str"], status["text"]) == (posted["id"], f"{term} for two")
        author = status["user"]
        assert (author["id_str"], author["screen_name"]) == (ann, posted["login"])
        assert (author["name"], author["description"], author["statuses_count"]) == ("Ann A", "pours", 1)
        assert deletes(stream) == [posted["id"]]


async def test_an_edited_status_is_deleted_and_comes_again_if_it_matches(api: Api) -> None:
    """A client that obeys deletes keeps no replaced text. A replay has the last text only."""
    ann, term, start = await api.user(), word(), await api.head()
    path = f"/v1/statuses/{(await api.post(ann, f'{term} one'))['id']}"
    async with await listen(api, track=term, lastEventId=start) as stream:
        await stream.until(texts)
        for text in (f"{term} two", "no more", f"{term} again"):
            await api.done("PATCH", path, token=mint(ann), json={"message": text})
        await stream.until(lambda stream: len(texts(stream)) == 3)
        told = [message.get("text", "delete") for message in stream.messages if {"text", "delete"} & message.keys()]
        assert told == [f"{term} one", "delete", f"{term} two", "delete", "delete", f"{term} again"]
        shown = [message["id_str"] for message in stream.messages if "text" in message]
        assert {*deletes(stream)} == {*shown} == {path.rpartition("/")[2]}
    async with await listen(api, follow=ann, lastEventId=start) as replay:
        await replay.until(lambda stream: len(texts(stream)) == 4)
        assert {*texts(replay)} <= {f"{term} again"}


async def test_parameters_of_query_and_form_are_joined(api: Api) -> None:
    ann, term, other = await api.user(), word(), word()
    headers = {"Authorization": f"Bearer {mint(api.admin)}"}
    form = {"track": other, "follow": ann, "language": "EN", "Made_up": "1"}
    response = await api.session.post(f"{FILTER}?track={term}&delimited=no", data=form, headers=headers)
    async with Listener(response) as stream:
        for message, lang in (("one", "en"), (term, "de"), ("two", "en-GB")):
            await api.post(ann, message, lang=lang)
        for message in (f"three {term}", f"four {other}"):
            await api.post(api.admin, message, lang="en")
        await stream.until(lambda stream: len(texts(stream)) == 4)
        assert texts(stream) == ["one", "two", f"three {term}", f"four {other}"]


async def test_follow_matches_reposts_and_replies(api: Api) -> None:
    """A quote of a followed user does not match, a quote by a followed user does."""
    ann, bob = await api.user(), await api.user()
    async with await listen(api, form=True, follow=ann) as stream:
        first = await api.post(ann, "first")
        await api.post(bob, "", origin=first["id"])
        await api.post(bob, "I reply", in_reply_to=first["id"])
        await api.post(bob, "I quote", origin=first["id"])
        await api.post(ann, "I quote", origin=first["id"])
        await stream.until(lambda stream: len(texts(stream)) == 4)
        own, repost, reply, quote = (message for message in stream.messages if "text" in message)
        assert own["in_reply_to_status_id"] is None
        assert repost["text"] == f"RT @{first['login']}: first"
        shown = repost["retweeted_status"]
        assert (shown["id_str"], shown["user"]["id_str"]) == (first["id"], ann)
        assert (reply["in_reply_to_status_id_str"], reply["in_reply_to_user_id_str"]) == (first["id"], ann)
        assert reply["in_reply_to_screen_name"] == first["login"]
        assert (quote["user"]["id_str"], quote["quoted_status"]["id_str"]) == (ann, first["id"])


async def test_a_box_matches_points_and_overlapping_places(api: Api) -> None:
    name = word()
    async with await listen(api, locations="-10.5,50,-10,51,11.25,-60.5,11.5,-60") as stream:
        await api.post(api.admin, "out", location={"lon": -10.6, "lat": 50.5})
        await api.post(api.admin, "in", location={"lon": -10.25, "lat": 50.5})
        await api.post(api.admin, "over", place={"name": name, "box": [11.4, -61, 12, -60.4]})
        await stream.until(lambda stream: len(texts(stream)) == 2)
        assert texts(stream) == ["in", "over"]
        point, place = (message for message in stream.messages if "text" in message)
        assert point["coordinates"] == {"type": "Point", "coordinates": [-10.25, 50.5]}
        assert place["place"]["full_name"] == name


async def test_a_stream_does_not_depend_on_its_caller(api: Api) -> None:
    ann, bob, term = await api.user(), await api.user(), word()
    await api.done("PUT", f"/v1/users/me/blocks/{bob}", token=mint(ann))
    async with await listen(api, token=mint(ann), track=term) as stream:
        await api.done("PATCH", "/v1/users/me", token=mint(ann), json={"protected": True})
        await api.post(ann, f"{term} one")
        await api.post(bob, f"{term} two")
        await stream.until(texts)
        assert texts(stream) == [f"{term} two"]


async def test_the_firehose_sends_public_posts_and_deletes_only(api: Api) -> None:
    ann, bob = await api.user(), await api.user()
    async with await listen(api, FIREHOSE) as stream:
        posted = await api.post(ann, word())
        await api.done("PUT", f"/v1/users/me/likes/{posted['id']}", token=mint(bob))
        await api.follow(bob, ann)
        await api.delete(ann, posted["id"])
        await stream.until(deletes)
        assert (texts(stream), deletes(stream)) == ([posted["message"]], [posted["id"]])
        assert len([message for message in stream.messages if message]) == 2


async def test_the_sample_equals_sample_1_of_the_native_api(api: Api) -> None:
    one_percent, taken, posted = Sample.parse("1"), "", []
    async with await listen(api, SAMPLE, form=True) as stream:
        while not taken:
            batch = await asyncio.gather(*(api.post(api.admin, "to be taken, perhaps") for _ in range(50)))
            posted += [status["id"] for status in sorted(batch, key=lambda status: int(status["id"]))]
            taken = next((one for one in posted if one_percent.matches(Event("post", status_id=one))), "")
        expected = [one for one in posted if one_percent.matches(Event("post", status_id=one))]
        await stream.until(lambda stream: len(texts(stream)) >= len(expected))
        assert [message["id_str"] for message in stream.messages if "text" in message] == expected


async def test_count_sends_earlier_statuses_first(api: Api) -> None:
    """A negative count ends the stream after them."""
    ann = await api.user()
    posted = [await api.post(ann, f"{number}") for number in range(5)]
    async with await listen(api, FIREHOSE, count="3") as stream:
        await api.post(ann, "5")
        await stream.until(lambda stream: len(texts(stream)) == 4)
        assert texts(stream) == ["2", "3", "4", "5"]
    async with await listen(api, form=True, follow=f"{ann}", count="-4") as stream:
        await stream.until_end()
        assert stream.cut is None
        assert texts(stream) == ["2", "3", "4", "5"]
        assert stream.messages[-1]["disconnect"] == {
            "code": 9, "stream_name": "statuses/filter", "reason": stream.messages[-1]["disconnect"]["reason"],
        }  # fmt: skip
    assert posted[0]["message"] == "0"


async def test_count_counts_deleted_statuses_and_sends_their_deletes(api: Api) -> None:
    ann = await api.user()
    posted = [await api.post(ann, f"{number}") for number in range(3)]
    await api.delete(ann, posted[1]["id"])
    async with await listen(api, FIREHOSE, count="-3") as stream:
        await stream.until_end()
        assert texts(stream) == ["0", "2"]
        deleted = [message["delete"]["status"]["id_str"] for message in stream.messages if "delete" in message]
        assert deleted == [posted[1]["id"]]


async def test_a_stream_resumes_after_a_cursor(api: Api) -> None:
    ann = await api.user()
    await api.post(ann, "before")
    cursor = await api.head()
    await api.post(ann, "after")
    async with await listen(api, follow=ann, lastEventId=cursor) as stream:
        await stream.until(texts)
        assert texts(stream) == ["after"]


async def test_a_count_above_the_length_of_the_log_starts_at_its_beginning(own_folder: Path) -> None:
    async with Server(own_folder) as server, Api(server) as api:
        ended = await (await listen(api, FIREHOSE, count="-10")).until_end()
        assert texts(ended) == []
        await api.post(api.admin, "only")
        ended = await (await listen(api, FIREHOSE, count="-150000")).until_end()
        assert texts(ended) == ["only"]


async def test_filter_level_medium_sends_nothing(api: Api) -> None:
    term = word()
    async with (
        await listen(api, track=term, filter_level="medium") as none,
        await listen(api, track=term, filter_level="low") as some,
    ):
        posted = await api.post(api.admin, term)
        await api.delete(api.admin, posted["id"])
        await some.until(deletes)
        heartbeats = none.heartbeats
        await none.until(lambda stream: stream.heartbeats > heartbeats + 1)
        assert [message for message in none.messages if message] == []


@pytest.mark.parametrize("how", ["revoked", "expired"])
async def test_the_end_of_a_token_ends_the_stream_with_code_6(api: Api, how: str) -> None:
    uid, token = await api.user(), ""

    async def opened(given: str) -> Listener:
        nonlocal token
        token = given
        return await listen(api, SAMPLE, token=token)

    async with await (with_brief_token(uid, opened) if how == "expired" else opened(mint(uid))) as stream:
        if how == "revoked":
            await api.done("DELETE", "/v1/sessions", token=token)
        await stream.until_end()
        assert stream.messages[-1]["disconnect"]["code"] == 6
        assert stream.messages[-1]["disconnect"]["stream_name"] == "statuses/sample"
