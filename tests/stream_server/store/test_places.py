"""Lists, groups and talks as writes: made once, and whole or not at all."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import Conflict, OutcomeUnknown, Unavailable
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import whole

Write = Callable[[Store, "Scene", Request], Awaitable[Any]]


class Scene:
    """Ann has one of everything: a list and a private group with Bob on it, and a talk in which Bob said something."""

    ann: str
    bob: str
    carl: str
    list: str
    group: str
    talk: str
    message: str

    async def settle(self, store: Store) -> None:
        """Make it so."""
        self.ann, self.bob, self.carl = await People(store).users(3)
        self.list = _id(await store.lists.create(self.ann, "a", "", False, Request.fresh()))
        await store.lists.add(self.ann, self.list, self.bob, Request.fresh())
        self.group = _id(await store.groups.create(self.ann, "a", "private", "", Request.fresh()))
        await store.groups.add(self.ann, self.group, self.bob, Request.fresh())
        self.talk = _id((await store.talks.open(self.ann, [self.bob], None, Request.fresh()))[0])
        self.message = _id(await store.talks.send(self.bob, self.talk, "hello", Request.fresh()))


def _id(made: bytes) -> str:
    return str(json.loads(made)["id"])


WRITES: dict[str, Write] = {
    "list_create": lambda s, scene, r: s.lists.create(scene.ann, "b", "", True, r),
    "list_update": lambda s, scene, r: s.lists.update(scene.ann, scene.list, {"name": "b", "private": True}, r),
    "list_delete": lambda s, scene, r: s.lists.delete(scene.ann, scene.list, r),
    "list_add": lambda s, scene, r: s.lists.add(scene.ann, scene.list, scene.carl, r),
    "list_remove": lambda s, scene, r: s.lists.remove(scene.ann, scene.list, scene.bob, r),
    "group_create": lambda s, scene, r: s.groups.create(scene.ann, "b", "public", "", r),
    "group_update": lambda s, scene, r: s.groups.update(scene.ann, scene.group, {"description": "b"}, r),
    "group_delete": lambda s, scene, r: s.groups.delete(scene.ann, scene.group, r),
    "group_join": lambda s, scene, r: s.groups.add(scene.ann, scene.group, scene.carl, r),
    "group_leave": lambda s, scene, r: s.groups.leave(scene.bob, scene.group, r),
    "talk_open": lambda s, scene, r: s.talks.open(scene.ann, [scene.carl], None, r),
    "talk_open_several": lambda s, scene, r: s.talks.open(scene.ann, [scene.bob, scene.carl], "b", r),
    "talk_send": lambda s, scene, r: s.talks.send(scene.ann, scene.talk, "hi", r),
    "talk_read": lambda s, scene, r: s.talks.read(scene.ann, scene.talk, scene.message, r),
}


@pytest.fixture(params=sorted(WRITES))
def write(request: pytest.FixtureRequest) -> Write:
    """Each write in turn."""
    return WRITES[request.param]


@pytest.fixture
async def scene(store: Store) -> Scene:
    """Settled in the store."""
    made = Scene()
    await made.settle(store)
    return made


async def test_the_same_request_is_one_write(store: Store, raw: "redis.Redis", scene: Scene, write: Write) -> None:
    """The second asking gets the first one's answer; the same key for something else is refused."""
    before = whole(raw)
    request = Request.of_client(scene.ann, "key", b"payload")
    first = await write(store, scene, request)
    after = whole(raw)
    assert after != before
    assert await write(store, scene, request) == first
    with pytest.raises(Conflict):
        await write(store, scene, Request.of_client(scene.ann, "key", b"another"))
    assert whole(raw) == after


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_lost_answer_is_asked_for_again(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: Scene, write: Write, lost: int
) -> None:
    """It was written once, whether the second answer comes or is lost as well."""
    request, before = Request.fresh(), whole(raw)
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url)
        await cut.open()
        proxy.cut = lost
        if lost == 1:
            await write(cut, scene, request)
        else:
            with pytest.raises(OutcomeUnknown):
                await write(cut, scene, request)
        await cut.close()
    assert proxy.fired == lost
    after = whole(raw)
    assert after != before
    await write(store, scene, request)
    assert whole(raw) == after


async def test_a_full_redis_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """The first write of the script is one that Redis refuses then, also where the rest would only remove."""
    before = whole(raw)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable):
            await write(store, scene, Request.fresh())
    finally:
        raw.config_set("maxmemory", 0)
    assert whole(raw) == before
    await write(store, scene, Request.fresh())
    assert whole(raw) != before


async def test_a_replica_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """After a failover the old primary takes no writes; that is 503."""
    before = whole(raw)
    raw.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(Unavailable):
            await write(store, scene, Request.fresh())
    finally:
        raw.replicaof("NO", "ONE")
    assert whole(raw) == before
