"""Opening a store: the version of Redis, the scripts, and a warning if Redis evicts data."""

import asyncio
import logging

import pytest
import redis

from stream_server.commands import doctor_redis
from stream_server.commands.doctor_machine import CheckState
from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.redis.engine import engine_of
from stream_server.store.redis.lanes import Lane
from stream_server.store.redis.protocol import parse_info
from stream_server.store.redis.stored_form import STORED_FORM
from stream_server.store.store import Store, UnusableRedis
from tests.redis_process import private_redis
from tests.stream_server.store.people import People
from tests.stream_server.store.redis.scripted_redis import ScriptedRedis
from tests.waiting import PATIENCE


async def test_open_and_ping(store: Store) -> None:
    await store.ping()


async def test_open_without_redis_is_unavailable_and_hides_the_address(tmp_path: object) -> None:
    store = Store(f"unix://{tmp_path}/none.sock", timeout_seconds=PATIENCE)
    with pytest.raises(Unavailable) as failure:
        await store.open()
    assert str(tmp_path) not in failure.value.message
    await store.close()


async def test_a_slow_redis_delays_the_opening_and_later_calls_have_the_usual_timeout() -> None:
    with private_redis() as server:
        store = Store(f"unix://{server.socket}", timeout_seconds=0.05)
        server.pause()
        with pytest.raises(Unavailable):
            await store.open()
        with store.allow_slow_replies(PATIENCE):
            opening = asyncio.create_task(store.open())
            with pytest.raises(TimeoutError):  # longer than the usual timeout it neither fails nor succeeds
                await asyncio.wait_for(asyncio.shield(opening), 0.3)
            server.resume()
            await opening
        server.pause()
        with pytest.raises(Unavailable):
            await store.ping()
        server.resume()
        await store.close()


@pytest.mark.parametrize(
    ("info", "name", "is_new_enough"),
    [
        ("redis_version:6.2.14", "Redis 6.2.14", False), ("redis_version:7.0.0", "Redis 7.0.0", True),
        ("redis_version:10.1.0", "Redis 10.1.0", True), ("", "Redis 0.0.0", False),
        ("redis_version:7.2.4\nvalkey_version:7.2.9", "Valkey 7.2.9", False),
        ("redis_version:7.2.4\nvalkey_version:8.0.0", "Valkey 8.0.0", True),
    ],
)  # fmt: skip
async def test_an_engine_that_is_too_old_is_refused_and_the_doctor_says_so(
    info: str, name: str, *, is_new_enough: bool
) -> None:
    engine = engine_of(parse_info(info.encode()))
    assert str(engine) == name
    assert engine.fault == ("" if is_new_enough else f"{name} is too old: Redis 7.0 or Valkey 8.0, or newer, is needed")
    if is_new_enough:
        return
    answer, time = f"${len(info)}\r\n{info}\r\n".encode(), b"*2\r\n$1\r\n1\r\n$1\r\n0\r\n"
    async with ScriptedRedis(INFO=[answer], TIME=[time], CONFIG=[b"*0\r\n"]) as redis:
        store = Store(redis.url, timeout_seconds=PATIENCE)
        with pytest.raises(UnusableRedis, match=f"^{engine.fault}$"):
            await store.open()
        await store.close()
        found = await doctor_redis.check_redis(redis.url, PATIENCE)
    assert [one.state for one in found if one.sentence == engine.fault] == [CheckState.BROKEN]


@pytest.mark.parametrize("form", [None, str(STORED_FORM - 1), str(STORED_FORM + 1)])
async def test_data_of_another_version_is_refused_with_the_way_out(
    store: Store, people: People, raw: "redis.Redis", form: str | None
) -> None:
    await people.user("ann")
    await store.open()
    raw.hdel(keys.META, "form")
    if form is not None:
        raw.hset(keys.META, "form", form)
    with pytest.raises(UnusableRedis, match="start with an empty Redis"):
        await store.open()


async def test_an_eviction_policy_is_logged_as_a_warning(
    redis_url: str, raw: "redis.Redis", caplog: pytest.LogCaptureFixture, store: Store
) -> None:
    with caplog.at_level(logging.WARNING):
        await store.open()
        assert caplog.messages == []
        raw.config_set("maxmemory-policy", "allkeys-lru")
        try:
            await store.open()
        finally:
            raw.config_set("maxmemory-policy", "noeviction")
    assert len(caplog.messages) == 1
    assert "allkeys-lru" in caplog.messages[0]


async def test_connections_are_bounded(store: Store, people: People, raw: "redis.Redis") -> None:
    ann = await people.user("Ann")
    await asyncio.gather(*(people.status(ann) for _ in range(500)))
    clients = raw.client_list()
    assert isinstance(clients, list)
    assert len(clients) <= 1 + len(Lane), "one of the test, and at most one a lane"
