"""Talks: who is in them, who reads which messages, and read marks."""

import asyncio
import json
from typing import Any

import redis

from stream_server.events.position import LOG_START
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import ids, items_of, refusal

ALL = PageRequest(200)
MISSING = (404, "not_found", "id")


async def begin(store: Store, uid: str, *others: str, name: str | None = None) -> str:
    talk, _ = await store.talks.open(uid, others, name, new_key())
    return str(json.loads(talk)["id"])


async def say(store: Store, uid: str, talk: str, message: str = "hello") -> str:
    return str(json.loads(await store.talks.send_message(uid, talk, message, new_key()))["id"])


def read(page: Page) -> list[Any]:
    return [json.loads(item) for item in items_of(page)]


async def test_concurrent_opening_makes_one_talk(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    opened = await asyncio.gather(
        *(store.talks.open(*((ann, [bob]) if i % 2 else (bob, [ann])), None, new_key()) for i in range(20))
    )
    assert len({json.loads(talk)["id"] for talk, _ in opened}) == 1
    assert sum(new for _, new in opened) == 1
    assert len(raw.keys("{core}:talk:*")) == len(raw.keys("{core}:pair:*")) == 1


async def test_the_read_mark_only_rises(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    first, second, third = [await say(store, ann, talk) for _ in range(3)]

    async def unread(uid: str) -> int:
        answer: int = json.loads(await store.talks.get(uid, talk))["unread"]
        return answer

    assert (await unread(ann), await unread(bob)) == (0, 3)
    for message, mark, left in ((second, second, 1), (first, second, 1), (third, third, 0), (second, third, 0)):
        answer = json.loads(await store.talks.mark_read(bob, talk, message, new_key()))
        assert answer == {"read": mark, "unread": left}
        assert await unread(bob) == left
    assert await refusal(store.talks.mark_read(bob, talk, "1", new_key())) == MISSING
    assert await refusal(store.talks.mark_read(bob, talk, talk, new_key())) == MISSING
    await say(store, bob, talk)
    assert (await unread(ann), await unread(bob)) == (1, 0)
    await say(store, ann, talk)
    assert (await unread(ann), await unread(bob)) == (0, 1)


async def test_unread_messages_are_counted_to_a_hundred(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    for _ in range(103):
        await say(store, ann, talk)
    assert json.loads(await store.talks.get(bob, talk))["unread"] == 100


async def test_a_list_of_talks_reads_the_text_of_the_last_visible_messages_only(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """A user blocks one of two others, so the authors of many messages decide which is the last one."""
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    await say(store, carl, talk, "no text of this size")
    shown = [await say(store, bob, talk, "b" * 2000) for _ in range(20)][-1]
    hidden = [await say(store, carl, talk, "c" * 2000) for _ in range(20)]
    await store.blocks.block(ann, carl, new_key())
    before = sent_bytes(raw)
    (answer,) = read(await store.talks.list_talks(ann, ALL))
    assert (answer["last_message"]["id"], answer["unread"]) == (shown, 20)
    assert sent_bytes(raw) - before < len(hidden) * 2000 / 2


def sent_bytes(raw: Any) -> int:
    """Return how many bytes Redis has sent."""
    return int(raw.info("stats")["total_net_output_bytes"])


async def test_nobody_writes_to_the_other_of_two_after_a_block(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    talk, larger = await begin(store, ann, bob), await begin(store, ann, bob, carl)
    await store.blocks.block(ann, bob, new_key())
    for uid in (ann, bob):
        assert await refusal(store.talks.send_message(uid, talk, "hello", new_key())) == MISSING
        await say(store, uid, larger)


async def test_messages_are_paged_both_ways(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    talk, other = await begin(store, ann, bob), await begin(store, ann, carl)
    sent = [await say(store, source, talk) for source in (ann, bob) * 5][::-1]
    first = await store.talks.list_messages(ann, talk, PageRequest(4))
    second = await store.talks.list_messages(ann, talk, PageRequest(4, before=first.next))
    assert ids(first) + ids(second) == sent[:8]
    assert ids(await store.talks.list_messages(ann, talk, PageRequest(4, after=second.prev))) == sent[:4]
    stolen = store.talks.list_messages(ann, other, PageRequest(4, before=first.next))
    assert await refusal(stolen) == (400, "invalid_cursor", "before")


async def test_concurrent_messages_are_all_read_in_log_order(store: Store, people: People) -> None:
    users = await people.users(5)
    talk = await begin(store, *users)
    await asyncio.gather(*(say(store, users[i % 5], talk, str(i)) for i in range(100)))
    answer = [json.loads(entry.body)["wire"]["message"] for entry in await store.log.read(LOG_START, 1000)]
    assert len(answer) == 100
    for uid in users:
        assert read(await store.talks.list_messages(uid, talk, ALL)) == answer[::-1]
        assert [one["last_message"] for one in read(await store.talks.list_talks(uid, ALL))] == answer[-1:]


async def test_a_talk_is_not_marked_as_read_up_to_a_hidden_message(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    hidden = await say(store, bob, talk)
    await store.blocks.block(bob, ann, new_key())
    assert await refusal(store.talks.mark_read(ann, talk, hidden, new_key())) == MISSING
    assert json.loads(await store.talks.mark_read(carl, talk, hidden, new_key()))["read"] == hidden
