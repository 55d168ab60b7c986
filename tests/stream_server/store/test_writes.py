"""Each write is whole or not at all, and made once: repeated, cut off, refused by a Redis that is full."""

import pytest
import redis

from stream_server.errors import Conflict, Forbidden, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store
from tests.contracts.test_lua import WRITES as SCRIPTS
from tests.redis_process import RedisProcess
from tests.stream_server.store.cutting import CuttingProxy
from tests.stream_server.store.people import People
from tests.stream_server.store.scenes import whole
from tests.stream_server.store.writes import ELSEWHERE, FORMS, WRITES, Scene, Write
from tests.waiting import PATIENCE

LOG = "{core}:log"


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


def test_every_script_that_writes_is_tried() -> None:
    """A new one comes with a row in the table."""
    assert {f"{name}.lua" for name in (WRITES.keys() | ELSEWHERE) - FORMS} == set(SCRIPTS)


@pytest.mark.every_redis
async def test_the_same_request_twice_is_one_write(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """The second asking gets the first one's answer; the same key for something else is refused."""
    before, length = whole(raw), raw.xlen(LOG)
    request = IdempotencyKey.from_client(scene.ann, "key", b"payload")
    first = await write.do(store, scene, request)
    after = whole(raw)
    assert after != before
    assert raw.xlen(LOG) == length + write.entries
    assert await write.do(store, scene, request) == first
    with pytest.raises(Conflict) as refusal:
        await write.do(store, scene, IdempotencyKey.from_client(scene.ann, "key", b"another"))
    assert (refusal.value.error_code, refusal.value.param) == ("duplicate", "Idempotency-Key")
    assert whole(raw) == after


@pytest.mark.parametrize("lost", [1, pytest.param(2, marks=pytest.mark.extended)])
async def test_a_lost_answer_is_asked_for_again(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: Scene, write: Write, lost: int
) -> None:
    """It was written once, whether the second answer comes, or is lost as well and the caller hears exactly that."""
    request, length = IdempotencyKey.generate(), raw.xlen(LOG)
    async with CuttingProxy(redis_server.socket) as proxy:
        cut = Store(proxy.url, timeout_seconds=PATIENCE)
        await cut.open()
        proxy.cut = lost
        if lost == 1:
            first = await write.do(cut, scene, request)
        else:
            with pytest.raises(OutcomeUnknown) as told:
                await write.do(cut, scene, request)
            assert told.value.retry_after == 1
        await cut.close()
    assert proxy.fired == lost
    assert raw.xlen(LOG) == length + write.entries
    after = whole(raw)
    again = await write.do(store, scene, request)
    assert lost == 2 or again == first
    assert whole(raw) == after


@pytest.mark.extended
async def test_scripts_that_redis_forgot_are_given_again(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """A Redis that was restarted or failed over knows no script; nobody notices."""
    raw.script_flush()
    await write.do(store, scene, IdempotencyKey.generate())
    raw.script_flush()
    assert (await store.user_graphs.get_graph(scene.ann)).head == await store.log.head()


async def test_a_full_redis_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """The first write of the script is one that Redis refuses then, also where the rest would only remove."""
    before = whole(raw)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable) as told:
            await write.do(store, scene, IdempotencyKey.generate())
    finally:
        raw.config_set("maxmemory", 0)
    assert (told.value.error_code, told.value.retry_after) == ("unavailable", 1)
    assert whole(raw) == before
    await write.do(store, scene, IdempotencyKey.generate())
    assert whole(raw) != before


@pytest.mark.extended
async def test_a_replica_refuses_and_nothing_changes(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """After a failover the old primary takes no writes; that is 503, not a failure of ours."""
    before = whole(raw)
    raw.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(Unavailable):
            await write.do(store, scene, IdempotencyKey.generate())
    finally:
        raw.replicaof("NO", "ONE")
    assert whole(raw) == before
    await write.do(store, scene, IdempotencyKey.generate())


async def test_the_suspended_write_nothing(
    store: Store, people: People, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    """Whoever does it is told to be suspended, and nothing changes; what is nobody's goes on."""
    admin = await people.user("admin")
    for uid in scene.users:
        await store.suspensions.suspend(admin, uid, IdempotencyKey.generate())
    before = whole(raw)
    if not write.somebodys:
        await write.do(store, scene, IdempotencyKey.generate())
        assert whole(raw) != before
        return
    with pytest.raises(Forbidden) as refusal:
        await write.do(store, scene, IdempotencyKey.generate())
    assert refusal.value.error_code == "suspended"
    assert whole(raw) == before
