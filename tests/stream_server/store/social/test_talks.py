"""Talks: who is in them, who reads which messages, and read marks."""

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
from tests.stream_server.store.people import People, footprint, new_key
from tests.stream_server.store.scenes import ids, read_pages, refusal

ALL = PageRequest(200)
MISSING = (404, "not_found", "id")


async def begin(store: Store, uid: str, *others: str, name: str | None = None) -> str:
    talk, _ = await store.talks.open(uid, others, name, new_key())
    return str(json.loads(talk)["id"])


async def say(store: Store, uid: str, talk: str, message: str = "hello") -> str:
    return str(json.loads(await store.talks.send_message(uid, talk, message, new_key()))["id"])


def read(page: Page) -> list[Any]:
    return [json.loads(item) for item in page.items]


async def test_two_users_have_one_talk(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    made, new = await store.talks.open(ann, [bob, bob], "ours", new_key())
    answer = json.loads(made)
    assert new
    assert answer == {"id": answer["id"], "people": [ann, bob], "name": None, "created": answer["created"], "unread": 0}
    before = raw.dbsize()
    assert await store.talks.open(ann, [bob], None, new_key()) == (made, False)
    assert await store.talks.open(bob, [ann], None, new_key()) == (made, False)
    assert raw.dbsize() == before, "nothing is kept of them"
    assert ids(await store.talks.list_talks(ann, ALL)) == ids(await store.talks.list_talks(bob, ALL)) == [answer["id"]]
    assert raw.xlen("{core}:log") == 0


async def test_several_users_open_a_new_talk_each_time(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    first, second = await begin(store, ann, bob, carl, name='a "name"'), await begin(store, ann, carl, bob)
    talks = read(await store.talks.list_talks(carl, ALL))
    assert [(talk["id"], talk["people"], talk["name"]) for talk in talks] == [
        (second, [ann, carl, bob], None), (first, [ann, bob, carl], 'a "name"'),
    ]  # fmt: skip


async def test_concurrent_opening_makes_one_talk(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    opened = await asyncio.gather(
        *(store.talks.open(*((ann, [bob]) if i % 2 else (bob, [ann])), None, new_key()) for i in range(20))
    )
    assert len({json.loads(talk)["id"] for talk, _ in opened}) == 1
    assert sum(new for _, new in opened) == 1
    assert len(raw.keys("{core}:talk:*")) == len(raw.keys("{core}:pair:*")) == 1


async def test_unknown_suspended_and_blocked_users_cannot_be_talked_to(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob, carl, dora, eve = await people.users(5)
    await store.blocks.block(ann, bob, new_key())
    await store.blocks.block(carl, ann, new_key())
    raw.hset(f"{{core}}:user:{dora}", "suspended", "1")
    before = footprint(raw)
    for other in (bob, carl, dora, "1"):
        for others in ([other], [eve, other]):
            opening = store.talks.open(ann, others, None, new_key())
            assert await refusal(opening) == (404, "not_found", "people")
    for others in ([ann], [eve, ann], []):
        opening = store.talks.open(ann, others, None, new_key())
        assert await refusal(opening) == (400, "invalid_parameter", "people")
    assert footprint(raw) == before


async def test_a_message_is_logged_for_the_members_and_read_as_logged(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    sent = await store.talks.send_message(bob, talk, 'line\n"two" ünï', new_key())
    answer = json.loads(sent)
    made = {"id": answer["id"], "posted": answer["posted"]}
    assert answer == {**made, "talk": talk, "uid": bob, "login": "u1", "message": 'line\n"two" ünï'}
    (entry,) = await store.log.read(LOG_START, 10)
    assert (entry.kind, entry.audience) == ("message", f"users:{ann},{bob},{carl}")
    assert entry.body == b'{"wire":{"message":%b}}' % sent
    for uid in (ann, bob, carl):
        assert (await store.talks.list_messages(uid, talk, ALL)).items == [sent]
        assert await store.talks.get_message(uid, talk, answer["id"]) == sent
        assert json.loads(await store.talks.get(uid, talk))["last_message"] == answer


async def test_messages_are_read_by_members_only(store: Store, people: People, raw: "redis.Redis") -> None:
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
            store.talks.send_message(outsider, talk, "x", new_key()),
            store.talks.mark_read(outsider, talk, message, new_key()),
        ):
            assert (await refusal(change))[0] == 404
        assert footprint(raw) == before
    assert ids(await store.talks.list_talks(carl, ALL)) == [theirs]
    assert await refusal(store.talks.get_message(carl, theirs, message)) == (404, "not_found", "message")
    assert await refusal(store.talks.mark_read(carl, theirs, message, new_key())) == MISSING
    assert await store.statuses.get_many(carl, [message]) == []


@pytest.mark.parametrize("blocker", [0, 1])
async def test_a_block_hides_messages_and_refuses_new_ones(
    store: Store, people: People, raw: "redis.Redis", blocker: int
) -> None:
    pair = ann, bob = await people.users(2)
    talk = await begin(store, ann, bob)
    first, second = await say(store, ann, talk), await say(store, bob, talk)
    await store.blocks.block(pair[blocker], pair[1 - blocker], new_key())
    before = footprint(raw)
    for uid in pair:
        assert await refusal(store.talks.send_message(uid, talk, "x", new_key())) == MISSING
    assert footprint(raw) == before
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [first]
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [second]
    assert await refusal(store.talks.get_message(ann, talk, second)) == (404, "not_found", "message")
    assert await refusal(store.talks.mark_read(ann, talk, second, new_key())) == MISSING
    assert json.loads(await store.talks.get(ann, talk))["last_message"]["id"] == first
    await store.blocks.unblock(pair[blocker], pair[1 - blocker], new_key())
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [second, first]
    await say(store, bob, talk)


async def test_a_block_among_several_hides_messages_in_both_directions(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    talk = await begin(store, ann, bob, carl)
    await store.blocks.block(bob, carl, new_key())
    await store.mutes.mute(carl, ann, new_key())
    sent = {uid: await say(store, uid, talk) for uid in (ann, bob, carl)}
    assert ids(await store.talks.list_messages(ann, talk, ALL)) == [sent[carl], sent[bob], sent[ann]]
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [sent[bob], sent[ann]]
    assert ids(await store.talks.list_messages(carl, talk, ALL)) == [sent[carl], sent[ann]]
    answer = json.loads(await store.talks.get(bob, talk))
    assert (answer["last_message"]["id"], answer["unread"]) == (sent[bob], 0)
    assert json.loads(await store.talks.get(ann, talk))["unread"] == 2


async def test_messages_of_a_protected_user_are_read_by_members(store: Store, people: People) -> None:
    ann, bob = await people.users(2)
    await store.users.update(ann, {"protected": True}, new_key())
    talk = await begin(store, ann, bob)
    message = await say(store, ann, talk)
    assert ids(await store.talks.list_messages(bob, talk, ALL)) == [message]


async def test_messages_of_a_suspended_user_are_hidden(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob, carl = await people.users(3)
    talk, other = await begin(store, ann, bob, carl), await begin(store, ann, bob)
    await say(store, bob, talk)
    mine = await say(store, ann, talk)
    raw.hset(f"{{core}}:user:{bob}", "suspended", "1")
    raw.zadd("{core}:suspended", {bob: 1})
    assert ids(await store.talks.list_messages(carl, talk, ALL)) == [mine]
    assert await refusal(store.talks.send_message(ann, other, "x", new_key())) == MISSING
    before = footprint(raw)
    for refused in (
        store.talks.send_message(bob, talk, "x", new_key()),
        store.talks.mark_read(bob, talk, mine, new_key()),
        store.talks.open(bob, [ann], None, new_key()),
    ):
        with pytest.raises(Forbidden) as caught:
            await refused
        assert caught.value.error_code == "suspended"
    assert footprint(raw) == before
    await say(store, ann, talk)


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


async def test_talks_are_listed_by_their_latest_message(store: Store, people: People) -> None:
    ann, *others = await people.users(6)
    talks = [await begin(store, ann, other) for other in others]
    await say(store, others[1], talks[1])
    last = await say(store, ann, talks[3])
    expected = [talks[3], talks[1], talks[4], talks[2], talks[0]]
    assert ids(await store.talks.list_talks(ann, ALL)) == expected
    pages = await read_pages(lambda request: store.talks.list_talks(ann, request), 2)
    assert [talk for page in pages for talk in ids(page)] == expected
    (answer,) = read(await store.talks.list_talks(others[3], ALL))
    assert (answer["id"], answer["last_message"]["id"], answer["unread"]) == (talks[3], last, 1)


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


async def test_a_repeated_request_gives_the_first_answer_after_a_change(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    ann, bob = await people.users(2)
    opening, saying = IdempotencyKey.from_client(ann, "k", b"talk"), IdempotencyKey.from_client(ann, "m", b"message")
    opened = await store.talks.open(ann, [bob], None, opening)
    talk = json.loads(opened[0])["id"]
    sent = await store.talks.send_message(ann, talk, "hello", saying)
    before = footprint(raw)
    assert await store.talks.open(ann, [bob], None, opening) == opened
    assert await store.talks.send_message(ann, talk, "hello", saying) == sent
    assert footprint(raw) == before


async def test_concurrent_messages_are_all_read_in_log_order(store: Store, people: People) -> None:
    users = await people.users(5)
    talk = await begin(store, *users)
    await asyncio.gather(*(say(store, users[i % 5], talk, str(i)) for i in range(100)))
    answer = [json.loads(entry.body)["wire"]["message"] for entry in await store.log.read(LOG_START, 1000)]
    assert len(answer) == 100
    for uid in users:
        assert read(await store.talks.list_messages(uid, talk, ALL)) == answer[::-1]
        assert [one["last_message"] for one in read(await store.talks.list_talks(uid, ALL))] == answer[-1:]
