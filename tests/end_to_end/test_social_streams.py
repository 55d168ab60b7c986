"""Streams of users to each other: each receives what its user may see, live and by cursor, and nothing else."""

from pathlib import Path

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.people import (
    Person,
    close,
    create_people,
    protected_author,
    received,
    settle,
)
from tests.end_to_end.server import Server


@pytest.mark.extended
async def test_a_restarted_server_still_hides_protected_suspended_and_blocked_users(own_folder: Path) -> None:
    """After a kill and a restart on the same data, replays still hide protected, suspended and blocked users."""
    with Server(own_folder, "--heartbeat-seconds", "0.2") as server:
        async with Api(server) as api:
            ann, shy, bad, foe, free = await create_people(api, 5)
            start = await api.head()
            said = {name: await person.post("said") for name, person in (("shy", shy), ("bad", bad), ("foe", foe))}
            said["free"] = await free.post("said")
            await shy.protect()
            await api.done("PUT", f"/v1/admin/suspensions/{bad.uid}", token=mint(api.admin, "admin"))
            await ann.request("PUT", f"users/me/blocks/{foe.uid}")
        server.kill()
        server.start()
        async with Api(server) as api:
            again = Person(api, ann.uid)
            async with (
                await api.stream({"firehose": "true", "since": start}) as firehose,
                await again.stream(track="said", since=start) as track,
            ):
                await settle(api, firehose, track)
                assert received(firehose, "post") == [("post", said["foe"]), ("post", said["free"])]
                assert received(track, "post") == [("post", said["free"])]


async def test_a_mute_hides_posts_and_notifications_until_it_ends(api: Api) -> None:
    """The muting user gets neither posts nor notifications of the muted user. The muted user receives as before."""
    ann, bob = await create_people(api, 2)
    await ann.follow(bob)
    await bob.follow(ann)
    async with await ann.own_stream() as hers, await bob.own_stream() as his:
        await ann.request("PUT", f"users/me/mutes/{bob.uid}")
        unheard = await bob.post("unheard")
        mine = await ann.post("heard by bob")
        await bob.request("PUT", f"users/me/likes/{mine}")
        await ann.request("DELETE", f"users/me/mutes/{bob.uid}")
        heard = await bob.post("heard again")
        await settle(api, hers, his)
        assert ("post", unheard) not in received(hers)
        assert ("post", heard) in received(hers)
        assert received(hers, "notification") == []
        assert received(hers, "mute", "unmute") == [("mute", bob.uid), ("unmute", bob.uid)]
        assert received(his, "post") == [("post", unheard), ("post", mine), ("post", heard)]
        assert received(his, "mute", "unmute") == []


async def test_a_suspension_ends_streams_and_hides_until_it_ends(api: Api) -> None:
    """The user's streams end and no new one opens. Nobody receives the user's posts, also by cursor, until the end."""
    ann, bob = await create_people(api, 2)
    await ann.follow(bob)
    admin = mint(api.admin, "admin")
    start = await api.head()
    theirs = [await bob.own_stream(), await bob.stream(track="x"), await api.stream({"firehose": "true"}, uid=bob.uid)]
    async with await ann.own_stream() as hers:
        status = await bob.post("hello")
        await api.done("PUT", f"/v1/admin/suspensions/{bob.uid}", token=admin)
        for consumer in theirs:
            await consumer.until_end()
            assert (consumer.messages[-1]["kind"], consumer.messages[-1]["code"]) == ("goodbye", "suspended")
        for path, params in (("/v1/stream/user", {}), ("/v1/stream", {"track": "x"}), ("/v1/events", {"track": "x"})):
            refused = await api.call("GET", path, token=mint(bob.uid), params=params)
            assert refused.error == (403, "suspended", None)
        await settle(api, hers)
        assert received(hers, "post") == [("post", status)]
    await close(theirs)
    for hidden in (True, False):
        for params, path in (
            ({}, "/v1/stream/user"),
            ({"firehose": "true"}, "/v1/stream"),
            ({"follow": bob.uid}, "/v1/stream"),
        ):
            async with await api.stream({**params, "since": start}, uid=ann.uid, path=path) as replayed:
                await settle(api, replayed)
                assert (("post", status) in received(replayed)) is not hidden, (params, path)
        await api.done("DELETE", f"/v1/admin/suspensions/{bob.uid}", token=admin)
    async with await bob.own_stream() as back:
        assert back.messages[0]["kind"] == "hello"


async def test_a_removal_by_an_administrator_is_a_delete_for_streams(api: Api) -> None:
    """The users who could see the post receive its delete."""
    author, people = await protected_author(api)
    follower, stranger = people["follower"], people["stranger"]
    status = await author.post("bad words")
    report = await follower.request("POST", "reports", status=status, reason="abuse")
    async with await follower.own_stream() as friend, await stranger.stream(follow=author.uid) as other:
        body = {"outcome": "removed"}
        await api.done("PATCH", f"/v1/admin/reports/{report['id']}", token=mint(api.admin, "admin"), json=body)
        await settle(api, friend, other)
        assert received(friend, "delete") == [("delete", status)]
        assert received(other) == []


async def test_streams_and_pages_have_the_same_notifications(api: Api) -> None:
    """The receiver's streams, and no others, get the same JSON as the page of notifications, also by cursor."""
    ann, bob, cyd = await create_people(api, 3)
    status = await ann.post("mine")
    await cyd.follow(ann)
    async with await ann.own_stream() as hers, await bob.own_stream() as his, await cyd.own_stream() as theirs:
        start = hers.cursor
        await bob.post("indeed", in_reply_to=status)
        await bob.request("PUT", f"users/me/likes/{status}")
        await bob.request("POST", f"statuses/{status}/comments", message="well")
        await bob.follow(ann)
        await settle(api, hers, his, theirs)
        live = [event["notification"] for event in hers.of("notification")]
        page = (await ann.request("GET", "notifications?count=4"))["notifications"][::-1]
        assert [one["kind"] for one in live] == ["reply", "like", "comment", "follow"]
        assert [(one["id"], one["kind"], one["posted"]) for one in live] == [
            (one["id"], one["kind"], one["posted"]) for one in page
        ]
        assert live[-1] == page[-1]
        assert his.of("notification") == theirs.of("notification") == []
    async with await ann.own_stream(start, kinds="notification") as replayed:
        await settle(api, replayed)
        assert [event["notification"] for event in replayed.events] == live


async def test_events_for_some_users_reach_only_these_users(api: Api) -> None:
    """Messages, requests, blocks, lists and groups: each kind of event reaches only the users whom it concerns."""
    ann, bob, cyd = people = await create_people(api, 3)
    streams = [await person.own_stream() for person in people]
    track, firehose = await ann.stream(track="inside"), await api.stream({"firehose": "true"})
    talk = await ann.request("POST", "talks", people=[bob.uid])
    await bob.request("PUT", f"talks/{talk['id']}/acceptance")
    message = (await ann.request("POST", f"talks/{talk['id']}/messages", message="between us"))["id"]
    public, private = [(await ann.request("POST", "lists", name="l", private=secret))["id"] for secret in (False, True)]
    for one in (public, private):
        await ann.request("PUT", f"lists/{one}/members/{bob.uid}")
    group = (await ann.request("POST", "groups", name="g", kind="private"))["id"]
    await ann.request("PUT", f"groups/{group}/members/{bob.uid}")
    await bob.request("PUT", f"groups/{group}/members/me")
    status = await ann.post("inside", group=group)
    await bob.request("PUT", f"users/me/likes/{status}")
    comment = (await bob.request("POST", f"statuses/{status}/comments", message="inside too"))["id"]
    await ann.request("DELETE", f"groups/{group}/members/{bob.uid}")
    later = await ann.post("inside, without bob", group=group)
    await ann.request("PUT", f"users/me/blocks/{cyd.uid}")
    await settle(api, track, firehose, *streams)
    hers, his, theirs = [received(stream) for stream in streams]
    both = [("message", message), ("list_add", public), ("group_join", group), ("post", status), ("like", status)]
    for event in (*both, ("comment", comment), ("group_leave", group)):
        assert hers.count(event) == 1, event
        assert his.count(event) == 1, event
    for event in (("list_create", public), ("list_create", private), ("list_add", private), ("post", later)):
        assert hers.count(event) == 1, event
        assert event not in his, event
    assert hers.count(("group_create", group)) == hers.count(("block", cyd.uid)) == 1
    assert "block" not in {kind for kind, _ in his + theirs}
    assert theirs == []
    assert received(track) == []
    assert {kind for kind, _ in received(firehose)} <= {"post", "delete"}
    assert not {status, later} & {about for _, about in received(firehose)}
    await close([*streams, track, firehose])


async def test_a_replay_equals_the_live_stream_except_for_deleted_posts(api: Api) -> None:
    """Three users do many things. A late client receives the same as a live one, except what was deleted by then.

    A replay uses the follows and groups of today, so neither changes in this test.
    """
    ann, bob, cyd = people = await create_people(api, 3)
    for one, other in ((ann, bob), (bob, ann), (cyd, bob)):
        await one.follow(other)
    group = (await bob.request("POST", "groups", name="cooks", kind="public"))["id"]
    await cyd.request("PUT", f"groups/{group}/members/me")
    start = await api.head()
    live = [await person.own_stream() for person in people]
    first = await bob.post("good morning")
    answer = await ann.post("morning!", in_reply_to=first)
    await cyd.post("", origin=first)
    await ann.request("PUT", f"users/me/likes/{first}")
    await bob.request("POST", f"statuses/{answer}/comments", message="indeed")
    talk = (await cyd.request("POST", "talks", people=[ann.uid, bob.uid], name="all"))["id"]
    await bob.request("POST", f"talks/{talk}/messages", message="dinner?")
    await bob.post("soup", group=group)
    await bob.request("PATCH", f"groups/{group}", description="soup first")
    gone = await bob.post("never mind")
    await bob.request("DELETE", f"statuses/{gone}")
    await bob.request("PATCH", "users/me", bio="hungry")
    await settle(api, *live)
    for person, stream in zip(people, live, strict=True):
        async with await person.own_stream(start) as replayed:
            await settle(api, replayed)
            assert replayed.events == [
                event for event in stream.events if event.get("status", {}).get("id") != gone or event["kind"] != "post"
            ]
            assert replayed.events
    await close(live)


async def test_kinds_narrows_a_users_own_stream(api: Api) -> None:
    """`kinds` narrows the user's own stream. Unknown kinds, and filters of the other stream, are refused."""
    ann, bob = await create_people(api, 2)
    await ann.follow(bob)
    async with await ann.own_stream(kinds="message,follow") as some:
        await bob.post("not asked for")
        await bob.follow(ann)
        talk = (await bob.request("POST", "talks", people=[ann.uid]))["id"]
        await bob.request("POST", f"talks/{talk}/messages", message="asked for")
        await settle(api, some)
        assert [kind for kind, _ in received(some)] == ["follow", "message"]
    on_the_other = await api.call("GET", "/v1/stream", token=mint(ann.uid), params={"kinds": "message", "track": "x"})
    assert on_the_other.error == (400, "invalid_parameter", "kinds")
