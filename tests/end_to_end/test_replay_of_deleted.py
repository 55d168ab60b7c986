"""A replay shows nothing that was deleted since, and an `uncomment` reaches the clients that received the comment."""

from typing import Any

from tests.end_to_end.api import Api, mint
from tests.end_to_end.consumer import Consumer
from tests.end_to_end.people import Person, close, create_people, received, settle, word

KINDS = "post,delete,like,unlike,comment,uncomment"


async def _deeds(author: Person, other: Person, term: str) -> tuple[str, list[str]]:
    """Create a status with a like and two comments. Returns the ids of the status and of the comments."""
    status = await author.post(f"status {term}")
    await other.request("PUT", f"users/me/likes/{status}")
    said = [(await other.request("POST", f"statuses/{status}/comments", message=f"{term} {n}"))["id"] for n in range(2)]
    return status, said


async def _replays(people: tuple[Person, ...], start: str, term: str) -> list[Consumer]:
    """Open replays: each person's own stream, a stream by term, and the firehose."""
    found = [await person.own_stream(start) for person in people]
    found.append(await people[0].stream(since=start, track=term, kinds=KINDS))
    found.append(await people[0].api.stream({"firehose": "true", "since": start, "kinds": KINDS}))
    return found


def _wires(consumers: list[Consumer]) -> list[str]:
    return [str(event) for consumer in consumers for event in consumer.events]


async def test_no_replay_shows_a_deleted_status_or_its_reactions(api: Api) -> None:
    """Replayed likes, comments and notifications do not show a status that its author or an administrator deleted."""
    for removed in (False, True):
        author, other = people = tuple(await create_people(api, 2))
        start, term = await api.head(), word()
        status, said = await _deeds(author, other, term)
        await other.request("DELETE", f"comments/{said[0]}")
        if removed:
            report = await other.request("POST", "reports", status=status, reason="spam")
            admin = mint(api.admin, "admin")
            await api.done("PATCH", f"/v1/admin/reports/{report['id']}", token=admin, json={"outcome": "removed"})
        else:
            await author.request("DELETE", f"statuses/{status}")
        replays = await _replays(people, start, term)
        await settle(api, *replays)
        assert not [wire for wire in _wires(replays) if term in wire]
        for consumer in replays:
            assert received(consumer, *KINDS.split(",")) in (
                [("uncomment", said[0]), ("delete", status)],
                [("uncomment", said[0])],
            )
        ended: Any = replays[-1].events[0]["status"]
        assert ended == {"id": status, "uid": author.uid, "deleted": True}
        await close(replays)


async def test_no_replay_shows_a_deleted_comment(api: Api) -> None:
    """Neither the comment nor its notification is replayed. The other comment and the status are."""
    author, other = people = tuple(await create_people(api, 2))
    start, term = await api.head(), word()
    status, said = await _deeds(author, other, term)
    await author.request("DELETE", f"comments/{said[0]}")
    replays = await _replays(people, start, term)
    await settle(api, *replays)
    for consumer in replays:
        assert received(consumer, "comment", "uncomment") == [("comment", said[1]), ("uncomment", said[0])]
    assert not [wire for wire in _wires(replays) if f"{term} 0" in wire]
    notices = [event["notification"] for event in replays[0].events if event["kind"] == "notification"]
    assert [(notice["kind"], notice.get("comment", {}).get("id")) for notice in notices] == [
        ("like", None), ("comment", said[1])
    ]  # fmt: skip
    assert ("post", status) in received(replays[-1])
    await close(replays)


async def test_an_uncomment_reaches_the_streams_that_the_comment_matched(api: Api) -> None:
    """A stream that found the comment by a word gets its `uncomment`, also if the author is protected since.

    Others do not.
    """
    author, other, stranger = await create_people(api, 3)
    term = word()
    status = await author.post("words")
    live = await stranger.stream(track=term, kinds=KINDS)
    elsewhere = await stranger.stream(track=word(), kinds=KINDS)
    said = (await other.request("POST", f"statuses/{status}/comments", message=term))["id"]
    middle = await api.head()
    await other.protect()
    await other.request("DELETE", f"comments/{said}")
    late = await stranger.stream(since=middle, track=term, kinds=KINDS)
    await settle(api, live, elsewhere, late)
    assert received(live) == [("comment", said), ("uncomment", said)]
    assert received(late) == [("uncomment", said)]
    assert received(elsewhere) == []
    await close((live, elsewhere, late))


async def test_posts_of_a_suspended_user_are_replayed_only_after_reinstatement(api: Api) -> None:
    """The rule holds for older posts and comments, on personal and on impersonal streams."""
    author, other = people = tuple(await create_people(api, 2))
    await other.follow(author)
    start, term = await api.head(), word()
    status, _ = await _deeds(author, other, term)
    admin = mint(api.admin, "admin")
    await api.done("PUT", f"/v1/admin/suspensions/{author.uid}", token=admin)
    hidden = await _replays((other,), start, term)
    await settle(api, *hidden)
    assert not [wire for wire in _wires(hidden) if term in wire]
    await api.done("DELETE", f"/v1/admin/suspensions/{author.uid}", token=admin)
    shown = await _replays(people, start, term)
    await settle(api, *shown)
    for consumer in shown:
        assert ("post", status) in received(consumer)
    await close([*hidden, *shown])
