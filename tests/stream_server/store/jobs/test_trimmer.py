"""The trimmer: its limits, an unreachable Redis, and a command that Redis forbids."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.jobs import upkeep
from stream_server.store.jobs.upkeep import LogTrimmer
from stream_server.store.log.retention import RetentionLimits
from stream_server.store.store import Store
from tests.redis_process import RedisProcess, newest
from tests.waiting import PATIENCE, eventually

LONG_AGO_MS = 1_710_000_000_000
"""In 2024."""


@pytest.fixture
def server() -> Any:
    """A Redis with an old log."""
    with RedisProcess(newest()) as running:
        fill(running)
        yield running


def fill(server: RedisProcess) -> None:
    """Append a thousand old entries."""
    client: Any = server.client()
    for n in range(1, 1001):
        client.xadd(keys.LOG, {"n": n, "k": "post", "a": "public", "e": b'{"wire":{}}'}, id=f"{LONG_AGO_MS + n}-0")
    client.close()


@asynccontextmanager
async def trimming(
    server: RedisProcess, bounds: RetentionLimits, timeout_seconds: float = PATIENCE
) -> AsyncIterator[LogTrimmer]:
    """Run a trimmer."""
    store = Store(server.url, timeout_seconds=timeout_seconds)
    with store.allow_slow_replies(PATIENCE):  # as the server starts: a busy machine needs time to load the scripts
        await store.open()
    made = LogTrimmer(store.retention, bounds, store.subscriptions)
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled(), running.exception()
        await store.close()


async def test_the_trimmer_trims_at_its_start_and_measures_the_log(server: RedisProcess) -> None:
    async with trimming(server, RetentionLimits(3600, 0)) as made:
        await eventually(lambda: made.trimmed_entries >= 900)
        assert made.log_size.entries == 1000 - made.trimmed_entries
        assert made.log_size.bytes > 0
        assert made.log_size.age_seconds > 3600


async def test_the_trimmer_continues_after_redis_was_silent_or_killed(
    server: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "CHECK_INTERVAL_SECONDS", (0.01, 0.02))
    async with trimming(server, RetentionLimits(0, 0), timeout_seconds=1.0) as made:
        failures = _failures(made, monkeypatch)
        await eventually(lambda: made.log_size.entries == 1000)
        server.pause()
        await eventually(lambda: failures, what="a look that failed")
        server.resume()
        server.kill()
        seen = len(failures)
        await eventually(lambda: len(failures) > seen + 2, what="looks at a dead Redis")
        server.start()
        await asyncio.to_thread(fill, server)
        made._limits = RetentionLimits(3600, 0)
        await eventually(lambda: made.trimmed_entries >= 900)


def _failures(made: LogTrimmer, monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """Record the errors of the trimmer."""
    failures: list[Exception] = []
    look = made.trim

    async def watched() -> None:
        try:
            await look()
        except Exception as error:
            failures.append(error)
            raise

    monkeypatch.setattr(made, "trim", watched)
    return failures


async def test_the_trimmer_logs_a_forbidden_command(server: RedisProcess, caplog: pytest.LogCaptureFixture) -> None:
    client: Any = server.client()
    client.execute_command("ACL", "SETUSER", "default", "-xtrim")
    client.close()
    with caplog.at_level(logging.WARNING, "stream_server.store.jobs.upkeep"):
        async with trimming(server, RetentionLimits(3600, 1000)):
            await eventually(lambda: "trimming the log failed" in caplog.text)


async def test_the_trimmer_counts_subscriptions_that_will_lose_entries(server: RedisProcess) -> None:
    """Not those at the newest entry, nor those that have lost entries: it is too late to warn of these."""
    client: Any = server.client()
    client.hset(keys.key_for("user", "1"), mapping={"id": "1", "login": "ann"})
    seconds, _ = client.time()
    limit = float(seconds - LONG_AGO_MS // 1000) * 1.1  # the log will lose its entries soon
    async with trimming(server, RetentionLimits(limit, 0)) as made:
        subscriptions = made._subscriptions
        for name, n in (("lost", 2), ("first", 6), ("later", 900), ("head", 1000)):
            cursor = Position(LONG_AGO_MS + n, 0, n)
            await subscriptions.put("1", name, {"track": "tea"}, cursor, IdempotencyKey.generate())
        await made.trim()
        assert made.endangered == 3, "none has lost entries"
        client.hset(keys.META, "n", 1000)
        client.xtrim(keys.LOG, maxlen=995, approximate=False)
        await made.trim()
        assert (made.log_size.entries, made.endangered) == (995, 2)
        assert made.log_size.kept_seconds == limit
        assert sorted(client.zrange(keys.UNACKED, 0, -1)) == [b"1 first", b"1 head", b"1 later"]
        made._limits = RetentionLimits(limit * 2, 0)
        await made.trim()
        assert made.endangered == 0
        made._limits = RetentionLimits(0, 0)
        await made.trim()
    client.close()
