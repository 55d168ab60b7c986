"""Each write of the store is done whole or not at all, and once: after a retry, a lost answer, or a refusal."""

from contextlib import suppress
from typing import Any

import pytest
import redis

from stream_server.errors import ApiError, Conflict, Forbidden, NotFound, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import PageRequest
from stream_server.store.store import Store
from tests.contracts.test_lua import WRITES as SCRIPTS
from tests.redis_process import RedisProcess
from tests.stream_server.store.people import People, new_key, open_store
from tests.stream_server.store.redis.cutting_proxy import CuttingProxy
from tests.stream_server.store.scenes import dump, ids
from tests.stream_server.store.writes import ELSEWHERE, FORMS, WRITES, Scene, Write

LOG = "{core}:log"
MAX_KEPT_BYTES = 112
"""Most bytes of the key and the value that are kept of a write."""


@pytest.fixture(params=sorted(WRITES))
def write(request: pytest.FixtureRequest) -> Write:
    return WRITES[request.param]


@pytest.fixture
async def scene(store: Store) -> Scene:
    made = Scene()
    await made.settle(store)
    return made


def test_every_writing_script_has_a_row() -> None:
    assert (WRITES.keys() | ELSEWHERE) - FORMS == set(SCRIPTS)


@pytest.mark.every_redis
async def test_a_repeated_request_writes_once_and_gets_the_same_answer(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    before, length = dump(raw), raw.xlen(LOG)
    request = IdempotencyKey.from_client(scene.ann, "key", b"payload")
    first = await write.do(store, scene, request)
    after = dump(raw)
    assert after != before
    assert raw.xlen(LOG) == length + write.entries
    assert await write.do(store, scene, request) == first
    with pytest.raises(Conflict) as refusal:
        await write.do(store, scene, IdempotencyKey.from_client(scene.ann, "key", b"another"))
    assert (refusal.value.error_code, refusal.value.param) == ("duplicate", "Idempotency-Key")
    assert dump(raw) == after


async def test_little_is_kept_of_a_write_and_nothing_of_one_that_changed_nothing(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    first, second = (IdempotencyKey.from_client(scene.ann, "k" * (63 + end), b"payload") for end in (0, 1))
    await write.do(store, scene, first)
    (kept,) = raw.keys(f"{{core}}:request:{first.value}*")
    assert len(kept) + raw.strlen(kept) <= MAX_KEPT_BYTES
    before = dump(raw)
    with suppress(ApiError):
        await write.do(store, scene, second)
    assert dump(raw) != before or not raw.keys(f"{{core}}:request:{second.value}*")


@pytest.mark.parametrize("lost", [1, pytest.param(2, marks=pytest.mark.extended)])
async def test_a_write_with_a_lost_answer_is_retried_and_done_once(
    store: Store, redis_server: RedisProcess, raw: "redis.Redis", scene: Scene, write: Write, lost: int
) -> None:
    request, length = new_key(), raw.xlen(LOG)
    async with CuttingProxy(redis_server.socket) as proxy, open_store(proxy.url) as cut:
        proxy.cut = lost
        if lost == 1:
            first = await write.do(cut, scene, request)
        else:
            with pytest.raises(OutcomeUnknown) as failure:
                await write.do(cut, scene, request)
            assert failure.value.retry_after == 1
    assert proxy.fired == lost
    assert raw.xlen(LOG) == length + write.entries
    after = dump(raw)
    again = await write.do(store, scene, request)
    assert lost == 2 or again == first
    assert dump(raw) == after


@pytest.mark.extended
async def test_scripts_are_loaded_again_after_a_flush(
    store: Store, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    raw.script_flush()
    await write.do(store, scene, new_key())
    raw.script_flush()
    assert (await store.user_graphs.get_graph(scene.ann)).head == await store.log.head()


async def test_only_the_script_that_redis_does_not_know_is_loaded_again(
    store: Store, raw: "redis.Redis", scene: Scene
) -> None:
    """After a failover Redis knows none. To load all takes longer than a write may take on a busy machine."""
    raw.script_flush()
    await store.likes.like(scene.bob, scene.fresh, new_key())
    assert raw.info("memory")["number_of_cached_scripts"] == 1


async def test_a_full_redis_changes_nothing(store: Store, raw: "redis.Redis", scene: Scene, write: Write) -> None:
    before = dump(raw)
    raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(Unavailable) as failure:
            await write.do(store, scene, new_key())
    finally:
        raw.config_set("maxmemory", 0)
    assert (failure.value.error_code, failure.value.retry_after) == ("unavailable", 1)
    assert dump(raw) == before
    await write.do(store, scene, new_key())
    assert dump(raw) != before


@pytest.mark.extended
async def test_a_replica_changes_nothing(store: Store, raw: "redis.Redis", scene: Scene, write: Write) -> None:
    before = dump(raw)
    raw.replicaof("127.0.0.1", "1")
    try:
        with pytest.raises(Unavailable):
            await write.do(store, scene, new_key())
    finally:
        raw.replicaof("NO", "ONE")
    assert dump(raw) == before
    await write.do(store, scene, new_key())


async def test_a_suspended_user_writes_nothing(
    store: Store, people: People, raw: "redis.Redis", scene: Scene, write: Write
) -> None:
    admin = await people.user("admin")
    for uid in scene.users:
        await store.suspensions.suspend(admin, uid, new_key())
    before = dump(raw)
    if not write.somebodys:
        await write.do(store, scene, new_key())
        assert dump(raw) != before
        return
    with pytest.raises(Forbidden) as refusal:
        await write.do(store, scene, new_key())
    assert refusal.value.error_code == "suspended"
    assert dump(raw) == before


async def test_an_unknown_user_writes_nothing(store: Store, raw: "redis.Redis", scene: Scene) -> None:
    before = dump(raw)
    for number, name in enumerate(("ann", "bob", "carl", "dora", "eli", "fay", "gus", "root", "mia"), 1):
        setattr(scene, name, str(number))
    for write in WRITES.values():
        if write.somebodys:
            with pytest.raises(NotFound):
                await write.do(store, scene, new_key())
    assert dump(raw) == before


async def test_a_write_is_complete_where_redis_forbids_to_publish(store: Store, people: People, raw: Any) -> None:
    """Redis takes nothing back of a script that fails behind the entry. Feeds read the entry from the log."""
    ann = await people.user("Ann")
    raw.execute_command("ACL SETUSER", "default", "resetchannels")
    try:
        status = await people.status(ann)
    finally:
        raw.execute_command("ACL SETUSER", "default", "allchannels")
    assert ids(await store.timelines.read_profile(ann, ann, PageRequest())) == [status["id"]]
    assert (await people.me(ann))["posts"] == 1
