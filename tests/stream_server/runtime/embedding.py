"""Embedded Redises for the tests about them: to stop, to kill and to look into."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis

from stream_server.runtime.embedded_redis import EmbeddedRedis
from tests.processes import alive
from tests.program import Program, running
from tests.waiting import PATIENCE, eventually

HOLDER = "tests.stream_server.runtime.redis_holder"


@asynccontextmanager
async def started_redis(data_dir: Path | None, **options: Any) -> AsyncIterator[EmbeddedRedis]:
    embedded = await EmbeddedRedis.start(data_dir, **options)
    try:
        yield embedded
    finally:
        await embedded.stop()


@asynccontextmanager
async def redis_of_another_process(data_dir: Path | str, binary: Path) -> AsyncIterator[Program]:
    """Start an embedded Redis in another process, which a test may kill."""
    async with running(HOLDER, data_dir, binary) as holder:
        await holder.hear("url")
        yield holder


def client(url: str) -> "redis.Redis":
    """Return a blocking client with a short timeout."""
    return redis.from_url(url, socket_timeout=PATIENCE)


async def until_ended(*pids: int) -> None:
    """Wait until none of the processes runs."""
    for pid in pids:
        await eventually(partial(_dead, pid), what=f"the end of process {pid}")


def _dead(pid: int) -> bool:
    return not alive(pid)


def write(url: str, *values: str) -> None:
    """Append ``values`` to the list ``log``, each by a script of several commands, as the server writes."""
    with client(url) as connection:
        for value in values:
            connection.eval(
                "redis.call('INCR', KEYS[2]) redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('SET', KEYS[3], ARGV[1])",
                3, "log", "count", "last", value,
            )  # fmt: skip


def read_log(url: str) -> list[str]:
    with client(url) as connection:
        return [value.decode() for value in connection.lrange("log", 0, -1)]
