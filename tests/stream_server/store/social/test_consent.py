"""Strangers ask before they add somebody to a group or a talk; followed users need not."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.errors import Forbidden, NotFound, TooLarge
from stream_server.events.position import LOG_START
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.scripts import SizeLimits
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids


@pytest.fixture
async def asking(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, size_limits=SizeLimits(ask_strangers=True)) as store:
        yield store


async def group(store: Store, owner: str) -> str:
    return str(json.loads(await store.groups.create(owner, "readers", "private", "", new_key()))["id"])


async def members(store: Store, viewer: str, group_id: str) -> set[str]:
    return set(ids(await store.groups.list_members(viewer, group_id, PageRequest())))


async def invitations(store: Store, uid: str) -> list[str]:
    return ids(await store.groups.list_invitations(uid, PageRequest()))


async def kinds(store: Store) -> list[str]:
    return [entry.kind for entry in await store.log.read(LOG_START, 100)]


async def test_a_stranger_is_invited_and_joins_or_not(asking: Store) -> None:
    ann, bob, eve = await People(asking).users(3)
    readers = await group(asking, ann)
    for uid in (bob, eve):
        _, is_invited = await asking.groups.add_member(ann, readers, uid, new_key())
        assert is_invited
        assert await invitations(asking, uid) == [readers]
    assert await members(asking, ann, readers) == {ann}
    assert await kinds(asking) == ["group_create"], "the invited users hear nothing of the group"
    with pytest.raises(NotFound):
        await asking.groups.get(bob, readers)
    await asking.groups.join(bob, readers, new_key())
    await asking.groups.leave(eve, readers, new_key())
    assert await members(asking, bob, readers) == {ann, bob}
    assert [await invitations(asking, uid) for uid in (bob, eve)] == [[], []]
    with pytest.raises(NotFound):
        await asking.groups.join(eve, readers, new_key())


async def test_a_follower_is_a_member_at_once(asking: Store) -> None:
    ann, bob = await People(asking).users(2)
    readers = await group(asking, ann)
    await asking.follows.follow(bob, ann, new_key())
    _, is_invited = await asking.groups.add_member(ann, readers, bob, new_key())
    assert not is_invited
    assert await members(asking, bob, readers) == {ann, bob}


async def test_an_invitation_ends_with_its_group_or_by_its_owner(asking: Store) -> None:
    ann, bob = await People(asking).users(2)
    first, second = await group(asking, ann), await group(asking, ann)
    for group_id in (first, second):
        await asking.groups.add_member(ann, group_id, bob, new_key())
    assert await invitations(asking, bob) == [second, first]
    await asking.groups.remove_member(ann, first, bob, new_key())
    await asking.groups.delete(ann, second, new_key())
    assert await invitations(asking, bob) == []


async def test_invitations_are_bounded(asking: Store, raw: Any) -> None:
    ann, bob = await People(asking).users(2)
    raw.zadd(f"{{core}}:invitations:{bob}", {str(number): number for number in range(1, 1001)})
    with pytest.raises(TooLarge):
        await asking.groups.add_member(ann, await group(asking, ann), bob, new_key())


async def talk(store: Store, uid: str, *others: str) -> str:
    return str(json.loads((await store.talks.open(uid, others, None, new_key()))[0])["id"])


async def requests(store: Store, uid: str) -> list[str]:
    return ids(await store.talks.list_requests(uid, PageRequest()))


async def talks(store: Store, uid: str) -> list[str]:
    return ids(await store.talks.list_talks(uid, PageRequest()))


async def audiences(store: Store) -> list[str]:
    return [entry.audience for entry in await store.log.read(LOG_START, 100) if entry.kind == "message"]


async def test_a_stranger_writes_three_messages_that_nobody_is_told_of(asking: Store) -> None:
    ann, eve = await People(asking).users(2)
    made = await talk(asking, eve, ann)
    for text in ("one", "two", "three"):
        await asking.talks.send_message(eve, made, text, new_key())
    with pytest.raises(Forbidden) as refusal:
        await asking.talks.send_message(eve, made, "four", new_key())
    assert (refusal.value.error_code, refusal.value.param) == ("unanswered", "id")
    assert await audiences(asking) == [f"users:{eve}"] * 3
    assert (await talks(asking, ann), await requests(asking, ann)) == ([], [made])
    assert json.loads(await asking.talks.get(ann, made))["last_message"]["message"] == "three"


@pytest.mark.parametrize("by", ["reply", "accept"])
async def test_an_answer_accepts_the_talk(asking: Store, by: str) -> None:
    ann, bob = await People(asking).users(2)
    made = await talk(asking, bob, ann)
    await asking.talks.send_message(bob, made, "may I?", new_key())
    if by == "reply":
        await asking.talks.send_message(ann, made, "yes", new_key())
    else:
        await asking.talks.accept(ann, made, new_key())
    assert (await talks(asking, ann), await requests(asking, ann)) == ([made], [])
    for _ in range(5):
        await asking.talks.send_message(bob, made, "thanks", new_key())
    assert set((await audiences(asking))[-1].removeprefix("users:").split(",")) == {ann, bob}
    await asking.talks.refuse(ann, made, new_key())
    assert await talks(asking, ann) == [made], "an accepted talk stays"


async def test_a_refused_talk_is_gone_and_its_opener_stays_limited(asking: Store) -> None:
    ann, eve = await People(asking).users(2)
    made = await talk(asking, eve, ann)
    await asking.talks.send_message(eve, made, "one", new_key())
    await asking.talks.refuse(ann, made, new_key())
    assert (await talks(asking, ann), await requests(asking, ann)) == ([], [])
    with pytest.raises(NotFound):
        await asking.talks.get(ann, made)
    assert await talk(asking, eve, ann) == made
    for text in ("two", "three"):
        await asking.talks.send_message(eve, made, text, new_key())
    with pytest.raises(Forbidden):
        await asking.talks.send_message(eve, made, "four", new_key())
    assert await requests(asking, ann) == []
    assert await talk(asking, ann, eve) == made, "who refused may still write first"
    await asking.talks.send_message(ann, made, "well", new_key())
    assert await talks(asking, ann) == [made]


async def test_strangers_in_a_talk_of_several_hear_nothing_until_they_answer(asking: Store) -> None:
    ann, bob, carl = await People(asking).users(3)
    await asking.follows.follow(bob, ann, new_key())
    made = await talk(asking, ann, bob, carl)
    for _ in range(5):
        await asking.talks.send_message(ann, made, "hello", new_key())
    assert set((await audiences(asking))[-1].removeprefix("users:").split(",")) == {ann, bob}
    assert await requests(asking, carl) == [made]
