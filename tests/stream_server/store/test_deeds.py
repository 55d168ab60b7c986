"""Likes, favorites and comments as writes: made once, whole or not at all, and the log tells exactly what is there."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, Conflict, OutcomeUnknown, Unavailable
from stream_server.events import START
from stream_server.store import keys
from stream_server.store.request import Request
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import whole

Write = Callable[[Store, "Scene", Request], Awaitable[Any]]


class Scene:
    """Bob's deeds on two statuses of Ann's: on the one he has done everything, on the other nothing."""

    bob: str
    fresh: str
    done: str
    comment: str

    async def settle(self, store: Store) -> None:
        """Make it so."""
        people = People(store)
        ann, self.bob = await people.users(2)
        self.fresh, self.done = [str((await people.status(ann))["id"]) for _ in range(2)]
        await store.likes.like(self.bob, self.done, Request.fresh())
        await store.favorites.keep(self.bob, self.done, Request.fresh())
        made = await store.comments.create(self.bob, self.done, "@u0 well", Request.fresh())
        self.comment = json.loads(made)["id"]


WRITES: dict[str, Write] = {
    "like": lambda s, scene, r: s.likes.like(scene.bob, scene.fresh, r),
    "unlike": lambda s, scene, r: s.likes.unlike(scene.bob, scene.done, r),
    "favorite": lambda s, scene, r: s.favorites.keep(scene.bob, scene.fresh, r),
    "unfavorite": lambda s, scene, r: s.favorites.drop(scene.bob, scene.done, r),
    "comment": lambda s, scene, r: s.comments.create(scene.bob, scene.fresh, "@u0 well", r),
    "uncomment": lambda s, scene, r: s.comments.delete(scene.bob, scene.comment, r),
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
    request = Request.of_client(scene.bob, "key", b"payload")
    first = await write(store, scene, request)
    after = whole(raw)
    assert after != before
    assert await write(store, scene, request) == first
    with pytest.raises(Conflict):
        await write(store, scene, Request.of_client(scene.bob, "key", b"another"))
    assert whole(raw) == after


async def test_a_lost_answer_is_asked_for_again(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """It was written once, whether the second answer comes or is lost as well."""
    for lost in (1, 2):
        request = Request.fresh()
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
        if lost == 1:
            await write(store, scene, request)
        assert whole(raw) == after
    check(raw)


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


def check(raw: Any) -> None:
    """Counters are cardinalities, and each set has its other side."""
    for name in raw.keys(keys.status("*")):
        status = name.decode().rpartition(":")[2]
        kept = raw.hmget(name, "likes", "comments", "reposts")
        there = [raw.zcard(keys.named(of, status)) for of in ("likes", "comments", "reposts")]
        assert [int(count) for count in kept] == there, status
        for uid in raw.zrange(keys.named("likes", status), 0, -1):
            assert raw.zscore(keys.named("liked", uid.decode()), status) is not None
        for comment in raw.zrange(keys.named("comments", status), 0, -1):
            assert raw.hget(keys.named("comment", comment.decode()), "status") == status.encode()


class Model:
    """What the log says happened, told again in plain Python; what a status had goes with it."""

    def __init__(self) -> None:
        self.statuses: set[str] = set()
        self.likes: set[tuple[str, str]] = set()
        self.comments: dict[str, str] = {}

    def hear(self, kind: str, wire: dict[str, Any]) -> None:
        """One entry: it changes something, and its counts are those after it."""
        status = wire["status"]["id"] if kind != "notification" else ""
        if kind == "post":
            self.statuses.add(status)
        elif kind == "delete":
            self.statuses.remove(status)
            self.likes = {pair for pair in self.likes if pair[0] != status}
            self.comments = {comment: of for comment, of in self.comments.items() if of != status}
        elif kind in {"like", "unlike"}:
            pair = (status, wire["source"]["id"])
            assert (pair in self.likes) == (kind == "unlike")
            self.likes ^= {pair}
        elif kind == "comment":
            self.comments[wire["comment"]["id"]] = status
        elif kind == "uncomment":
            assert self.comments.pop(wire["comment"]["id"]) == status
        if kind in {"like", "unlike", "comment", "uncomment"}:
            self.counted(wire["status"])

    def counted(self, status: dict[str, Any]) -> None:
        """The counts that an entry shows."""
        assert status["id"] in self.statuses
        assert status["likes"] == sum(liked == status["id"] for liked, _ in self.likes)
        assert status["comments"] == Counter(self.comments.values())[status["id"]]


class Crowd:
    """Users who like, comment and delete at random."""

    def __init__(self, store: Store, users: list[str]) -> None:
        self.store = store
        self.users = users
        self.statuses: list[str] = []
        self.comments: list[str] = []
        self.done = Counter[str]()

    async def act(self, chance: random.Random) -> None:
        """One deed; what is refused is refused because somebody was faster."""
        uid, status = chance.choice(self.users), chance.choice(self.statuses)
        verb = chance.choice(["like"] * 4 + ["unlike"] * 3 + ["comment"] * 3 + ["uncomment"] * 2 + ["delete", "repost"])
        try:
            await self.do(verb, uid, status, chance)
            self.done[verb] += 1
        except ApiError as error:
            if error.error_code not in {"not_found", "not_yours"}:
                raise

    async def do(self, verb: str, uid: str, status: str, chance: random.Random) -> None:
        """That deed."""
        store, request = self.store, Request.fresh()
        if verb == "like":
            await store.likes.like(uid, status, request)
        elif verb == "unlike":
            await store.likes.unlike(uid, status, request)
        elif verb == "comment":
            made = await store.comments.create(uid, status, f"@u{chance.randrange(9)}", request)
            self.comments.append(json.loads(made)["id"])
        elif verb == "uncomment" and self.comments:
            await store.comments.delete(uid, chance.choice(self.comments), request)
        elif verb == "delete":
            await store.statuses.delete(uid, status, request)
        elif verb == "repost":
            self.statuses.append((await People(store).status(uid, "", origin=status))["id"])


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_twenty_at_once(store: Store, people: People, raw: Any, seed: int) -> None:
    """Counters are cardinalities, no entry is without its data and no data without its entry."""
    crowd = Crowd(store, await people.users(6))
    for uid in crowd.users:
        crowd.statuses += [(await people.status(uid))["id"] for _ in range(2)]

    async def writer(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        for _ in range(40):
            await crowd.act(chance)

    await asyncio.gather(*(writer(i) for i in range(20)))
    assert set(crowd.done) == {"like", "unlike", "comment", "uncomment", "delete", "repost"}
    check(raw)
    model = Model()
    for entry in await store.log.read(START, 10_000):
        model.hear(entry.kind, json.loads(entry.wire))
    assert {name.decode().rpartition(":")[2] for name in raw.keys(keys.status("*"))} == model.statuses
    for status in model.statuses:
        likers = {uid.decode() for uid in raw.zrange(keys.named("likes", status), 0, -1)}
        assert likers == {uid for liked, uid in model.likes if liked == status}
        there = {one.decode() for one in raw.zrange(keys.named("comments", status), 0, -1)}
        assert there == {comment for comment, of in model.comments.items() if of == status}
