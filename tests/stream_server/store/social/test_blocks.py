"""Blocks end follows and hide statuses in both directions. Mutes hide statuses without a notification."""

import redis

from stream_server.events.position import LOG_START
from stream_server.store.store import Store
from tests.stream_server.store.people import People, new_key
from tests.stream_server.store.scenes import logged, stored_notifications


async def test_a_block_ends_both_follows_in_one_step(store: Store, people: People, raw: "redis.Redis") -> None:
    ann, bob = await people.users(2)
    await store.follows.follow(ann, bob, new_key())
    await store.follows.follow(bob, ann, new_key())
    await store.blocks.block(ann, bob, new_key())
    entries = (await store.log.read(LOG_START, 20))[-3:]
    assert [(entry.kind, entry.audience) for entry in entries] == [
        ("unfollow", "public"), ("unfollow", "public"), ("block", f"users:{ann}"),
    ]  # fmt: skip
    pairs = [(one.wire["source"]["id"], one.wire["target"]["id"]) for one in await logged(store, "unfollow", "block")]
    assert pairs == [(ann, bob), (bob, ann), (ann, bob)]
    assert entries[-1].body == b'{"wire":{"source":%b,"target":%b}}' % tuple(
        await store.users.get_many(ann, [ann, bob])
    )
    for uid in (ann, bob):
        user = await people.me(uid)
        assert (user["following"], user["followers"]) == (0, 0)
        assert stored_notifications(raw, uid) == set()
