"""The graph of a user for streams: each relation with its start, and the head of the log, in one step."""

import asyncio

import redis

from stream_server.events.position import LOG_START
from stream_server.hub.visibility.viewer import MAX_ENDED
from stream_server.store import keys
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import group


async def test_a_graph_has_every_relation_with_its_start(store: Store, raw: "redis.Redis") -> None:
    for number, relation in enumerate(("following", "blocks", "blockers", "mutes", "groups")):
        raw.zadd(keys.key_for(relation, "1"), {"2": 1_795_197_600_000 + number, "3": 1})
        raw.zadd(keys.key_for(relation, "9"), {"4": 1})
    raw.zadd(keys.key_for("ended", "1"), {"5-100": 400, "5-200": 300, "6-7": 8})
    viewer = await store.user_graphs.get_graph("1")
    assert viewer[:5] == tuple({"2": 1_795_197_600_000 + number, "3": 1} for number in range(5))
    assert viewer.ended == {("6", 7): 8, ("5", 200): 300, ("5", 100): 400}
    assert viewer.head == LOG_START


async def test_a_graph_has_the_begin_and_the_end_of_the_relations_that_ended_last(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """They end by an unfollow, a block, leaving a group, and the end of a group. Redis keeps the last 200."""
    ann, bob, carl, dave = await people.users(4)
    for uid in (bob, carl):
        await store.follows.follow(ann, uid, new_key())
    left, deleted = [await group(store, "public", dave, ann) for _ in range(2)]
    before = await store.user_graphs.get_graph(ann)
    ends = {}
    for other, end in (
        (bob, store.follows.unfollow(ann, bob, new_key())),
        (carl, store.blocks.block(carl, ann, new_key())),
        (left, store.groups.remove_member(ann, left, ann, new_key())),
        (deleted, store.groups.delete(dave, deleted, new_key())),
    ):
        await end
        ends[other] = (await store.log.head()).ms
    ended = (await store.user_graphs.get_graph(ann)).ended
    assert dict(ended.keys()) == {**before.following, **before.groups}
    ends[carl] = ended[carl, before.following[carl]]  # the entry of the block came after it
    assert {other: end for (other, _), end in ended.items()} == ends
    raw.zadd(keys.key_for("ended", ann), {f"9-{number}": number for number in range(300)})
    await store.follows.follow(ann, bob, new_key())
    await store.follows.unfollow(ann, bob, new_key())
    assert raw.zcard(keys.key_for("ended", ann)) == MAX_ENDED


async def test_groups_that_come_and_go_leave_no_more_than_the_relations_that_ended_last(
    store: Store, people: People, raw: "redis.Redis"
) -> None:
    """The owner creates each group, and a member joins it. Both lose it when it is deleted."""
    ann, bob = await people.users(2)
    for uid in (ann, bob):
        raw.zadd(keys.key_for("ended", uid), {f"9-{number}": number for number in range(300)})
    for _ in range(2):
        await store.groups.delete(ann, await group(store, "public", ann, bob), new_key())
    for uid in (ann, bob):
        assert raw.zcard(keys.key_for("ended", uid)) == MAX_ENDED + 1


async def test_graphs_asked_together_are_those_asked_one_by_one(store: Store, people: People) -> None:
    users = [*await people.users(3), "404"]
    await store.follows.follow(users[0], users[1], new_key())
    await store.mutes.mute(users[1], users[2], new_key())
    await store.blocks.block(users[2], users[0], new_key())
    one_by_one = [await store.user_graphs.get_graph(user) for user in users]
    assert await asyncio.gather(*map(store.user_graphs.get_graph, users)) == one_by_one


async def test_an_unknown_user_has_an_empty_graph(store: Store) -> None:
    assert await store.user_graphs.get_graph("404") == ({}, {}, {}, {}, {}, {}, LOG_START, LOG_START)
    assert await store.user_graphs.get_restricted_accounts() == (frozenset(), frozenset(), LOG_START, LOG_START)


async def test_a_graph_comes_with_the_head_of_the_same_step(store: Store, people: People) -> None:
    ann, bob, carl = await people.users(3)
    await store.follows.follow(ann, bob, new_key())
    await store.mutes.mute(ann, bob, new_key())
    await store.blocks.block(carl, ann, new_key())
    viewer = await store.user_graphs.get_graph(ann)
    assert (set(viewer.following), set(viewer.mutes), set(viewer.blockers)) == ({bob}, {bob}, {carl})
    assert (viewer.blocks, viewer.groups) == ({}, {})
    assert viewer.head == await store.log.head()


async def test_restricted_accounts_are_the_protected_and_the_suspended(store: Store, raw: "redis.Redis") -> None:
    raw.sadd(keys.key_for("protected"), "1", "2")
    raw.zadd(keys.key_for("suspended"), {"3": 5})
    accounts = await store.user_graphs.get_restricted_accounts()
    assert accounts == (frozenset({"1", "2"}), frozenset({"3"}), LOG_START, LOG_START)
