"""Each write between users is whole or not at all: repeated, cut off, or refused by a Redis that is full."""

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, Forbidden, Unavailable
from stream_server.store.page import Piece
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import protect

Scene = tuple[str, str, str]
Write = Callable[[Store, str, str, str, Request], Awaitable[object]]

WRITES: dict[str, tuple[Write, int]] = {
    "update": (lambda s, a, b, c, r: s.users.update(a, {"bio": "x", "protected": False}, r), 2),
    "ask": (lambda s, a, b, c, r: s.follows.follow(b, a, r), 2),
    "approve": (lambda s, a, b, c, r: s.follow_requests.approve(b, a, r), 2),
    "refuse": (lambda s, a, b, c, r: s.follow_requests.refuse(b, a, r), 1),
    "withdraw": (lambda s, a, b, c, r: s.follows.unfollow(a, b, r), 1),
    "block": (lambda s, a, b, c, r: s.blocks.block(a, b, r), 2),
    "be blocked": (lambda s, a, b, c, r: s.blocks.block(b, a, r), 2),
    "unblock": (lambda s, a, b, c, r: s.blocks.unblock(a, c, r), 1),
    "mute": (lambda s, a, b, c, r: s.mutes.mute(a, b, r), 1),
    "unmute": (lambda s, a, b, c, r: s.mutes.unmute(a, c, r), 1),
}
"""By Ann, who asks to follow Bob, both protected, and blocks and mutes Carl; and how many entries each makes."""


@pytest.fixture(params=WRITES)
def named(request: pytest.FixtureRequest) -> tuple[Write, int]:
    """Each write in turn, and how many entries it makes."""
    found: tuple[Write, int] = WRITES[request.param]
    return found


@pytest.fixture
async def scene(store: Store, people: People) -> Scene:
    """Ann, Bob and Carl, with what is between them."""
    ann, bob, carl = await people.users(3)
    await protect(store, ann)
    await protect(store, bob)
    await store.follows.follow(ann, bob, Request.fresh())
    await store.blocks.block(ann, carl, Request.fresh())
    await store.mutes.mute(ann, carl, Request.fresh())
    return ann, bob, carl


def everything(raw: "redis.Redis") -> dict[bytes, object]:
    """All that is kept, but for the answers of requests."""
    keys: Any = raw.keys("*")
    return {key: raw.dump(key) for key in keys if not key.startswith(b"{core}:request:")}


async def test_the_same_request_twice_is_one_write(
    store: Store, raw: "redis.Redis", scene: Scene, named: tuple[Write, int]
) -> None:
    """The second asking gets the first one's answer; under another content the key is refused; nothing more changes."""
    write, entries = named
    length = raw.xlen("{core}:log")
    request = Request.of_client(scene[0], "key", b"payload")
    answer = await write(store, *scene, request)
    assert raw.xlen("{core}:log") == length + entries
    before = everything(raw)
    assert await write(store, *scene, request) == answer
    with pytest.raises(Conflict):
        await write(store, *scene, Request.of_client(scene[0], "key", b"another"))
    assert everything(raw) == before


async def test_a_full_redis_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: Scene, named: tuple[Write, int]
) -> None:
    """Out of memory is 503, and not one key is other than before; with room again it can be done."""
    write, entries = named
    before, length = everything(raw), raw.xlen("{core}:log")
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            await write(store, *scene, Request.fresh())
    finally:
        raw.config_set("maxmemory", 0)
    assert everything(raw) == before
    await write(store, *scene, Request.fresh())
    assert raw.xlen("{core}:log") == length + entries


async def test_a_lost_answer_is_asked_for_again(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: Scene, named: tuple[Write, int]
) -> None:
    """The script ran and its answer was cut off: it is done once, and told as done."""
    write, entries = named
    length = raw.xlen("{core}:log")
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url)
        await cut.open()
        proxy.cut = 1
        await write(cut, *scene, Request.fresh())
        await cut.close()
    assert proxy.fired == 1
    assert raw.xlen("{core}:log") == length + entries


async def test_the_suspended_write_nothing(
    store: Store, raw: "redis.Redis", scene: Scene, named: tuple[Write, int]
) -> None:
    """Whoever does it is told to be suspended, or finds nobody where the other one is; nothing changes."""
    write, _ = named
    for uid in scene[:2]:
        await store.suspensions.suspend(scene[2], uid, Request.fresh())
    before = everything(raw)
    with pytest.raises(Forbidden) as refusal:
        await write(store, *scene, Request.fresh())
    assert refusal.value.error_code == "suspended"
    assert everything(raw) == before


async def test_reading_changes_nothing(store: Store, raw: "redis.Redis", scene: Scene) -> None:
    """No list and no relationship leaves a key behind."""
    before = everything(raw), raw.dbsize()
    for one, other in itertools.permutations(scene[:2]):
        await store.relations.relationship(one, one, other)
        await store.relations.common_following(one, one, other, Piece())
        await store.relations.common_followers(one, one, other, Piece())
    for page in (store.follow_requests.received, store.follow_requests.sent, store.blocks.page, store.mutes.page):
        await page(scene[0], Piece())
    assert (everything(raw), raw.dbsize()) == before
