"""Edits at a real server whose clients read the log: each format, each way, and what a replay shows."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from stream_server.client import Client, Edit, Post
from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import CONTROL, Consumer
from tests.end_to_end.people import Person, create_people, word
from tests.end_to_end.server import Server
from tests.end_to_end.socket_consumer import open_socket

KINDS = "post,edit,delete"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without a ring, so that each replay reads the log."""
    with Server(tmp_path_factory.mktemp("edits"), "--ring-bytes", "0") as running:
        yield running


async def edit(person: Person, status_id: str, **changes: Any) -> None:
    await person.request("PATCH", f"statuses/{status_id}", **changes)


async def open_each(api: Api, person: Person, **asked: str) -> list[Consumer]:
    """Open a stream in each format."""
    opened = [await api.stream(asked, uid=person.uid, framing=framing) for framing in ("sse", "ndjson")]
    return [*opened, await open_socket(api, urlencode(asked), uid=person.uid)]


def told(consumer: Consumer) -> list[tuple[str, str]]:
    """Return kind and text of the events, ``left`` for one without a text."""
    return [
        (event["kind"], event["status"].get("message", "") if "status" in event else "left")
        for event in consumer.messages
        if event["kind"] not in CONTROL
    ]


async def test_an_edit_reaches_who_had_the_old_text_and_who_wants_the_new_one(api: Api) -> None:
    ann, bob = await create_people(api, 2)
    tea, milk = word(), word()
    start = await api.head()
    live = {name: await open_each(api, bob, track=name, kinds=KINDS) for name in (tea, milk)}
    plain = await bob.stream(track=tea)
    post = await ann.post(f"{tea} 1")
    await edit(ann, post, message=f"{tea} 2")
    await edit(ann, post, message=f"{milk} 3")
    await edit(ann, post, message=f"{milk} 4", meta={"a": 1})
    await api.delete(ann.uid, post)
    await plain.until(lambda c: c.of("delete"))
    assert told(plain) == [("post", f"{tea} 1"), ("delete", "")]
    for consumer in live[tea]:
        await consumer.until(lambda c: c.of("delete"))
        assert told(consumer) == [("post", f"{tea} 1"), ("edit", f"{tea} 2"), ("edit", "left"), ("delete", "")]
        assert consumer.of("edit")[-1]["left"] == {"id": post, "uid": ann.uid}
    for consumer in live[milk]:
        await consumer.until(lambda c: c.of("delete"))
        assert told(consumer) == [("edit", f"{milk} 3"), ("edit", f"{milk} 4"), ("delete", "")]
        assert [event["status"]["edits"] for event in consumer.of("edit")] == [2, 3]
    page = await api.poll({"track": tea, "kinds": KINDS, "since": start}, uid=bob.uid)
    assert [event["kind"] for event in page["events"] if event["kind"] not in CONTROL] == ["edit", "edit", "delete"]
    assert not any("status" in event for event in page["events"] if event["kind"] == "edit")
    for consumer in (plain, *live[tea], *live[milk]):
        await consumer.close()


async def test_a_replay_shows_the_last_text_in_each_place(api: Api) -> None:
    ann, bob = await create_people(api, 2)
    mine, secret = word(), word()
    start = await api.head()
    post = await ann.post(f"{mine} {secret}")
    await bob.request("PUT", f"users/me/likes/{post}")
    await bob.request("POST", f"statuses/{post}/comments", message=f"{mine} said")
    await bob.post("", origin=post)
    await bob.post(f"{mine} look", origin=post)
    await edit(ann, post, message=f"{mine} {secret} again")
    await edit(ann, post, message=f"{mine} at last")
    asked = {"rule": f"{mine} OR from:{bob.uid}", "kinds": f"{KINDS},like,comment", "since": start}
    for consumer in await open_each(api, bob, **asked):
        await consumer.until(lambda c: len(c.of("edit")) == 2)
        kinds = [event["kind"] for event in consumer.messages if event["kind"] not in CONTROL]
        assert kinds == ["post", "like", "comment", "post", "post", "edit", "edit"]
        assert not any(secret in str(event) for event in consumer.messages)
        shown = [event["status"]["original"] or event["status"] for event in consumer.of("post")[1:]]
        assert {status["message"] for status in shown} == {f"{mine} at last"}
        await consumer.close()
    taken_back = await api.poll({"track": secret, "kinds": KINDS, "since": start}, uid=bob.uid)
    assert [("left" in event, event["kind"]) for event in taken_back["events"]] == [(True, "edit"), (True, "edit")]


async def test_an_edit_out_of_a_reader_tokens_rule_shows_ids_only(api: Api) -> None:
    ann = Person(api, await api.user())
    mine = word()
    token = mint(None, "stream", within="meta.site:blog")  # type: ignore[arg-type]  # a reader has no id
    post = await ann.post(mine, meta={"site": "blog"})
    async with await api.stream({"track": mine, "kinds": KINDS}, token=token) as stream:
        await edit(ann, post, message=f"{mine} inside")
        await edit(ann, post, message=f"{mine} outside", meta={"site": "other"})
        await edit(ann, post, message=f"{mine} still outside")
        await edit(ann, post, meta={"site": "blog"})
        await stream.until(lambda c: len(c.of("edit")) == 3)
        assert told(stream) == [("edit", f"{mine} inside"), ("edit", "left"), ("edit", f"{mine} still outside")]


async def test_who_had_a_post_is_told_of_its_edit_when_it_is_hidden_by_then(api: Api) -> None:
    ann, bob = await create_people(api, 2)
    mine = word()
    async with await bob.stream(track=mine, kinds=KINDS) as stream:
        post = await ann.post(mine)
        await stream.until(lambda c: c.of("post"))
        await bob.request("PUT", f"users/me/mutes/{ann.uid}")
        await edit(ann, post, message=f"{mine} again")
        await bob.request("DELETE", f"users/me/mutes/{ann.uid}")
        await edit(ann, post, message=f"{mine} at last")
        await stream.until(lambda c: len(c.of("edit")) == 2)
        assert told(stream) == [("post", mine), ("edit", "left"), ("edit", f"{mine} at last")]


async def test_matched_says_which_rules_the_shown_or_the_left_text_matches(api: Api) -> None:
    ann, bob = await create_people(api, 2)
    tea, milk = word(), word()
    rules = f"rule=tea:{tea}&rule=milk:{milk}&kinds={KINDS}"
    async with await open_socket(api, rules, uid=bob.uid) as stream:
        post = await ann.post(f"{tea} {milk}")
        for text in (f"{milk}", "nothing", f"{tea}"):
            await edit(ann, post, message=text)
        await stream.until(lambda c: len(c.of("edit")) == 3)
        tags = [[rule["tag"] for rule in event["matched"]] for event in stream.messages if "matched" in event]
        assert tags == [["tea", "milk"], ["milk"], ["milk"], ["tea"]]
        assert told(stream)[2] == ("edit", "left")


async def test_the_python_client_edits_and_reads_edits(api: Api, server: Server) -> None:
    ann = Person(api, await api.user())
    mine = word()
    start = await api.head()
    async with Client(server.address, mint(ann.uid)) as client:
        made = await client.post(mine, body={"meta": {"a": 1}})
        edited = await client.edit(made.id, {"message": f"{mine} again", "meta": None})
        assert (edited.message, edited.edits, edited.meta, made.edits) == (f"{mine} again", 1, None, 0)
        assert edited.edited is not None
        assert edited.edited >= edited.posted
        await client.edit(made.id, {"message": "gone"})
        seen = []
        async for event in client.stream(follow=ann.uid, kinds="post,edit", since=start):
            seen.append(event)
            if len(seen) == 3:
                break
        assert isinstance(seen[0], Post)
        assert seen[0].status.message == "gone"
        for edit_event in seen[1:]:
            assert isinstance(edit_event, Edit)
            assert edit_event.status == seen[0].status
