"""A start or a stop of the embedded Redis that is cancelled leaves no process, no folder and no lock."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from stream_server.runtime.embedded_redis import EmbeddedRedis
from tests.processes import alive
from tests.stream_server.runtime.embedding import read_log, started_redis, write


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_cancelled_start_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path_factory.mktemp("t")
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    cancelled = 0
    for step in range(8):
        start = asyncio.create_task(EmbeddedRedis.start(tmp_path))
        await asyncio.wait({start}, timeout=0.02 * step)
        start.cancel()
        try:
            await (await start).stop()
        except asyncio.CancelledError:
            cancelled += 1
        assert files_in(short) == []
    assert cancelled > 0
    async with started_redis(tmp_path) as embedded:
        assert read_log(embedded.url) == []


async def test_a_stop_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    embedded = await EmbeddedRedis.start(tmp_path)
    try:
        write(embedded.url, "a")
        stop = asyncio.create_task(embedded.stop())
        await asyncio.sleep(0)  # the stop waits for the end of Redis
        stop.cancel()
        await asyncio.wait({stop})
        assert stop.cancelled()
        assert not alive(embedded.redis_pid)
        assert not embedded.socket.parent.exists()
    finally:
        await embedded.stop()
    async with started_redis(tmp_path) as again:
        assert read_log(again.url) == ["a"]
