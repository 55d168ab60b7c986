"""The embedded Redis: its start, its stop, and what happens when a process is killed."""

import asyncio
import base64
import fcntl
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
    EmbeddedRedis,
    EmbeddedRedisError,
    engine_of_binary,
    find_redis_binary,
)
from stream_server.runtime.redis_folder import LOCK_FILE
from tests.processes import alive
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.runtime.embedding import (
    client,
    read_log,
    redis_of_another_process,
    started_redis,
    until_ended,
    write,
)
from tests.tiers import each_engine
from tests.waiting import PATIENCE


@pytest.fixture(params=each_engine())
def binary(request: pytest.FixtureRequest) -> Path:
    """Each engine of this machine."""
    return binaries()[request.param]


async def test_redis_keeps_all_data_and_listens_on_no_port(tmp_path: Path, binary: Path) -> None:
    async with started_redis(tmp_path, binary=binary) as embedded:
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
        assert embedded.engine == engine_of_binary(binary)


async def test_data_remain_after_a_stop(tmp_path: Path, binary: Path) -> None:
    async with started_redis(tmp_path, binary=binary) as first:
        write(first.url, "a", "b")
    await until_ended(first.redis_pid, first.watcher_pid)
    assert not first.socket.parent.exists()
    async with started_redis(tmp_path, binary=binary) as second:
        assert read_log(second.url) == ["a", "b"]


async def test_temporary_data_are_removed(binary: Path) -> None:
    async with started_redis(None, binary=binary) as embedded:
        write(embedded.url, "a")
        assert embedded.folder.exists()
    await embedded.stop()
    assert not embedded.folder.exists()
    assert not embedded.socket.parent.exists()


async def test_appendfsync_and_extra_arguments_reach_redis(tmp_path: Path) -> None:
    async with started_redis(tmp_path, appendfsync="everysec", extra=["--maxmemory", "64mb"]) as embedded:
        with client(embedded.url) as connection:
            assert connection.config_get("appendfsync") == {"appendfsync": "everysec"}
            assert connection.config_get("maxmemory") == {"maxmemory": "67108864"}


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_killing_the_server_ends_redis(binary: Path, *, is_stopped: bool) -> None:
    """Redis ends even if it is stopped with SIGSTOP."""
    async with redis_of_another_process("-", binary) as holder:
        redis_pid, watcher = await holder.hear("redis"), await holder.hear("watcher")
        if is_stopped:
            os.kill(redis_pid, signal.SIGSTOP)
        holder.kill()
        assert await holder.end() == -signal.SIGKILL
        await until_ended(redis_pid, watcher)
        assert not Path(await holder.hear("socket")).parent.exists()


async def test_a_redis_whose_watcher_was_killed_ends_with_its_server(tmp_path: Path) -> None:
    async with started_redis(tmp_path) as embedded:
        os.kill(embedded.watcher_pid, signal.SIGKILL)
        write(embedded.url, "a")
    await until_ended(embedded.redis_pid)
    async with started_redis(tmp_path) as again:
        assert read_log(again.url) == ["a"]


async def test_the_next_server_removes_what_a_killed_watcher_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as own:
        # Its own folder for temporary files, because a server of another test removes what it finds there too.
        monkeypatch.setenv("TMPDIR", own)
        monkeypatch.setattr(tempfile, "tempdir", own)
        async with redis_of_another_process(tmp_path, find_redis_binary().path) as holder:
            watcher_pid, redis_pid = await holder.hear("watcher"), await holder.hear("redis")
            scratch = Path(await holder.hear("socket")).parent
            write(await holder.hear("url"), "a")
            os.kill(holder.pid, signal.SIGSTOP)  # else it removes the folder itself when its Redis ends
            os.kill(watcher_pid, signal.SIGKILL)
            os.kill(redis_pid, signal.SIGKILL)
            holder.kill()
            await holder.end()
            await until_ended(redis_pid)
        assert (scratch.parent, scratch.exists()) == (Path(own), True)
        async with started_redis(tmp_path) as again:
            assert not scratch.exists()
            assert read_log(again.url) == ["a"]


async def test_the_server_learns_the_exit_code_of_redis(tmp_path: Path, binary: Path) -> None:
    async with started_redis(tmp_path, binary=binary) as embedded:
        write(embedded.url, "a", "b")
        os.kill(embedded.redis_pid, signal.SIGKILL)
        assert await asyncio.wait_for(embedded.wait_exit(), PATIENCE) == -signal.SIGKILL
    async with started_redis(tmp_path, binary=binary) as again:
        assert read_log(again.url) == ["a", "b"]


async def test_redis_still_answers_after_ctrl_c(binary: Path) -> None:
    async with redis_of_another_process("-", binary) as holder:
        redis_pid, watcher = await holder.hear("redis"), await holder.hear("watcher")
        holder.interrupt()
        assert await holder.hear("goodbye") is True
        assert await holder.end() == 0
        assert not alive(redis_pid)
        assert not alive(watcher)


@pytest.mark.extended
async def test_a_second_server_on_the_data_folder_is_refused(tmp_path: Path) -> None:
    async with started_redis(tmp_path) as first:
        write(first.url, "a")
        with pytest.raises(EmbeddedRedisError, match="is in use by another server") as refusal:
            await EmbeddedRedis.start(tmp_path)
        assert str(tmp_path) in str(refusal.value)
        assert str(first.redis_pid) in str(refusal.value)
        assert "\n" not in str(refusal.value)
        assert read_log(first.url) == ["a"]


async def test_a_start_waits_for_the_redis_of_a_killed_server_to_end(tmp_path: Path) -> None:
    lock = os.open(tmp_path / LOCK_FILE, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    asyncio.get_running_loop().call_later(0.3, os.close, lock)
    async with started_redis(tmp_path) as embedded:
        assert read_log(embedded.url) == []


@pytest.mark.extended
async def test_a_redis_that_outlives_its_server_keeps_its_folder_locked(tmp_path: Path) -> None:
    binary = find_redis_binary().path
    stubborn = tmp_path / "redis-server"  # a shell before Redis: the signal to end stops at the shell
    stubborn.write_text(f'#!/bin/sh\n"{binary}" "$@"\nexit $?\n')
    stubborn.chmod(0o755)
    data = tmp_path / "data"
    async with redis_of_another_process(data, stubborn) as holder:
        with client(await holder.hear("url")) as connection:
            left = connection.info("server")["process_id"]
        holder.kill()
        await holder.end()
        await until_ended(await holder.hear("watcher"))
        assert alive(left)
        try:
            with pytest.raises(EmbeddedRedisError, match="is in use by another server"):
                await EmbeddedRedis.start(data, binary=binary)
        finally:
            os.kill(left, signal.SIGKILL)
        async with started_redis(data, binary=binary) as free:
            assert read_log(free.url) == []


def newest_of(program: str) -> Path:
    """Return the newest Valkey or Redis of this machine; skips the test if there is none."""
    found = [path for name, path in binaries().items() if name.startswith(program)]
    return found[0] if found else pytest.skip(f"no {program} on this machine")


async def test_valkey_takes_over_the_folder_of_redis_7_0_and_no_redis_takes_it_back(tmp_path: Path) -> None:
    """A Redis cannot load what Valkey wrote, as the plain Redis shows."""
    redis, valkey = newest_of("Redis"), newest_of("Valkey")
    if binaries().get("Redis 7.0") != redis:
        pytest.skip("needs the Redis 7.0 of Debian on PATH")
    async with started_redis(tmp_path / "data", binary=redis) as first:
        write(first.url, "a")
    assert (tmp_path / "data" / "redis.version").read_text() == f"{first.engine}\n"
    async with started_redis(tmp_path / "data") as taken:
        assert read_log(taken.url) == ["a"]
        write(taken.url, "b")
    assert taken.engine == engine_of_binary(valkey)
    assert (tmp_path / "data" / "redis.version").read_text() == f"{taken.engine}\n"
    with pytest.raises(EmbeddedRedisError, match=f"written by {taken.engine}, and {first.engine} cannot read it"):
        await EmbeddedRedis.start(tmp_path / "data", binary=redis)
    plain = RedisProcess(redis, "--appendonly", "yes")
    shutil.copytree(tmp_path / "data" / "appendonlydir", plain.folder / "appendonlydir")
    with pytest.raises(TimeoutError, match="Bad file format"):
        plain.start()
    plain.stop()
    async with started_redis(tmp_path / "data", binary=valkey) as untouched:
        assert read_log(untouched.url) == ["a", "b"]


REDIS_6_2 = (
    "UkVESVMwMDA5+glyZWRpcy12ZXIGNi4yLjE0+gpyZWRpcy1iaXRzwED6BWN0aW1lwuF5CGv6CHVzZWQtbWVtwlhQDgD6DGFvZi1wcmVhbWJsZcAB"
    "/gD7AQAAAWHABv+IJdKwZHgM+CoyDQokNg0KU0VMRUNUDQokMQ0KMA0KKjMNCiQzDQpzZXQNCiQxDQpiDQokMQ0KNw0K"
)
"""The file ``appendonly.aof`` of a Redis 6.2.14 with the keys a = 6, in its snapshot, and b = 7, behind it."""


async def test_a_folder_of_redis_6_2_opens(tmp_path: Path, binary: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(base64.b64decode(REDIS_6_2))
    (tmp_path / "redis.version").write_text("6\n")
    async with started_redis(tmp_path, binary=binary) as embedded:
        with client(embedded.url) as connection:
            assert connection.mget("a", "b") == [b"6", b"7"]
    assert (tmp_path / "redis.version").read_text() == f"{embedded.engine}\n"


async def test_a_failed_start_leaves_the_folder_to_the_program_that_wrote_it(tmp_path: Path, binary: Path) -> None:
    (tmp_path / "appendonly.aof").write_bytes(base64.b64decode(REDIS_6_2))
    (tmp_path / "redis.version").write_text("6\n")
    with pytest.raises(EmbeddedRedisError, match="ended at once"):
        await EmbeddedRedis.start(tmp_path, binary=binary, extra=["--no-such-option", "1"])
    assert (tmp_path / "redis.version").read_text() == "6\n"


def manifest_of(folder: Path) -> str:
    """Return the list of the parts of an append-only file, as docs/operations.md tells to write it."""
    parts = sorted(folder.glob("appendonly.aof.*"))
    return "".join(
        f"file {part.name} seq {part.name.split('.')[2]} type {'b' if '.base.' in part.name else 'i'}\n"
        for part in parts
    )


@pytest.mark.parametrize("gone", ["manifest", "folder"])
@pytest.mark.parametrize("is_recorded", [True, False])
async def test_data_that_redis_would_not_see_stop_the_start(
    tmp_path: Path, binary: Path, gone: str, *, is_recorded: bool
) -> None:
    """Redis itself would start empty. With the file back, the data are there. Without any of it, Redis begins anew."""
    data, kept = tmp_path / "data", tmp_path / "kept"
    async with started_redis(data, binary=binary) as first:
        write(first.url, "a")
    if not is_recorded:
        (data / "redis.version").unlink()
    lost = data / {"folder": "appendonlydir", "manifest": "appendonlydir/appendonly.aof.manifest"}[gone]
    lost.rename(kept)
    if is_recorded or gone != "folder":
        with pytest.raises(EmbeddedRedisError, match="would start empty: restore that file") as refusal:
            await EmbeddedRedis.start(data, binary=binary)
        assert str(data) in str(refusal.value)
        if lost.suffix == ".manifest":
            lost.write_text(manifest_of(lost.parent))
        else:
            kept.rename(lost)
        async with started_redis(data, binary=binary) as found:
            assert read_log(found.url) == ["a"]
        shutil.rmtree(data)
    async with started_redis(data, binary=binary) as anew:
        assert read_log(anew.url) == []


async def test_a_first_start_that_was_killed_locks_nothing(tmp_path: Path, binary: Path) -> None:
    """Redis makes the parts of its file before their list."""
    parts = tmp_path / "appendonlydir"
    parts.mkdir()
    (parts / "appendonly.aof.1.base.rdb").write_bytes(bytes(89))
    (parts / "appendonly.aof.1.incr.aof").touch()
    async with started_redis(tmp_path, binary=binary) as embedded:
        assert read_log(embedded.url) == []


def tear(folder: Path) -> None:
    """Truncate the append-only file inside its last script, as a power cut may."""
    file = max(folder.glob("appendonlydir/*.incr.aof"), key=lambda p: int(p.name.split(".")[-3]))
    last = file.read_bytes().rindex(b"*3\r\n$3\r\nSET\r\n$4\r\nlast")
    os.truncate(file, last + 10)


async def test_a_torn_append_only_file_costs_no_acknowledged_write(tmp_path: Path, binary: Path) -> None:
    async with started_redis(tmp_path, binary=binary) as first:
        write(first.url, "a", "b", "lost")
        os.kill(first.redis_pid, signal.SIGKILL)
        await asyncio.wait_for(first.wait_exit(), PATIENCE)
    tear(tmp_path)
    async with started_redis(tmp_path, binary=binary) as second:
        assert read_log(second.url) == ["a", "b"]
        write(second.url, "c", "d")
        os.kill(second.redis_pid, signal.SIGKILL)
        await asyncio.wait_for(second.wait_exit(), PATIENCE)
    async with started_redis(tmp_path, binary=binary) as third:
        assert read_log(third.url) == ["a", "b", "c", "d"]


async def test_a_rewrite_that_redis_begins_by_itself_is_no_fault(tmp_path: Path, binary: Path) -> None:
    """Redis does so if its file had grown too long when it ended."""
    async with started_redis(tmp_path, binary=binary) as first:
        write(first.url, *"abcdefgh")
    slow = ["--auto-aof-rewrite-min-size", "1", "--auto-aof-rewrite-percentage", "1", "--rdb-key-save-delay", "50000"]
    async with started_redis(tmp_path, binary=binary, extra=slow) as second:
        assert read_log(second.url) == [*"abcdefgh"]
    assert "Starting automatic rewriting of AOF" in (tmp_path / "redis.log").read_text()


async def test_redis_is_ready_when_all_data_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading may take longer than the silence that counts as failure, because a loading Redis is not silent."""
    async with started_redis(tmp_path) as first:
        with client(first.url) as connection:
            connection.mset({f"key:{number}": os.urandom(100) for number in range(400)})
    async with started_redis(tmp_path):
        pass  # its rewrite leaves a compact file, whose loading can be slowed down key by key
    monkeypatch.setattr(module, "SILENCE_SECONDS", 1.0)
    slow = ["--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024"]
    async with started_redis(tmp_path, extra=slow) as embedded:
        with client(embedded.url) as connection:
            assert connection.dbsize() == 400
    took = re.findall(r"DB loaded from .*: ([\d.]+) seconds", (tmp_path / "redis.log").read_text())
    assert float(took[-1]) > module.SILENCE_SECONDS, "it was slow enough to be taken for silence"


async def test_a_redis_that_never_answers_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mute = tmp_path / "redis-server"
    mute.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Redis server v=7.9.9" || exec tail -f /dev/null\n')
    mute.chmod(0o755)
    monkeypatch.setattr(module, "SILENCE_SECONDS", 0.3)
    with pytest.raises(EmbeddedRedisError, match=r"did not answer for 0\.3 s"):
        await EmbeddedRedis.start(tmp_path / "data", binary=mute)


async def test_a_failed_start_shows_the_log_of_redis(tmp_path: Path, binary: Path) -> None:
    with pytest.raises(EmbeddedRedisError, match="no-such-option") as refusal:
        await EmbeddedRedis.start(tmp_path, binary=binary, extra=["--no-such-option", "1"])
    assert "ended at once with code 1" in str(refusal.value)
    async with started_redis(tmp_path, binary=binary) as free:
        assert read_log(free.url) == []


def damage(folder: Path) -> tuple[Path, bytes]:
    """Overwrite a command in the middle of the append-only file. Returns the file and its new content."""
    file = max(folder.glob("appendonlydir/*.incr.aof"), key=lambda path: path.stat().st_size)
    content = file.read_bytes()
    damaged = content.replace(b"RPUSH", b"\x00\x00\x00\x00\x00\r\nnonsense", 1)
    assert damaged != content
    file.write_bytes(damaged)
    return file, damaged


async def test_damaged_data_stop_the_start_and_stay_unchanged(tmp_path: Path, binary: Path) -> None:
    async with started_redis(tmp_path, binary=binary) as first:
        write(first.url, *"abcdefgh")
    file, damaged = damage(tmp_path)
    with pytest.raises(EmbeddedRedisError, match=r"in the middle: after [0-9]+ good bytes, .*restore a backup"):
        await EmbeddedRedis.start(tmp_path, binary=binary)
    assert file.read_bytes() == damaged
