"""Strangers ask before they add somebody to a group or a talk; followed users need not."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stream_server.errors import Forbidden, NotFound, TooLarge
from stream_server.events.position import LOG_START
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.script_settings import SiteRules
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.scenes import ids, items_of


@pytest.fixture
async def asking(redis_url: str) -> AsyncIterator[Store]:
    async with open_store(redis_url, rules=SiteRules(ask_strangers=True)) as store:
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


async def shown(store: Store, uid: str, talk_id: str) -> list[str]:
    page = await store.talks.list_messages(uid, talk_id, PageRequest())
    return [json.loads(message)["message"] for message in items_of(page)][::-1]


async def test_an_accomplice_does_not_bring_a_stranger_more_messages(asking: Store) -> None:
    """Those who know each other may talk on. Before the stranger accepts, the first three messages are all."""
    ann, bob, eve = await People(asking).users(3)
    made = await talk(asking, eve, ann, bob)
    sent = [json.loads(await asking.talks.send_message(bob, made, "hi", new_key()))["id"]]
    sent += [json.loads(await asking.talks.send_message(eve, made, text, new_key()))["id"] for text in "abcdefghij"]
    assert await shown(asking, ann, made) == ["hi", "a", "b"]
    seen = json.loads(await asking.talks.get(ann, made))
    assert (seen["last_message"]["message"], seen["unread"]) == ("b", 3)
    assert json.loads(items_of(await asking.talks.list_requests(ann, PageRequest()))[0]) == seen
    late = sent[3]
    for refused in (asking.talks.get_message(ann, made, late), asking.talks.mark_read(ann, made, late, new_key())):
        with pytest.raises(NotFound):
            await refused
    assert json.loads(await asking.talks.get_message(ann, made, sent[2]))["message"] == "b"
    await asking.talks.accept(ann, made, new_key())
    assert await shown(asking, ann, made) == ["hi", *"abcdefghij"]


async def test_a_stranger_has_one_unanswered_talk_with_a_user(asking: Store) -> None:
    ann, bob, carl, eve = await People(asking).users(4)
    first = await talk(asking, eve, ann)
    for others in ((ann, bob), (ann, bob, carl), (carl, ann)):
        with pytest.raises(Forbidden) as refusal:
            await talk(asking, eve, *others)
        assert (refusal.value.error_code, refusal.value.param) == ("unanswered", "people")
    assert await talk(asking, eve, ann) == first, "the same talk may be asked for"
    assert await requests(asking, bob) == [], "a refused talk asks nobody"
    await asking.talks.refuse(ann, first, new_key())
    with pytest.raises(Forbidden):
        await talk(asking, eve, ann, bob)
    assert await talk(asking, ann, eve) == first, "who writes first after all, answers"
    second = await talk(asking, eve, ann, bob)
    assert await requests(asking, ann) == [second]
    await asking.talks.send_message(ann, second, "well", new_key())
    assert await talk(asking, eve, ann, carl)


async def test_an_owner_has_three_unanswered_invitations_of_a_user(asking: Store) -> None:
    ann, bob, eve = await People(asking).users(3)
    groups = [await group(asking, eve) for _ in range(4)]
    for group_id in groups[:3]:
        await asking.groups.add_member(eve, group_id, ann, new_key())
        assert (await asking.groups.add_member(eve, group_id, ann, new_key()))[1], "a repetition is no further one"
    with pytest.raises(Forbidden) as refusal:
        await asking.groups.add_member(eve, groups[3], ann, new_key())
    assert (refusal.value.error_code, refusal.value.param) == ("unanswered", "uid")
    await asking.groups.add_member(bob, await group(asking, bob), ann, new_key())
    await asking.groups.leave(ann, groups[0], new_key())
    assert (await asking.groups.add_member(eve, groups[3], ann, new_key()))[1]


@pytest.mark.parametrize("blocker", ["victim", "owner"])
async def test_a_block_ends_invitations_and_memberships_in_both_directions(asking: Store, blocker: str) -> None:
    """The owner of a group writes to its members and to those invited by its name."""
    ann, eve, carl = await People(asking).users(3)
    invited = [(owner, await group(asking, owner), other) for owner, other in ((eve, ann), (ann, eve), (carl, ann))]
    joined = [(owner, await group(asking, owner), other) for owner, other in ((eve, ann), (ann, eve), (carl, ann))]
    for owner, group_id, other in (*invited, *joined):
        await asking.groups.add_member(owner, group_id, other, new_key())
    for _, group_id, other in joined:
        await asking.groups.join(other, group_id, new_key())
    await asking.blocks.block(*((ann, eve) if blocker == "victim" else (eve, ann)), new_key())
    assert await invitations(asking, ann) == [invited[2][1]]
    assert await invitations(asking, eve) == []
    for owner, group_id, other in joined:
        assert await members(asking, owner, group_id) == ({owner, other} if owner == carl else {owner})
    await asking.groups.update(eve, joined[0][1], {"name": "Listen, Ann"}, new_key())
    (last,) = [entry for entry in await asking.log.read(LOG_START, 100) if entry.kind == "group_update"]
    assert joined[0][1] in last.audience
    assert "group_leave" in await kinds(asking), "her streams learn that the group is not hers any more"
    await asking.blocks.unblock(*((ann, eve) if blocker == "victim" else (eve, ann)), new_key())
    assert await invitations(asking, ann) == [invited[2][1]], "the end of a block brings nothing back"
    with pytest.raises(NotFound):
        await asking.groups.join(ann, invited[0][1], new_key())


async def test_nothing_of_a_blocked_or_suspended_stranger_waits(asking: Store) -> None:
    ann, eve, gus, root = await People(asking).users(4)
    for stranger in (eve, gus):
        opened = json.loads((await asking.talks.open(stranger, [ann, root], f"read this, {ann}", new_key()))[0])["id"]
        closed = await group(asking, stranger)
        await asking.groups.add_member(stranger, closed, ann, new_key())
        listing = json.loads(await asking.lists.create(stranger, "fools", "", False, new_key()))["id"]
        await asking.lists.add_member(stranger, listing, ann, new_key())
    await asking.blocks.block(ann, eve, new_key())
    await asking.suspensions.suspend(root, gus, new_key())
    assert (await requests(asking, ann), await invitations(asking, ann)) == ([], [])
    assert ids(await asking.lists.list_containing(ann, ann, PageRequest())) == []
    for refused in (
        asking.talks.get(ann, opened), asking.talks.accept(ann, opened, new_key()),
        asking.groups.join(ann, closed, new_key()),
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await refused
