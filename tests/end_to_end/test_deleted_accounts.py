"""Deleted accounts on a real server: streams end, posts go from streams and replays, and a killed job goes on."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.faults.site import site
from tests.end_to_end.people import Person, close, create_people, received, settle
from tests.end_to_end.server import Server, restartable
from tests.end_to_end.socket_consumer import open_socket
from tests.waiting import eventually

GONE = (401, "account_deleted", None)

DELETED_KINDS = "post,delete,like,comment,uncomment,follow,user_update,user_delete"


async def delete(api: Api, person: Person) -> None:
    await api.done("DELETE", f"/v1/users/{person.uid}", token=mint(api.admin, "admin"))


def end_of(consumer: Consumer) -> tuple[str, str]:
    last = consumer.messages[-1]
    return last["kind"], last.get("code", "")


async def erased(server: Server, uid: str) -> bool:
    """Whether no job has anything left to do for a deleted account."""
    with server.redis_client() as raw:
        return not raw.exists(f"{{core}}:user:{uid}")


async def test_a_deleted_account_ends_its_streams_and_goes_from_all_others(api: Api) -> None:
    ann, bob, cyd = await create_people(api, 3)
    await ann.follow(bob)
    await bob.follow(ann)
    start = await api.head()
    theirs = [
        await bob.own_stream(), await bob.stream(track="x"), await api.stream({"firehose": "true"}, uid=bob.uid),
        await api.stream({"track": "x"}, uid=bob.uid, framing="sse"),
    ]  # fmt: skip
    socket = await open_socket(api, "track=x", uid=bob.uid)
    waiting = asyncio.ensure_future(api.poll({"track": "x"}, uid=bob.uid, wait=60))
    await bob.request("PATCH", "users/me", name="Secret Name")
    said = [await bob.post("tea time"), await bob.post("milk", in_reply_to=await ann.post("who?"))]
    mine = await ann.post("by ann")
    await bob.request("PUT", f"users/me/likes/{mine}")
    comment = await bob.request("POST", f"statuses/{mine}/comments", message="a secret comment")
    quote = await ann.post("look", origin=said[0])
    streams = {
        "own": await ann.own_stream(), "firehose": await api.stream({"firehose": "true", "kinds": DELETED_KINDS}),
        "follow": await cyd.stream(follow=bob.uid, kinds=DELETED_KINDS), "track": await cyd.stream(track="tea"),
        "mine": await ann.stream(follow="@me", kinds=DELETED_KINDS),
    }  # fmt: skip
    try:
        await delete(api, bob)
        for consumer in (*theirs, socket):
            await consumer.until_end()
            assert end_of(consumer) == ("goodbye", "account_deleted")
        assert socket.code == 1008
        assert (await waiting)["events"][-1]["code"] == "account_deleted"
        for path, params in (("/v1/stream/user", {}), ("/v1/stream", {"track": "x"}), ("/v1/events", {"track": "x"})):
            assert (await api.call("GET", path, token=mint(bob.uid), params=params)).error == GONE
        await eventually(lambda: erased(api.server, bob.uid))
        await settle(api, *streams.values())
        deletes = {("delete", each) for each in said}
        for name, consumer in streams.items():
            got = set(received(consumer, "delete", "uncomment", "user_delete"))
            assert got & deletes == (deletes if name != "track" else {("delete", said[0])}), name
            told = consumer.of("user_delete")
            wanted = [] if name == "track" else [{"id": bob.uid, "deleted": True}]
            assert [event["user"] for event in told] == wanted, name
        assert ("uncomment", comment["id"]) in received(streams["firehose"])
    finally:
        await close([*theirs, socket, *streams.values()])
    await _check_replays(api, ann, start, said, quote)


async def _check_replays(api: Api, ann: Person, start: str, said: list[str], quote: str) -> None:
    """Neither a replay nor a poll shows anything that the deleted user wrote or did, but for ids."""
    for path, params in (
        ("/v1/stream/user", {}), ("/v1/stream", {"firehose": "true", "kinds": DELETED_KINDS}),
        ("/v1/stream", {"follow": "@me", "kinds": DELETED_KINDS}), ("/v1/stream", {"track": "tea,milk,secret"}),
    ):  # fmt: skip
        async with await api.stream({**params, "since": start}, uid=ann.uid, path=path) as replayed:
            await settle(api, replayed)
            texts = str([event for event in replayed.events if event.get("status", {}).get("id") != quote])
            assert not any(word in texts for word in ("Secret Name", "tea time", "milk", "a secret comment")), params
            assert not set(received(replayed, "post")) & {("post", each) for each in said}
    page = await api.poll({"firehose": "true", "kinds": DELETED_KINDS, "since": start, "limit": "1000"}, uid=ann.uid)
    assert "Secret Name" not in str(page["events"])
    assert "user_delete" in [event["kind"] for event in page["events"]]
    quoted = next(event["status"] for event in page["events"] if event.get("status", {}).get("id") == quote)
    assert quoted["original"] is None


async def test_a_replay_shows_no_card_of_a_deleted_account_that_others_muted_blocked_or_listed(api: Api) -> None:
    """They acted, and not the deleted user. Their entries have the user's name and bio."""
    ann, bob, cyd = await create_people(api, 3)
    start = await api.head()
    await bob.request("PATCH", "users/me", name="Secret Name", bio="Secret bio", protected=True)
    named = str((await ann.request("POST", "lists", name="friends"))["id"])
    for method in ("PUT", "DELETE"):
        for path in (f"lists/{named}/members", "users/me/following", "users/me/mutes", "users/me/blocks"):
            await ann.request(method, f"{path}/{bob.uid}")
        await ann.request(method, f"users/me/mutes/{cyd.uid}")
    async with await ann.own_stream(start) as before:
        await settle(api, before)
        shown = {event["kind"] for event in before.events if "Secret bio" in str(event)}
        assert shown >= {"list_add", "list_remove", "request", "unrequest", "mute", "unmute", "block", "unblock"}
    await delete(api, bob)
    async with await ann.own_stream(start) as replayed:
        await settle(api, replayed)
        assert "Secret" not in str(replayed.events)
        assert received(replayed) == [("list_create", named), ("mute", cyd.uid), ("unmute", cyd.uid)]


async def test_a_restarted_server_still_hides_a_deleted_account(tmp_path: Path) -> None:
    """It knows of the deletion from Redis alone."""
    with restartable(tmp_path, "--heartbeat-seconds", "0.2") as server:
        async with Api(server) as api:
            ann, bob, cyd = await create_people(api, 3)
            start = await api.head()
            await bob.follow(ann)
            await ann.follow(bob)
            await bob.request("PATCH", "users/me", name="Secret Name")
            await bob.protect()
            hidden = await bob.post("for followers")
            await delete(api, bob)
            await eventually(lambda: erased(server, bob.uid))
        server.kill()
        server.start()
        async with Api(server) as api:
            async with await api.stream({"firehose": "true", "kinds": DELETED_KINDS, "since": start}) as replayed:
                await settle(api, replayed)
                assert received(replayed, "user_delete") == [("user_delete", bob.uid)]
                assert {event["kind"] for event in replayed.events} <= {"user_delete", "follow"}
                assert [event["target"]["id"] for event in replayed.of("follow")] == []
            for person, deletes in ((ann, [("delete", hidden)]), (cyd, [])):
                async with await Person(api, person.uid).stream(follow=bob.uid, since=start) as personal:
                    await settle(api, personal)
                    assert received(personal) == deletes
            assert (await api.call("GET", "/v1/users/me", token=mint(bob.uid))).error == GONE


@pytest.mark.extended
async def test_every_server_ends_the_streams_and_refuses_the_tokens(tmp_path: Path) -> None:
    async with site(tmp_path, "two servers") as two:
        one, other = two.apis
        ann, bob = await create_people(one, 2)
        streams = [await api.stream({"follow": ann.uid, "kinds": DELETED_KINDS}, uid=bob.uid) for api in (one, other)]
        theirs = [await api.stream({"track": "x"}, uid=ann.uid) for api in (one, other)]
        await ann.post("hello")
        await delete(one, ann)
        for api, stream, own in zip((one, other), streams, theirs, strict=True):
            await own.until_end()
            assert end_of(own) == ("goodbye", "account_deleted")
            assert (await api.call("GET", "/v1/users/me", token=mint(ann.uid))).error == GONE
            await stream.until(lambda c: c.of("user_delete") and c.of("delete"))
        await close([*streams, *theirs])


@pytest.mark.extended
async def test_a_killed_server_goes_on_with_the_deletion(tmp_path: Path) -> None:
    """It is killed while the job runs. All is removed in the end, and each post has one delete."""
    with restartable(tmp_path, "--fanout-batch-size", "5") as server:
        async with Api(server) as api:
            (author,) = await create_people(api, 1)
            readers = await create_people(api, 40)
            for reader in readers:
                await reader.follow(author)
            posts = [await author.post(f"number {n}") for n in range(150)]
            await delete(api, author)
        server.kill()
        server.start()
        await eventually(lambda: erased(server, author.uid), seconds=60)
        with server.redis_client() as raw:
            entries: Any = raw.xrange("{core}:log")
            assert [raw.zcard(f"home:{{{reader.uid}}}") for reader in readers] == [0] * 40
            assert raw.keys("{core}:status:*") == []
        deleted = [fields[b"e"].decode() for _, fields in entries if fields[b"k"] == b"delete"]
        assert sorted(text.partition('"id":"')[2].partition('"')[0] for text in deleted) == sorted(posts)
