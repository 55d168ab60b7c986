"""A write is made once: the same key again, a lost answer, a Redis that is away or refuses."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, Conflict, OutcomeUnknown, Unavailable
from stream_server.events import START
from stream_server.store.draft import Draft
from stream_server.store.request import CLIENT_TTL_MS, SERVER_TTL_MS, Request
from stream_server.store.store import Store
from tests.contracts.test_lua import WRITES as VERBS
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import PASSWORD_HASH, People, footprint
from tests.stream_server.store.test_deeds import WRITES as DEEDS
from tests.stream_server.store.test_places import WRITES as PLACES
from tests.stream_server.store.test_relation_writes import WRITES as RELATIONS
from tests.waiting import eventually

Write = Callable[[Store, str, str, str, Request], Awaitable[Any]]

WRITES: dict[str, Write] = {
    "sign_up": lambda s, a, b, p, r: s.users.create("New", "New", "new@example.org", PASSWORD_HASH, r),
    "sign_up_many": lambda s, a, b, p, r: s.users.create_many([("New", "New"), ("u0", "there")], r),
    "post": lambda s, a, b, p, r: s.statuses.create(a, Draft(message="@u1 hello", in_reply_to=p), r),
    "repost": lambda s, a, b, p, r: s.statuses.create(a, Draft(origin=p), r),
    "delete": lambda s, a, b, p, r: s.statuses.delete(a, p, r),
    "follow": lambda s, a, b, p, r: s.follows.follow(a, b, r),
    "unfollow": lambda s, a, b, p, r: s.follows.unfollow(b, a, r),
    "suspend": lambda s, a, b, p, r: s.suspensions.suspend(a, b, r),
    "report": lambda s, a, b, p, r: s.reports.create(b, status=p, reason="spam", note="", request=r),
    "revoke": lambda s, a, b, p, r: s.sessions.revoke(a, "jti", 4_000_000_000_000, r),
}
"""Every write, as Ann (u0), with Bob (u1), who follows her, and a post of hers."""


MOST_ENTRIES = 2
"""A write of this table makes its own entry and perhaps one notification; made twice it would make more."""

FORMS = {"repost", "talk_open_several", "ask", "withdraw", "be blocked", "update"}
"""Rows of these tables that are another form of a verb."""

ELSEWHERE = {"update_user", "batch", "mark_read", "decide", "reinstate", "refresh"}
"""Verbs that are tried in the tests of their nouns."""


@pytest.fixture(params=sorted(WRITES))
def write(request: pytest.FixtureRequest) -> Write:
    """Each write in turn."""
    return WRITES[request.param]


@pytest.fixture
async def scene(store: Store, people: People) -> tuple[str, str, str]:
    """Ann, Bob who follows her, and her post."""
    ann, bob = await people.users(2)
    await store.follows.follow(bob, ann, Request.fresh())
    return ann, bob, (await people.status(ann))["id"]


def test_every_script_that_writes_is_tried() -> None:
    """A new verb comes with a row in the table above."""
    tried = {*WRITES, *PLACES, *DEEDS, *RELATIONS, *ELSEWHERE} - FORMS
    assert {f"{verb}.lua" for verb in tried} == set(VERBS)


async def test_the_same_request_twice_is_one_write(
    store: Store, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """The second asking gets the first one's answer, and nothing is written."""
    request = Request.of_client(scene[0], "key", b"payload")
    first = await write(store, *scene, request)
    before = footprint(raw)
    assert await write(store, *scene, request) == first
    assert footprint(raw) == before


async def test_the_same_key_for_something_else_is_refused(
    store: Store, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """A key names one request; with another content it is a mistake of the client's, told as such."""
    await write(store, *scene, Request.of_client(scene[0], "key", b"payload"))
    before = footprint(raw)
    with pytest.raises(Conflict) as refusal:
        await write(store, *scene, Request.of_client(scene[0], "key", b"another"))
    assert (refusal.value.error_code, refusal.value.param) == ("duplicate", "Idempotency-Key")
    assert footprint(raw) == before


async def test_keys_are_their_users_own(store: Store, people: People) -> None:
    """Two users may use the same key."""
    ann, bob = await people.users(2)
    made = [
        await store.statuses.create(uid, Draft(message="x"), Request.of_client(uid, "k", b"p")) for uid in (ann, bob)
    ]
    assert made[0] != made[1]


async def test_how_long_answers_are_kept(store: Store, people: People, raw: "redis.Redis") -> None:
    """A client's key for a day, the server's own for a minute."""
    ann = await people.user("Ann")
    for request in (Request.of_client(ann, "k", b"p"), Request.fresh()):
        await store.statuses.create(ann, Draft(message="x"), request)
        left = raw.pttl("{core}:request:" + request.key)
        assert isinstance(left, int)
        assert request.ttl_ms - 30_000 < left <= request.ttl_ms
    assert (CLIENT_TTL_MS, SERVER_TTL_MS) == (86_400_000, 60_000)


async def test_a_kept_answer_outlives_the_log(store: Store, people: People, raw: "redis.Redis") -> None:
    """Where the entry was trimmed meanwhile, the status itself is the answer."""
    ann = await people.user("Ann")
    request = Request.of_client(ann, "k", b"p")
    made = await store.statuses.create(ann, Draft(message="x"), request)
    raw.xtrim("{core}:log", maxlen=0, approximate=False)
    assert await store.statuses.create(ann, Draft(message="x"), request) == made


async def test_a_lost_answer_is_asked_for_again(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """The script ran and its answer was cut off: the same answer comes by the second asking, and one entry."""
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url)
        await cut.open()
        length = raw.xlen("{core}:log")
        request = Request.fresh()
        proxy.cut = 1
        answer = await write(cut, *scene, request)
        await cut.close()
    assert proxy.fired == 1
    assert raw.xlen("{core}:log") - length <= MOST_ENTRIES
    before = footprint(raw)
    assert await write(store, *scene, request) == answer
    assert footprint(raw) == before


async def test_an_answer_lost_twice_is_told(
    redis_server: RedisProcess, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """It may have been written, and the caller hears exactly that; it was written once."""
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url)
        await cut.open()
        length = raw.xlen("{core}:log")
        proxy.cut = 2
        with pytest.raises(OutcomeUnknown) as told:
            await write(cut, *scene, Request.fresh())
        await cut.close()
    assert (proxy.fired, told.value.retry_after) == (2, 1)
    assert raw.xlen("{core}:log") - length <= MOST_ENTRIES


async def test_a_batch_cut_off_is_made_once(store: Store, redis_server: RedisProcess, people: People) -> None:
    """All of a batch is repeated under its keys: each follow happened once."""
    ann, *others = await people.users(40)
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url)
        await cut.open()
        proxy.cut = 1
        outcomes = await cut.follows.many(ann, others, [], Request.fresh())
        await cut.close()
    assert proxy.fired == 1
    assert outcomes == [(uid, "followed") for uid in others]
    assert (await people.me(ann))["following"] == 39
    assert [entry.kind for entry in await store.log.read(START, 100)] == ["follow", "notification"] * 39


async def test_scripts_that_redis_forgot_are_given_again(
    store: Store, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """A Redis that was restarted or failed over knows no script; nobody notices."""
    raw.script_flush()
    await write(store, *scene, Request.fresh())
    raw.script_flush()
    assert (await store.viewers.read(scene[0])).head == await store.log.head()


async def test_a_full_redis_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: tuple[str, str, str], write: Write
) -> None:
    """Out of memory is 503, and the first write of a script is the one that fails."""
    before = footprint(raw)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable) as told:
            await write(store, *scene, Request.fresh())
    finally:
        raw.config_set("maxmemory", 0)
    assert (told.value.error_code, told.value.retry_after) == ("unavailable", 1)
    assert footprint(raw) == before
    await write(store, *scene, Request.fresh())


async def test_a_read_only_replica_refuses(store: Store, raw: "redis.Redis", scene: tuple[str, str, str]) -> None:
    """After a failover the old primary takes no writes; that is 503, not a failure of ours."""
    raw.config_set("replica-read-only", "yes")
    raw.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(Unavailable):
            await store.follows.follow(scene[0], scene[1], Request.fresh())
    finally:
        raw.replicaof("NO", "ONE")
    await store.follows.follow(scene[0], scene[1], Request.fresh())


async def test_redis_away(redis_server: RedisProcess) -> None:
    """A Redis that is not there is told at once, for reading and for writing; it is used again when it is back."""
    with RedisProcess(_binary(redis_server)) as own:
        store = Store(own.url)
        await store.open()
        ann = await People(store).user("Ann")
        own.kill()
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.users.get(ann, ann), 2)
        with pytest.raises(Unavailable) as told:
            await asyncio.wait_for(store.statuses.create(ann, Draft(message="x"), Request.fresh()), 2)
        assert (told.value.error_code, told.value.retry_after) == ("unavailable", 1)
        own.start()
        assert await People(store).user("Bob")
        await store.close()


async def test_redis_frozen(redis_server: RedisProcess) -> None:
    """One that takes a write and is silent is given up within two time-outs; the outcome is unknown."""
    with RedisProcess(_binary(redis_server)) as own:
        store = Store(own.url, timeout_seconds=0.2)
        await store.open()
        ann = await People(store).user("Ann")
        own.pause()
        with pytest.raises(OutcomeUnknown):
            await asyncio.wait_for(store.statuses.create(ann, Draft(message="x"), Request.fresh()), 2)
        with pytest.raises(Unavailable):
            await asyncio.wait_for(store.users.get(ann, ann), 2)
        own.resume()
        # What was sent twice is in the socket still, and is run now: under one key, so once.
        assert await People(store).status(ann, "y")
        assert [entry.position.n for entry in await store.log.read(START, 10)] == [1, 2]
        await store.close()


async def test_a_caller_that_gives_up_harms_nobody(
    redis_server: RedisProcess, store: Store, people: People, raw: "redis.Redis"
) -> None:
    """A cancelled write's answer, still to come, is never read as the answer of the next one."""
    ann = await people.user("Ann")
    redis_server.pause()
    try:
        hasty = await _sent(people.status(ann, "hasty"))
        hasty.cancel()
        await asyncio.gather(hasty, return_exceptions=True)
        patient = await _sent(people.status(ann, "patient"))
    finally:
        redis_server.resume()
    assert (await patient)["message"] == "patient"
    await eventually(lambda: raw.xlen("{core}:log") == 2, what="what was given up had been sent all the same")


async def _sent(write: Coroutine[Any, Any, dict[str, Any]]) -> asyncio.Task[dict[str, Any]]:
    """A write on its way, as far as it comes while Redis is silent."""
    task = asyncio.create_task(write)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def test_errors_are_ours() -> None:
    """What the store raises is what the web can tell."""
    assert issubclass(Unavailable, ApiError)
    assert issubclass(OutcomeUnknown, ApiError)


def _binary(server: RedisProcess) -> Any:
    return server._command[0]
