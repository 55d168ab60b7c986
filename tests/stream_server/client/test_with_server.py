"""The client with a real server: every call, and every kind of event as a typed object."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from stream_server.client import Backoff, Client, Event, LogIn, Page, Post, RequestRefused, Stream
from stream_server.client.connection import Framing
from stream_server.client.sync import Client as BlockingClient
from stream_server.wire.messages import EVENT_TYPES
from tests.contracts.stream_messages import message_violations
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE, eventually

PASSWORD = "correct horse"
SWIFT = Backoff(initial_seconds=0.02, max_seconds=0.2)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with Ada and Bob, whose tokens live for six seconds."""
    with Server(tmp_path_factory.mktemp("client"), "--token-ttl-seconds", "6", "--heartbeat-seconds", "0.2") as server:
        with BlockingClient(server.address) as anybody:
            for login in ("ada", "bob"):
                anybody.sign_up(login, login.title(), f"{login}@example.org", PASSWORD)
        yield server.address


@pytest.fixture
async def people(address: str) -> AsyncIterator[tuple[Client, Client]]:
    """Ada and Bob, each logged in by password."""
    ada, bob = (Client(address, LogIn(login, PASSWORD)) for login in ("ada", "bob@example.org"))
    async with ada, bob:
        yield ada, bob


async def collect(client: Client, received: list[Event]) -> None:
    async for event in client.user_stream(control=True):
        received.append(event)  # noqa: PERF401 - it is looked at meanwhile


async def act(ada: Client, bob: Client) -> None:
    """Let the two do everything that the client has a call for."""
    me, other = await ada.me(), await ada.user_by_login("BOB")
    assert (await ada.user(other.id)).login == "bob"
    assert (await ada.follow(other.id)).following
    await bob.follow(me.id)
    status = await bob.post("good morning @ada #tea", location=(13.4, 52.5), place="Berlin", body={"meta": {"a": 1}})
    reply, quote = await ada.reply(status.id, "hello"), await ada.quote(status.id, "look")
    repost = await bob.repost(reply.id)
    assert ((await bob.status(repost.id)).text, repost.message) == ("hello", "")
    assert (await ada.like(status.id)).likes == 1
    assert not (await ada.unlike(status.id)).liked
    await ada.favorite(status.id)
    assert [each.id for each in (await ada.favorites()).items] == [status.id]
    await ada.unfavorite(status.id)
    comment = await bob.comment(reply.id, "a comment")
    assert (await ada.comments(reply.id)).items == (comment,)
    await bob.delete_comment(comment.id)
    await ada.delete(quote.id)
    assert {each.id for each in (await ada.home()).items} == {status.id, reply.id, repost.id}
    assert [each.id for each in (await ada.mentions()).items] == [status.id]
    assert (await ada.posts(other.id, count=1)).next is not None
    assert (await ada.change_profile(bio="tea")).bio == "tea"
    await share(ada, bob, me.id, other.id)
    notices = await ada.notifications()
    assert {"mention", "follow"} <= {each.kind for each in notices.items}
    assert notices.unread
    await ada.mark_notifications_read(notices.items[0].id)
    assert (await ada.notifications()).unread == 0
    assert [each.login for each in (await ada.followers(me.id)).items] == ["bob"]
    assert [each.login for each in (await ada.following(me.id)).items] == ["bob"]
    for call in (ada.mute, ada.unmute, ada.block, ada.unblock, ada.unfollow):
        await call(other.id)


async def share(ada: Client, bob: Client, me: str, other: str) -> None:
    """Use lists, groups, talks and rules."""
    shelf = await ada.create_list("bakers", private=True)
    assert (await ada.add_to_list(shelf.id, other)).members == 1
    assert isinstance(await ada.list_members(shelf.id), Page)
    await eventually(lambda: has_posts(ada, shelf.id), what="the list's timeline")
    assert [each.id for each in (await ada.lists(me)).items] == [shelf.id]
    await ada.remove_from_list(shelf.id, other)
    await ada.delete_list(shelf.id)
    club = await ada.create_group("club", "public")
    await bob.join_group(club.id)
    await bob.post("in the club", group=club.id)
    assert len((await ada.group_posts(club.id)).items) == 1
    assert len((await ada.group_members(club.id)).items) == 2
    assert [each.id for each in (await bob.groups()).items] == [club.id]
    await bob.leave_group(club.id)
    await ada.add_to_group(club.id, "me")
    await ada.delete_group(club.id)
    talk = await bob.open_talk([me])
    message = await bob.send(talk.id, "a word")
    assert (await ada.messages(talk.id)).items == (message,)
    assert (await ada.talks()).items[0].last_message == message
    await ada.mark_talk_read(talk.id, message.id)
    (rule,) = await ada.save_rules({"drinks": "tea -is:reply"})
    assert await ada.rules() == (rule,)
    changed = await ada.change_rule(rule.id or "", "coffee", tag="drinks")
    assert (changed.id, changed.rule, await ada.rules()) == (rule.id, "coffee", (changed,))
    assert (await ada.explain_rule("tea", {"message": "a cup of tea"})).matched
    assert (await ada.preview_rule("#tea", 5)).matched == 1
    tried = await ada.preview_rule("#tea coffee", 5, near_misses=True)
    assert (tried.matched, tried.near_missed, [miss.missing for miss in tried.near_misses]) == (0, 1, ["coffee"])
    assert "from" in {one.name for one in await ada.rule_operators()}
    counted = await ada.count_rules({"drinks": "#tea"}, timedelta(minutes=5), every="day")
    assert [(one.tag, one.count) for bucket in counted.buckets for one in bucket.counts] == [("drinks", 1)]
    assert await ada.delete_rules([rule.id or ""]) == (rule.id,)


async def has_posts(client: Client, list_id: str) -> bool:
    return bool((await client.list_posts(list_id)).items)


@pytest.mark.extended
async def test_every_call_and_every_event(people: tuple[Client, Client]) -> None:
    """All events are typed. The stream is prolonged in place while its tokens end after six seconds."""
    ada, bob = people
    received: list[Event] = []
    task = asyncio.create_task(collect(ada, received))
    await eventually(lambda: received, what="hello")
    await act(ada, bob)
    expected = {"post", "delete", "follow", "unfollow", "like", "unlike", "comment", "uncomment", "user_update"}
    expected |= {"message", "notification", "list_create", "list_add", "list_remove", "list_delete", "group_create"}
    expected |= {"group_join", "group_leave", "block", "unblock", "mute", "unmute"}
    await eventually(lambda: expected <= {event.kind for event in received}, what="all kinds")
    (stream,) = await open_streams(ada)
    started = stream["expires"]
    await eventually(lambda: later_than(ada, started), what="a prolonged stream")
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])
    assert [event.kind for event in received].count("hello") == 1, "one connection for the whole time"
    assert [event.kind for event in received if type(event) is not EVENT_TYPES[event.kind]] == []
    assert all(event.data["kind"] == event.kind for event in received)
    assert [wrong for event in received for wrong in message_violations(event.data)] == []
    await check_poll(ada)


async def test_an_account_is_deleted_by_its_password_alone(address: str) -> None:
    async with Client(address) as anybody:
        uid = (await anybody.sign_up("cleo", "Cleo", "cleo@example.org", PASSWORD)).id
        async with Client(address, LogIn("cleo", PASSWORD)) as cleo:
            for password, code in ((None, "missing_parameter"), ("a wrong one", "wrong_password")):
                with pytest.raises(RequestRefused, match=code):
                    await cleo.delete_account(password)
            assert (await cleo.me()).id == uid
            for _ in range(2):
                await cleo.delete_account(PASSWORD)
            with pytest.raises(RequestRefused, match="account_deleted"):
                await cleo.me()
        with pytest.raises(RequestRefused, match="401"):
            await anybody.log_in("cleo", PASSWORD)


@pytest.mark.extended
async def test_the_filters_of_an_open_stream_change(people: tuple[Client, Client]) -> None:
    """By WebSocket on the same connection, otherwise on another one. A refused update leaves the filters alone."""
    ada, _ = people
    framings: tuple[Framing, ...] = ("sse", "ndjson", "websocket")
    for framing in framings:
        first, second = f"tea{framing}", f"coffee{framing}"
        stream = ada.stream(track=first, kinds="post", framing=framing, control=True, backoff=SWIFT)
        await wait_for(stream, "hello")
        await ada.post(first)
        assert (await wait_for(stream, "post")).data["status"]["message"] == first
        await stream.update(track=second, kinds="post")
        await wait_for(stream, "effective" if framing == "websocket" else "hello")
        await ada.post(first)
        await ada.post(second)
        assert (await wait_for(stream, "post")).data["status"]["message"] == second
        assert stream.connections == (1 if framing == "websocket" else 2)
        await stream.update(sample=101)
        with pytest.raises(RequestRefused, match="sample"):
            await wait_for(stream, "post")
        await ada.post(second)
        assert (await wait_for(stream, "post")).data["status"]["message"] == second
        await stream.close()


@pytest.mark.extended
async def test_a_refused_websocket_names_the_parameter(people: tuple[Client, Client]) -> None:
    """The answer to a refused handshake is asked for once more, because its body is lost."""
    ada, _ = people
    with pytest.raises(RequestRefused) as refused:
        await anext(ada.stream(sample=101, framing="websocket"))
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "invalid_parameter", "sample")
    async with Client(ada.url, "nonsense") as nobody:
        with pytest.raises(RequestRefused, match="invalid_token"):
            await anext(nobody.stream(track="x", framing="websocket"))


async def wait_for(stream: Stream, kind: str) -> Event:
    """Return the next event of this kind, and skip others."""
    async with asyncio.timeout(PATIENCE):
        while (event := await anext(stream)).kind != kind:
            pass
    return event


async def open_streams(client: Client) -> list[dict[str, str]]:
    found: list[dict[str, str]] = (await client.request("GET", "/v1/streams"))["streams"]
    return found


async def later_than(client: Client, expires: str) -> bool:
    return [stream["expires"] > expires for stream in await open_streams(client)] == [True]


async def check_poll(client: Client) -> None:
    """Long polling yields the same, and a refusal names the parameter."""
    poll = client.poll(track="#tea", since=timedelta(minutes=5), wait=0, explain=True)
    event = await anext(poll)
    assert isinstance(event, Post)
    (span,) = event.spans
    assert event.status.message[slice(*span)].lower() in {"tea", "#tea"}
    with pytest.raises(RequestRefused, match="sample") as refused:
        await anext(client.stream(sample=101))
    assert refused.value.param == "sample"
