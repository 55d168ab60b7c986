"""What streams are given of the graph: every relation with when it began, and the head of the log, in one step."""

import redis

from stream_server.events.position import LOG_START
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.stream_server.store.people import People


async def test_a_viewer_has_every_relation_with_its_beginning(store: Store, raw: "redis.Redis") -> None:
    """Ids and milliseconds, none of another user's."""
    for number, relation in enumerate(("following", "blocks", "blockers", "mutes", "groups")):
        raw.zadd(keys.key_for(relation, "1"), {"2": 1_795_197_600_000 + number, "3": 1})
        raw.zadd(keys.key_for(relation, "9"), {"4": 1})
    viewer = await store.user_graphs.get_graph("1")
    assert viewer[:-1] == tuple({"2": 1_795_197_600_000 + number, "3": 1} for number in range(5))
    assert viewer.head == LOG_START


async def test_who_is_nobody_sees_as_everybody(store: Store) -> None:
    """A user who does not exist has no relations; an empty log has its start for a head."""
    assert await store.user_graphs.get_graph("404") == ({}, {}, {}, {}, {}, LOG_START)
    assert await store.user_graphs.get_restricted_accounts() == (frozenset(), frozenset(), LOG_START)


async def test_the_head_is_that_of_the_same_step(store: Store, people: People) -> None:
    """What the verbs write is what is read, true at the position of the last entry."""
    ann, bob, carl = await people.users(3)
    await store.follows.follow(ann, bob, IdempotencyKey.generate())
    await store.mutes.mute(ann, bob, IdempotencyKey.generate())
    await store.blocks.block(carl, ann, IdempotencyKey.generate())
    viewer = await store.user_graphs.get_graph(ann)
    assert (set(viewer.following), set(viewer.mutes), set(viewer.blockers)) == ({bob}, {bob}, {carl})
    assert (viewer.blocks, viewer.groups) == ({}, {})
    assert viewer.head == await store.log.head()


async def test_outcasts_are_the_protected_and_the_suspended(store: Store, raw: "redis.Redis") -> None:
    """Both sets, whole."""
    raw.sadd(keys.key_for("protected"), "1", "2")
    raw.zadd(keys.key_for("suspended"), {"3": 5})
    assert await store.user_graphs.get_restricted_accounts() == (frozenset({"1", "2"}), frozenset({"3"}), LOG_START)
