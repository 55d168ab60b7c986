"""Truth and derived data on two servers: each command is about keys of its own server.

On a cluster a mistake would show only if the two keys are on different shards. Here it always shows.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from stream_server.store import keys
from stream_server.store.pagination import PageRequest
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import EXEC, MULTI
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.store.derived_deeds import Deeds
from tests.stream_server.store.job_queue import drain, job_workers
from tests.stream_server.store.two_servers import DERIVED_DATABASE, open_split

WEEK_MS = 7 * 86_400_000


@pytest.fixture
async def split(redis_url: str, redis_server: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    with redis_server.client() as truth:
        truth.hset(keys.META, "asleep", str(_now_ms(truth) - WEEK_MS))  # home timelines may fall asleep
    async with open_split(redis_url, monkeypatch) as made:
        yield made


KEYLESS = ("DBSIZE", "EVALSHA", "INFO", "MULTI", "EXEC", "PING", "PUBLISH", "SCAN", "SCRIPT", "TIME")
"""Commands without a key, or (scripts) with a key that is checked otherwise."""


async def test_truth_and_derived_data_never_share_a_server(split: Store, redis_server: RedisProcess) -> None:
    of_truth, of_derived = _recorded(split._redis), _recorded(split._derived)
    deeds = Deeds(split)
    await deeds.do()
    await split.operation_samples.add("host", {b"{}": 1})
    await split.expiry.forget([keys.home_timeline(uid) for uid in deeds.uids], 1)
    await _sleep_and_come_back(split, redis_server, deeds.uids)
    assert await split.repair.run(fix=True) == []
    assert {key for key in of_truth if not key.startswith("{core}:")} == set()
    assert {key for key in of_derived if key.startswith("{core}:")} == set()
    names = [await _names(redis_server, database) for database in (0, DERIVED_DATABASE)]
    assert {name for name in names[0] if not name.startswith("{core}:")} == set()
    assert {keys.parse(name)[0] for name in names[1]} == {row.name for row in keys.DERIVED_KEYS}


async def _sleep_and_come_back(split: Store, server: RedisProcess, uids: list[str]) -> None:
    """Let all home timelines fall asleep, and be made again as their users read them."""
    with server.client() as truth:
        await drain(split, truth)
        truth.zadd(keys.key_for("visited"), dict.fromkeys(uids, _now_ms(truth) - WEEK_MS))
    found = {uid async for page in split.idle_homes.scan() for uid in page}
    assert await split.idle_homes.let_sleep(sorted(found), WEEK_MS / 2000) == len(found) == len(uids)
    await job_workers(split).run_until_empty()
    assert not any(name.startswith("home:") for name in await _names(server, DERIVED_DATABASE))
    for uid in uids:
        await split.timelines.read_home(uid, PageRequest(count=1))


def _now_ms(truth: Any) -> int:
    return int(truth.time()[0]) * 1000


def _recorded(client: Any) -> set[str]:
    """Return the set of the keys of all commands that the client is going to send."""
    exchange, found = client.run_pipeline, set[str]()

    async def record(commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        packed = [command for command in commands if command not in (MULTI, EXEC)]
        words = (command.split(b"\r\n")[2::2] if isinstance(command, bytes) else command for command in packed)
        keys_sent = (command[1] for command in words if command[0] not in KEYLESS)
        found.update(key.decode() if isinstance(key, bytes) else str(key) for key in keys_sent)
        replies: list[Any] = await exchange(commands, timeout_seconds)
        return replies

    client.run_pipeline = record
    return found


async def _names(server: RedisProcess, database: int) -> list[str]:
    with server.client() as client:
        client.select(database)
        found: Any = client.keys("*")
    return [name.decode() for name in found]
