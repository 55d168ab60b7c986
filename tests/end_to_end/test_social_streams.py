"""Streams of people to one another: each hears of what it may see, live and by cursor, and of nothing else."""

from pathlib import Path

import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.ears import (
    EARS,
    FRIENDS,
    Person,
    befriended,
    close,
    ear,
    ears,
    hearing,
    persons,
    settle,
    told,
    word,
)
from tests.end_to_end.server import Server


async def test_the_posts_of_the_protected_reach_their_followers_only(api: Api) -> None:
    """Live and by cursor, on every kind of stream; so do their deletes, to exactly those streams."""
    author, people = await befriended(api)
    start, term = await api.head(), word()
    live = await ears(people, author, term)
    firehose = await api.stream({"firehose": "true"})
    status = await author.posts(f"for friends: {term}")
    await settle(api, firehose, *live.values())
    assert hearing(live, ("post", status)) == FRIENDS
    replayed = await ears(people, author, term, start)
    late = await api.stream({"firehose": "true", "since": start})
    await settle(api, late, *replayed.values())
    assert hearing(replayed, ("post", status)) == FRIENDS
    for name, person in people.items():
        polled = await api.poll({"track": term, "since": start}, uid=person.uid)
        assert [event["status"]["id"] for event in polled["events"]] == [status] * (f"{name} track" in FRIENDS)
    await author.does("DELETE", f"statuses/{status}")
    await settle(api, firehose, late, *live.values(), *replayed.values())
    assert hearing(live, ("delete", status)) == FRIENDS
    assert hearing(replayed, ("delete", status)) == FRIENDS
    assert [one for one in told(firehose) + told(late) if one[1] == status] == []
    await close([firehose, late, *live.values(), *replayed.values()])


async def test_protection_begins_and_ends_at_once(api: Api) -> None:
    """Strangers' streams and the firehose hear what was said in public, as long as its author is not protected."""
    author, follower, stranger = await persons(api, 3)
    await follower.follows(author)
    start, term = await api.head(), word()
    people = {"follower": follower, "stranger": stranger}
    live = await ears(people, author, term) | {"firehose": await api.stream({"firehose": "true"})}
    said = {"before": await author.posts(f"before {term}")}
    await author.protects()
    said["during"] = await author.posts(f"during {term}")
    await settle(api, *live.values())
    hidden = await api.stream({"firehose": "true", "since": start})
    await author.does("PATCH", "users/me", protected=False)
    said["after"] = await author.posts(f"after {term}")
    shown = await api.stream({"firehose": "true", "since": start})
    await settle(api, hidden, shown, *live.values())
    friends = {f"follower {kind}" for kind in EARS}
    everybody = friends | {"stranger track", "stranger follow", "firehose"}
    heard = {when: hearing(live, ("post", status)) for when, status in said.items()}
    assert heard == {"before": everybody, "during": friends, "after": everybody}
    assert told(shown) == [("post", said["before"]), ("post", said["after"])]
    assert ("post", said["during"]) not in told(hidden)
    await close([hidden, shown, *live.values()])


async def test_what_is_passed_on_shows_no_more_than_its_original(api: Api) -> None:
    """To whom the first author blocks: a quote comes without what it quotes, a repost without words not at all."""
    ann, bob, cyd = await persons(api, 3)
    await ann.follows(bob)
    await cyd.does("PUT", f"users/me/blocks/{ann.uid}")
    original = await cyd.posts("not for ann")
    start = await api.head()
    live = [await ann.own(), await ann.hears(follow=bob.uid), await bob.own()]
    repost, quote = await bob.posts("", origin=original), await bob.posts("look", origin=original)
    late = [await ann.own(start), await ann.hears(follow=bob.uid, since=start)]
    await settle(api, *live, *late)
    for consumer in (*live[:2], *late):
        (event,) = consumer.of("post")
        assert (event["status"]["id"], event["status"]["original"]) == (quote, None)
    assert told(live[2], "post") == [("post", repost), ("post", quote)]
    assert [event["status"]["original"]["id"] for event in live[2].of("post")] == [original] * 2
    await close([*live, *late])


@pytest.mark.extended
async def test_a_restarted_server_knows_who_is_hidden(own_folder: Path) -> None:
    """Killed and started again on the same data: the protected, the suspended and the blocked stay so for replays."""
    with Server(own_folder, "--heartbeat-seconds", "0.2") as server:
        async with Api(server) as api:
            ann, shy, bad, foe, free = await persons(api, 5)
            start = await api.head()
            said = {name: await person.posts("said") for name, person in (("shy", shy), ("bad", bad), ("foe", foe))}
            said["free"] = await free.posts("said")
            await shy.protects()
            await api.done("PUT", f"/v1/admin/suspensions/{bad.uid}", token=mint(api.admin, "admin"))
            await ann.does("PUT", f"users/me/blocks/{foe.uid}")
        server.kill()
        server.start()
        async with Api(server) as api:
            again = Person(api, ann.uid)
            async with (
                await api.stream({"firehose": "true", "since": start}) as firehose,
                await again.hears(track="said", since=start) as track,
            ):
                await settle(api, firehose, track)
                assert told(firehose, "post") == [("post", said["foe"]), ("post", said["free"])]
                assert told(track, "post") == [("post", said["free"])]


async def test_consent_given_and_taken_holds_at_once(api: Api) -> None:
    """Who is let in hears from then on; who leaves hears no more, also by an old cursor."""
    author, people = await befriended(api)
    asking, follower = people["asking"], people["follower"]
    term = word()
    async with await asking.own() as new, await follower.hears(track=term) as old:
        start = old.cursor
        before = await author.posts(f"before {term}")
        await author.does("PUT", f"users/me/requests/{asking.uid}")
        await follower.does("DELETE", f"users/me/following/{author.uid}")
        after = await author.posts(f"after {term}")
        await settle(api, new, old)
        assert told(new, "post") == [("post", after)]
        assert told(old, "post") == [("post", before)]
    async with await follower.hears(since=start, track=term) as replayed:
        await settle(api, replayed)
        assert told(replayed) == []


async def test_the_first_whom_one_follows_is_heard(api: Api) -> None:
    """Also by a stream that began while nobody was followed; and no more after the unfollow."""
    ann, bob = await persons(api, 2)
    async with await ann.own() as own, await ann.hears(follow="@me") as mine:
        await bob.posts("before")
        await ann.follows(bob)
        during = await bob.posts("during")
        await ann.does("DELETE", f"users/me/following/{bob.uid}")
        await bob.posts("after")
        await settle(api, own, mine)
        assert told(own, "post") == told(mine) == [("post", during)]


@pytest.mark.parametrize("kind", EARS)
async def test_a_block_holds_at_once_both_ways(api: Api, kind: str) -> None:
    """What either says after it does not reach the other, by no stream, live or by cursor; others hear both."""
    ann, bob, cyd = await persons(api, 3)
    term = word()
    pairs = ((ann, bob), (bob, ann))
    for one, other in (*pairs, (cyd, ann), (cyd, bob)):
        await one.follows(other)
    start = await api.head()
    opened = {one: await ear(kind, one, other, term) for one, other in pairs}
    async with await cyd.own() as theirs:
        before = {one: await one.posts(f"before {term}") for one in (ann, bob)}
        await settle(api, *opened.values())
        await ann.does("PUT", f"users/me/blocks/{bob.uid}")
        after = {one: await one.posts(f"after {term}") for one in (ann, bob)}
        await settle(api, theirs, *opened.values())
        for one, other in pairs:
            heard = {status for _, status in told(opened[one], "post")}
            assert before[other] in heard
            assert after[other] not in heard
        assert {status for _, status in told(theirs, "post")} == {*before.values(), *after.values()}
        for one, other in pairs:
            replayed = await ear(kind, one, other, term, start)
            await settle(api, replayed)
            assert not {before[other], after[other]} & {status for _, status in told(replayed, "post")}
            await replayed.close()
        for one in (ann, bob):
            for status in (before[one], after[one]):
                await one.does("DELETE", f"statuses/{status}")
        await settle(api, theirs, *opened.values())
        for one, other in pairs:
            gone = {status for _, status in told(opened[one], "delete")}
            assert before[other] in gone
            assert after[other] not in gone
    await close(opened.values())


async def test_a_mute_silences_until_it_ends(api: Api) -> None:
    """Posts of the muted, and notifications of what they do, do not come; the muted hear as before, and of no mute."""
    ann, bob = await persons(api, 2)
    await ann.follows(bob)
    await bob.follows(ann)
    async with await ann.own() as hers, await bob.own() as his:
        await ann.does("PUT", f"users/me/mutes/{bob.uid}")
        unheard = await bob.posts("unheard")
        mine = await ann.posts("heard by bob")
        await bob.does("PUT", f"users/me/likes/{mine}")
        await ann.does("DELETE", f"users/me/mutes/{bob.uid}")
        heard = await bob.posts("heard again")
        await settle(api, hers, his)
        assert ("post", unheard) not in told(hers)
        assert ("post", heard) in told(hers)
        assert told(hers, "notification") == []
        assert told(hers, "mute", "unmute") == [("mute", bob.uid), ("unmute", bob.uid)]
        assert told(his, "post") == [("post", unheard), ("post", mine), ("post", heard)]
        assert told(his, "mute", "unmute") == []


async def test_a_suspension_ends_streams_and_hides_until_it_ends(api: Api) -> None:
    """The user's streams end and none begins; nobody hears of the user, by a cursor neither; then all is back."""
    ann, bob = await persons(api, 2)
    await ann.follows(bob)
    admin = mint(api.admin, "admin")
    start = await api.head()
    theirs = [await bob.own(), await bob.hears(track="x"), await api.stream({"firehose": "true"}, uid=bob.uid)]
    async with await ann.own() as hers:
        status = await bob.posts("hello")
        await api.done("PUT", f"/v1/admin/suspensions/{bob.uid}", token=admin)
        for consumer in theirs:
            await consumer.until_end()
            assert (consumer.messages[-1]["kind"], consumer.messages[-1]["code"]) == ("goodbye", "suspended")
        for path, params in (("/v1/stream/user", {}), ("/v1/stream", {"track": "x"}), ("/v1/events", {"track": "x"})):
            refused = await api.call("GET", path, token=mint(bob.uid), params=params)
            assert refused.error == (403, "suspended", None)
        await settle(api, hers)
        assert told(hers, "post") == [("post", status)]
    await close(theirs)
    for hidden in (True, False):
        for params, path in (
            ({}, "/v1/stream/user"),
            ({"firehose": "true"}, "/v1/stream"),
            ({"follow": bob.uid}, "/v1/stream"),
        ):
            async with await api.stream({**params, "since": start}, uid=ann.uid, path=path) as replayed:
                await settle(api, replayed)
                assert (("post", status) in told(replayed)) is not hidden, (params, path)
        await api.done("DELETE", f"/v1/admin/suspensions/{bob.uid}", token=admin)
    async with await bob.own() as back:
        assert back.messages[0]["kind"] == "hello"


async def test_a_removal_by_an_administrator_is_a_delete_for_streams(api: Api) -> None:
    """Those who could see the post hear that it is gone."""
    author, people = await befriended(api)
    follower, stranger = people["follower"], people["stranger"]
    status = await author.posts("bad words")
    report = await follower.does("POST", "reports", status=status, reason="abuse")
    async with await follower.own() as friend, await stranger.hears(follow=author.uid) as other:
        body = {"outcome": "removed"}
        await api.done("PATCH", f"/v1/admin/reports/{report['id']}", token=mint(api.admin, "admin"), json=body)
        await settle(api, friend, other)
        assert told(friend, "delete") == [("delete", status)]
        assert told(other) == []


async def test_notifications_come_live_as_they_are_on_the_page(api: Api) -> None:
    """To the one whom they concern and nobody else, the same object; by cursor too."""
    ann, bob, cyd = await persons(api, 3)
    status = await ann.posts("mine")
    await cyd.follows(ann)
    async with await ann.own() as hers, await bob.own() as his, await cyd.own() as theirs:
        start = hers.cursor
        await bob.posts("indeed", in_reply_to=status)
        await bob.does("PUT", f"users/me/likes/{status}")
        await bob.does("POST", f"statuses/{status}/comments", message="well")
        await bob.follows(ann)
        await settle(api, hers, his, theirs)
        live = [event["notification"] for event in hers.of("notification")]
        page = (await ann.does("GET", "notifications?count=4"))["notifications"][::-1]
        assert [one["kind"] for one in live] == ["reply", "like", "comment", "follow"]
        assert [(one["id"], one["kind"], one["posted"]) for one in live] == [
            (one["id"], one["kind"], one["posted"]) for one in page
        ]
        assert live[-1] == page[-1]
        assert his.of("notification") == theirs.of("notification") == []
    async with await ann.own(start, kinds="notification") as replayed:
        await settle(api, replayed)
        assert [event["notification"] for event in replayed.events] == live


async def test_what_is_said_to_some_reaches_them_only(api: Api) -> None:
    """Messages, requests, blocks, lists and groups: each event by its kind, and who hears of it."""
    ann, bob, cyd = people = await persons(api, 3)
    streams = [await person.own() for person in people]
    track, firehose = await ann.hears(track="inside"), await api.stream({"firehose": "true"})
    talk = await ann.does("POST", "talks", people=[bob.uid])
    message = (await ann.does("POST", f"talks/{talk['id']}/messages", message="between us"))["id"]
    public, private = [(await ann.does("POST", "lists", name="l", private=secret))["id"] for secret in (False, True)]
    for one in (public, private):
        await ann.does("PUT", f"lists/{one}/members/{bob.uid}")
    group = (await ann.does("POST", "groups", name="g", kind="private"))["id"]
    await ann.does("PUT", f"groups/{group}/members/{bob.uid}")
    status = await ann.posts("inside", group=group)
    await bob.does("PUT", f"users/me/likes/{status}")
    comment = (await bob.does("POST", f"statuses/{status}/comments", message="inside too"))["id"]
    await ann.does("DELETE", f"groups/{group}/members/{bob.uid}")
    later = await ann.posts("inside, without bob", group=group)
    await ann.does("PUT", f"users/me/blocks/{cyd.uid}")
    await settle(api, track, firehose, *streams)
    hers, his, theirs = [told(stream) for stream in streams]
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
    assert told(track) == []
    assert {kind for kind, _ in told(firehose)} <= {"post", "delete"}
    assert not {status, later} & {about for _, about in told(firehose)}
    await close([*streams, track, firehose])


async def test_requests_concern_two(api: Api) -> None:
    """Who asks and who is asked hear of the request, of its end, and of the follow that comes of it."""
    ann, bob, _ = people = await persons(api, 3)
    await ann.protects()
    streams = [await person.own() for person in people]
    await bob.follows(ann)
    await ann.does("DELETE", f"users/me/requests/{bob.uid}")
    await bob.follows(ann)
    await ann.does("PUT", f"users/me/requests/{bob.uid}")
    await settle(api, *streams)
    expected = [("request", ann.uid), ("unrequest", ann.uid), ("request", ann.uid), ("follow", ann.uid)]
    for stream in streams[:2]:
        assert told(stream, "request", "unrequest", "follow") == expected
    assert told(streams[2]) == []
    await close(streams)


async def test_a_replay_tells_what_live_told(api: Api) -> None:
    """A day in the life of three people: whoever comes late hears the same, but for what is gone by then.

    A replay goes by whom one follows, and the groups that one is in, today; so neither changes here.
    """
    ann, bob, cyd = people = await persons(api, 3)
    for one, other in ((ann, bob), (bob, ann), (cyd, bob)):
        await one.follows(other)
    group = (await bob.does("POST", "groups", name="cooks", kind="public"))["id"]
    await cyd.does("PUT", f"groups/{group}/members/me")
    start = await api.head()
    live = [await person.own() for person in people]
    first = await bob.posts("good morning")
    answer = await ann.posts("morning!", in_reply_to=first)
    await cyd.posts("", origin=first)
    await ann.does("PUT", f"users/me/likes/{first}")
    await bob.does("POST", f"statuses/{answer}/comments", message="indeed")
    talk = (await cyd.does("POST", "talks", people=[ann.uid, bob.uid], name="all"))["id"]
    await bob.does("POST", f"talks/{talk}/messages", message="dinner?")
    await bob.posts("soup", group=group)
    await bob.does("PATCH", f"groups/{group}", description="soup first")
    gone = await bob.posts("never mind")
    await bob.does("DELETE", f"statuses/{gone}")
    await bob.does("PATCH", "users/me", bio="hungry")
    await settle(api, *live)
    for person, stream in zip(people, live, strict=True):
        async with await person.own(start) as replayed:
            await settle(api, replayed)
            assert replayed.events == [
                event for event in stream.events if event.get("status", {}).get("id") != gone or event["kind"] != "post"
            ]
            assert replayed.events
    await close(live)


async def test_one_can_ask_for_some_kinds(api: Api) -> None:
    """`kinds` narrows one's own stream; kinds that there are not, and filters of the other stream, are refused."""
    ann, bob = await persons(api, 2)
    await ann.follows(bob)
    async with await ann.own(kinds="message,follow") as some:
        await bob.posts("not asked for")
        await bob.follows(ann)
        talk = (await bob.does("POST", "talks", people=[ann.uid]))["id"]
        await bob.does("POST", f"talks/{talk}/messages", message="asked for")
        await settle(api, some)
        assert [kind for kind, _ in told(some)] == ["follow", "message"]
    for params, code, param in (
        ({"kinds": "post,nonsense"}, "invalid_parameter", "kinds"),
        ({"kinds": "suspend"}, "invalid_parameter", "kinds"),
        ({"track": "x"}, "unknown_parameter", "track"),
        ({"since": "x"}, "invalid_cursor", "since"),
    ):
        refused = await api.call("GET", "/v1/stream/user", token=mint(ann.uid), params=params)
        assert refused.error == (400, code, param)
    on_the_other = await api.call("GET", "/v1/stream", token=mint(ann.uid), params={"kinds": "message", "track": "x"})
    assert on_the_other.error == (400, "invalid_parameter", "kinds")


async def test_no_cursor_opens_a_door(api: Api) -> None:
    """A newcomer hears nothing of what was said in private before, whatever is asked."""
    ann, bob, newcomer = await persons(api, 3)
    start, term = await api.head(), word()
    await bob.follows(ann)
    await ann.protects()
    await ann.posts(term)
    group = (await bob.does("POST", "groups", name="g", kind="private"))["id"]
    status = await bob.posts(term, group=group)
    await bob.does("POST", f"statuses/{status}/comments", message=term)
    talk = (await ann.does("POST", "talks", people=[bob.uid]))["id"]
    await ann.does("POST", f"talks/{talk}/messages", message=term)
    opened = await ears({"newcomer": newcomer}, ann, term, start)
    kinds = "post,delete,like,unlike,comment,uncomment"
    opened["all kinds"] = await newcomer.hears(since=start, track=term, follow=f"{ann.uid},{bob.uid}", kinds=kinds)
    await settle(api, *opened.values())
    assert {name: told(consumer) for name, consumer in opened.items()} == {name: [] for name in opened}
    await close(opened.values())
