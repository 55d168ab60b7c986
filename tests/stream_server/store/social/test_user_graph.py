"""The graph of a user for streams: each relation with its start, and the head of the log, in one step."""

import redis

from stream_server.hub.visibility.viewer import MAX_ENDED
from stream_server.store import keys
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import group


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
