"""Talks: who is in them, who reads what, and how far it was read."""

import asyncio
import json
from typing import Any

import pytest
import redis

from stream_server.errors import Forbidden
from stream_server.events.position import LOG_START
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, footprint
from tests.stream_server.store.scenes import ids, refusal

ALL = PageRequest(200)
MISSING = (404, "not_found", "id")


async def begin(store: Store, uid: str, *others: str, name: str | None = None) -> str:
    """The id of a talk."""
    talk, _ = await store.talks.open(uid, others, name, IdempotencyKey.generate())
    return str(json.loads(talk)["id"])


async def say(store: Store, uid: str, talk: str, message: str = "hello") -> str:
    """The id of a new message."""
    return str(json.loads(await store.talks.send_message(uid, talk, message, IdempotencyKey.generate()))["id"])


def read(page: Page) -> list[Any]:
    """The items of a page, decoded."""
    return [json.loads(item) for item in page.items]


async def test_two_people_have_one_talk(store: Store, people: People, raw: "redis.Redis") -> None:
    """Whoever opens it, however often, with or without a name; both have it."""
    ann, bob = await people.users(2)
    made, new = await store.talks.open(ann, [bob, bob], "ours", IdempotencyKey.generate())
    told = json.loads(made)
    assert new
    assert told == {"id": told["id"], "people": [ann, bob], "name": None, "created": told["created"], "unread": 0}
    before = raw.dbsize()
    assert await store.talks.open(ann, [bob], None, IdempotencyKey.generate()) == (made, False)
    assert await store.talks.open(bob, [ann], None, IdempotencyKey.generate()) == (made, False)
    assert raw.dbsize() == before + 2  # the request keys of these
    assert ids(await store.talks.list_talks(ann, ALL)) == ids(await store.talks.list_talks(bob, ALL)) == [told["id"]]
    assert raw.xlen("{core}:log") == 0


async def test_several_people_have_as_many_talks_as_they_open(store: Store, people: People) -> None:
    """Each is a new one, with its own name."""
    ann, bob, carl = await people.users(3)
    first, second = await begin(store, ann, bob, carl, name='a "name"'), await begin(store, ann, carl, bob)
    talks = read(await store.talks.list_talks(carl, ALL))
    assert [(talk["id"], talk["people"], talk["name"]) for talk in talks] == [
        (second, [ann, carl, bob], None), (first, [ann, bob, carl], 'a "name"'),
    ]  # fmt: skip


async def test_two_who_open_their_talk_at_once_have_one(store: Store, people: People, raw: "redis.Redis") -> None:
    """Twenty tasks from both sides: one is told that it is new."""
    ann, bob = await people.users(2)
    opened = await asyncio.gather(
        *(
            store.talks.open(*((ann, [bob]) if i % 2 else (bob, [ann])), None, IdempotencyKey.generate())
            for i in range(20)
        )
    )
    assert len({json.loads(talk)["id"] for talk, _ in opened}) == 1
    assert sum(new for _, new in opened) == 1
    assert len(raw.keys("{core}:talk:*")) == len(raw.keys("{core}:pair:*")) == 1


async def test_who_cannot_be_talked_to(store: Store, people: People, raw: "redis.Redis") -> None:
    """The unknown, the suspended, blocks either way: 404, also among others; oneself and nobody: 400."""
    ann, bob, carl, dora, eve = await people.users(5)
    await store.blocks.block(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(carl, ann, IdempotencyKey.generate())
    raw.hset(f"{{core}}:user:{dora}", "suspended", "1")
    before = footprint(raw)
    for other in (bob, carl, dora, "1"):
        for others in ([other], [eve, other]):
            opening = store.talks.open(ann, others, None, IdempotencyKey.generate())
            assert await refusal(opening) == (404, "not_found", "people")
    for others in ([ann], [eve, ann], []):
        opening = store.talks.open(ann, others, None, IdempotencyKey.generate())
        assert await refusal(opening) == (400, "invalid_parameter", "people")
    assert footprint(raw) == before


async def test_a_message_is_told_to_those_in_the_talk(store: Store, people: People) -> None:
    """The answer is what is on the log and what is read, byte for byte."""
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    sent = await store.talks.send_message(bob, talk, 'line\n"two" ünï', IdempotencyKey.generate())
    told = json.loads(sent)
    made = {"id": told["id"], "posted": told["posted"]}
    assert told == {**made, "talk": talk, "uid": bob, "login": "u1", "message": 'line\n"two" ünï'}
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("message", f"users:{ann},{bob},{carl}")
    assert entry.body == b'{"wire":{"message":%b}}' % sent
    for uid in (ann, bob, carl):
        assert (await store.talks.list_messages(uid, talk, ALL)).items == [sent]
        assert await store.talks.get_message(uid, talk, told["id"]) == sent
        assert json.loads(await store.talks.get(uid, talk))["last_message"] == told


async def test_messages_are_read_by_those_in_the_talk_only(store: Store, people: People, raw: "redis.Redis") -> None:
    """By no door of the store does anybody else get at a talk, and nothing is changed by trying."""
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob)
    message = await say(store, ann, talk)
    theirs = await begin(store, carl, ann)
    for outsider in (carl, "1"):
        before = footprint(raw)
        for refused in (
            store.talks.get(outsider, talk),
            store.talks.list_messages(outsider, talk, ALL),
            store.talks.get_message(outsider, talk, message),
        ):
            assert await refusal(refused) == MISSING
        for change in (
            store.talks.send_message(outsider, talk, "x", IdempotencyKey.generate()),
            store.talks.mark_read(outsider, talk, message, IdempotencyKey.generate()),
        ):
            assert (await refusal(change))[0] == 404
        assert footprint(raw) == before
    assert ids(await store.talks.list_talks(carl, ALL)) == [theirs]
    assert await refusal(store.talks.get_message(carl, theirs, message)) == (404, "not_found", "message")
    assert await refusal(store.talks.mark_read(carl, theirs, message, IdempotencyKey.generate())) == MISSING
    assert await store.statuses.get_many(carl, [message]) == []


@pytest.mark.parametrize("blocker", [0, 1])
async def test_two_who_block_talk_no_more(store: Store, people: People, raw: "redis.Redis", blocker: int) -> None:
    """Neither can write, nor reads what the other wrote; once the block is lifted, all is there again."""
    pair = ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    first, second = await say(store, ann, talk), await say(store, bob, talk)
    await store.blocks.block(pair[blocker], pair[1 - blocker], IdempotencyKey.generate())
    before = footprint(raw)
    for uid in pair:
        assert await refusal(store.talks.send_message(uid, talk, "x", IdempotencyKey.generate())) == MISSING
    assert footprint(raw) == before
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [first]
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [second]
    assert await refusal(store.talks.get_message(ann, talk, second)) == (404, "not_found", "message")
    assert await refusal(store.talks.mark_read(ann, talk, second, IdempotencyKey.generate())) == MISSING
    assert json.loads(await store.talks.get(ann, talk))["last_message"]["id"] == first
    await store.blocks.unblock(pair[blocker], pair[1 - blocker], IdempotencyKey.generate())
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [second, first]
    await say(store, bob, talk)


async def test_among_several_people_who_block_do_not_read_each_other(store: Store, people: People) -> None:
    """The others read all; what is hidden is neither last nor unread; who is muted is read still."""
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    await store.blocks.block(bob, carl, IdempotencyKey.generate())
    await store.mutes.mute(carl, ann, IdempotencyKey.generate())
    sent = {uid: await say(store, uid, talk) for uid in (ann, bob, carl)}
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [sent[carl], sent[bob], sent[ann]]
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [sent[bob], sent[ann]]
    assert ids(await store.talks.list_messages(carl, talk, ALL)) == [sent[carl], sent[ann]]
    told = json.loads(await store.talks.get(bob, talk))
    assert (told["last_message"]["id"], told["unread"]) == (sent[bob], 0)
    assert json.loads(await store.talks.get(ann, talk))["unread"] == 2


async def test_a_protected_author_is_read_by_those_in_the_talk(store: Store, people: People) -> None:
    """A message is written for them, whoever follows."""
    ann, bob = await people.users(2)
    await store.users.update(ann, {"protected": True}, IdempotencyKey.generate())
    talk = await begin(store, ann, bob)
    message = await say(store, ann, talk)
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [message]


async def test_what_a_suspended_user_wrote_is_hidden(store: Store, people: People, raw: "redis.Redis") -> None:
    """And nobody writes to them alone; they themselves write nothing."""
    ann, bob, carl = await people.users(3)
    talk, other = await begin(store, ann, bob, carl), await begin(store, ann, bob)
    await say(store, bob, talk)
    mine = await say(store, ann, talk)
    raw.hset(f"{{core}}:user:{bob}", "suspended", "1")
    assert ids(await store.talks.list_messages(carl, talk, ALL)) == [mine]
    assert await refusal(store.talks.send_message(ann, other, "x", IdempotencyKey.generate())) == MISSING
    before = footprint(raw)
    for refused in (
        store.talks.send_message(bob, talk, "x", IdempotencyKey.generate()),
        store.talks.mark_read(bob, talk, mine, IdempotencyKey.generate()),
        store.talks.open(bob, [ann], None, IdempotencyKey.generate()),
    ):
        with pytest.raises(Forbidden) as caught:
            await refused
        assert caught.value.error_code == "suspended"
    assert footprint(raw) == before
    await say(store, ann, talk)


async def test_the_read_mark_only_goes_forward(store: Store, people: People) -> None:
    """Unread is what stands above it; to write is to have read; what is not in the talk is no mark."""
    ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    first, second, third = [await say(store, ann, talk) for _ in range(3)]

    async def unread(uid: str) -> int:
        told: int = json.loads(await store.talks.get(uid, talk))["unread"]
        return told

    assert (await unread(ann), await unread(bob)) == (0, 3)
    for message, mark, left in ((second, second, 1), (first, second, 1), (third, third, 0), (second, third, 0)):
        told = json.loads(await store.talks.mark_read(bob, talk, message, IdempotencyKey.generate()))
        assert told == {"read": mark, "unread": left}
        assert await unread(bob) == left
    assert await refusal(store.talks.mark_read(bob, talk, "1", IdempotencyKey.generate())) == MISSING
    assert await refusal(store.talks.mark_read(bob, talk, talk, IdempotencyKey.generate())) == MISSING
    await say(store, bob, talk)
    assert (await unread(ann), await unread(bob)) == (1, 0)
    await say(store, ann, talk)
    assert (await unread(ann), await unread(bob)) == (0, 1)


async def test_unread_is_counted_to_a_hundred(store: Store, people: People) -> None:
    """A talk that nobody reads costs no more to show."""
    ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    for _ in range(103):
        await say(store, ann, talk)
    assert json.loads(await store.talks.get(bob, talk))["unread"] == 100


async def test_talks_are_listed_by_their_latest_message(store: Store, people: People) -> None:
    """For all who are in them; one without a message stands where it was opened; pieces fit together."""
    ann, *others = await people.users(6)
    talks = [await begin(store, ann, other) for other in others]
    await say(store, others[1], talks[1])
    last = await say(store, ann, talks[3])
    expected = [talks[3], talks[1], talks[4], talks[2], talks[0]]
    assert ids(await store.talks.list_talks(ann, ALL)) == expected
    seen, cursor = [], None
    while True:
        page = await store.talks.list_talks(ann, PageRequest(2, before=cursor))
        seen += ids(page)
        cursor = page.next
        if cursor is None:
            break
    assert seen == expected
    (told,) = read(await store.talks.list_talks(others[3], ALL))
    assert (told["id"], told["last_message"]["id"], told["unread"]) == (talks[3], last, 1)


async def test_messages_are_paged_both_ways(store: Store, people: People) -> None:
    """Newest first, none twice and none left out; a cursor of another talk is none of this one."""
    ann, bob, carl = await people.users(3)
    talk, other = await begin(store, ann, bob), await begin(store, ann, carl)
    sent = [await say(store, source, talk) for source in (ann, bob) * 5][::-1]
    first = await store.talks.list_messages(ann, talk, PageRequest(4))
    second = await store.talks.list_messages(ann, talk, PageRequest(4, before=first.next))
    assert ids(first) + ids(second) == sent[:8]
    assert ids(await store.talks.list_messages(ann, talk, PageRequest(4, after=second.prev))) == sent[:4]
    stolen = store.talks.list_messages(ann, other, PageRequest(4, before=first.next))
    assert await refusal(stolen) == (400, "invalid_cursor", "before")


async def test_the_same_request_is_one_message(store: Store, people: People, raw: "redis.Redis") -> None:
    """And gives the same bytes; so does opening, whose second answer still says that it was new."""
    ann, bob = await people.users(2)
    opening, saying = IdempotencyKey.from_client(ann, "k", b"talk"), IdempotencyKey.from_client(ann, "m", b"message")
    opened = await store.talks.open(ann, [bob], None, opening)
    talk = json.loads(opened[0])["id"]
    sent = await store.talks.send_message(ann, talk, "hello", saying)
    before = footprint(raw)
    assert await store.talks.open(ann, [bob], None, opening) == opened
    assert await store.talks.send_message(ann, talk, "hello", saying) == sent
    assert footprint(raw) == before


async def test_twenty_who_write_at_once_are_all_read(store: Store, people: People) -> None:
    """The messages are those of the log, in its order, and each person's list of talks stands at the last."""
    users = await people.users(5)
    talk = await begin(store, *users)
    await asyncio.gather(*(say(store, users[i % 5], talk, str(i)) for i in range(100)))
    told = [json.loads(entry.body)["wire"]["message"] for entry in await store.log.read(LOG_START, 1000)]
    assert len(told) == 100
    for uid in users:
        assert read(await store.talks.list_messages(uid, talk, ALL)) == told[::-1]
        assert [one["last_message"] for one in read(await store.talks.list_talks(uid, ALL))] == told[-1:]
