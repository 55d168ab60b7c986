"""`mend` and the start of the embedded Redis, on a data folder whose append-only file has a damaged end."""

import asyncio
import fcntl
import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stream_server.runtime.append_only_file import MANIFEST, find_damage, list_parts
from stream_server.runtime.embedded_redis import EmbeddedRedis, EmbeddedRedisError, find_redis_binary
from tests.command_line import invoke
from tests.redis_process import RedisProcess, binaries
from tests.stream_server.runtime.embedding import read_log, started_redis, write
from tests.tiers import each_engine
from tests.waiting import PATIENCE

TRANSACTION = b"*1\r\n$5\r\nMULTI\r\n*3\r\n$5\r\nRPUSH\r\n$3\r\nlog\r\n$4\r\nnope\r\n"
HALF = b"*3\r\n$5\r\nRPUSH\r\n$3\r\nlog\r\n$400\r\nhalf of a value"

NO_COMMAND = "bytes that are no whole command"

ENDS: dict[str, tuple[bytes, str]] = {
    "a page of zeros": (bytes(4096), "4,096 bytes behind them that Redis cannot read: 4,096 zeros"),
    "many zeros": (bytes(3_000_001), "3,000,001 zeros"),
    "zeros in a transaction": (TRANSACTION + bytes(4096), f"{len(TRANSACTION)} {NO_COMMAND} and 4,096 zeros"),
    "zeros in a command": (HALF + bytes(4096), f"{len(HALF)} {NO_COMMAND} and 4,096 zeros"),
    "garbage": (b"\x93garbage\xff" * 100, "900 bytes that are no whole command"),
    "garbage with the end of a line": (b"\x93garbage\r\n" * 100, "1,000 bytes that are no whole command"),
}
"""What stands behind the last command, and what is said of it."""

CUT_ENDS = {"a half command": HALF, "a transaction without end": TRANSACTION}
"""Ends that Redis itself drops."""


def fill(data: Path, *values: str, binary: Path | None = None) -> Path:
    """Let an embedded Redis write ``values``, and return the part of its file that has them."""

    async def use() -> None:
        async with started_redis(data, binary=binary) as embedded:
            write(embedded.url, *values)

    asyncio.run(use())
    return list_parts(data)[-1]


def start(data: Path, binary: Path | None = None) -> list[str]:
    """Start the embedded Redis on the folder and return the values that it has."""

    async def use() -> list[str]:
        async with started_redis(data, binary=binary) as embedded:
            return read_log(embedded.url)

    return asyncio.run(use())


def append(part: Path, end: bytes) -> int:
    """Append bytes to a part. Return its size before."""
    size = part.stat().st_size
    with part.open("ab") as file:
        file.write(end)
    return size


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Let no file grow above ``size``: writes fail as on a full disk."""
    kept = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, kept[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, kept)


@pytest.mark.parametrize("engine", each_engine())
@pytest.mark.parametrize("end", ENDS)
def test_a_damaged_end_is_refused_shown_and_cut(tmp_path: Path, end: str, engine: str) -> None:
    data, (damage, said), binary = tmp_path / "data", ENDS[end], binaries()[engine]
    part = fill(data, "a", "b", binary=binary)
    size = append(part, damage)
    with pytest.raises(EmbeddedRedisError) as refused:
        start(data, binary)
    told = (f"{part} has {size:,} good bytes", said, f"`stream-server mend --data-dir {data}`")
    assert [words for words in told if words not in str(refused.value)] == []
    asked = invoke("mend", "--data-dir", data)
    assert (asked.code, "--yes" in asked.err, said in asked.err) == (1, True, True)
    assert part.stat().st_size == size + len(damage)
    outcome = invoke("mend", "--data-dir", data, "--yes")
    assert outcome.code == 0, outcome
    assert (data / f"{part.name}.from-{size}").read_bytes() == damage
    assert start(data) == ["a", "b"]
    assert "no damage" in invoke("mend", "--data-dir", data, "--yes").out


@pytest.mark.parametrize("end", CUT_ENDS)
def test_redis_drops_a_command_that_is_only_cut(tmp_path: Path, end: str) -> None:
    """`mend` cuts it, too, for a Redis that is told not to."""
    part = fill(tmp_path / "data", "a")
    shutil.copytree(tmp_path / "data", tmp_path / "other")
    size = append(part, CUT_ENDS[end])
    other = tmp_path / "other" / "appendonlydir" / part.name
    append(other, CUT_ENDS[end])
    assert start(tmp_path / "data") == ["a"]
    outcome = invoke("mend", "--data-dir", tmp_path / "other", "--yes", "--json")
    assert "an unfinished command or transaction" in outcome.err
    told = json.loads(outcome.out)
    assert (told["damage"]["keeps"], told["damage"]["is_cut"]) == (size, True)
    assert start(tmp_path / "other") == ["a"]


@pytest.mark.parametrize("hole", [bytes(4096), b"garbage", HALF + bytes(4096)])
def test_a_damage_in_the_middle_is_refused_with_its_figures(tmp_path: Path, hole: bytes) -> None:
    part = fill(tmp_path, "a", "b")
    commands = part.read_bytes()
    size = append(part, hole + commands)
    for _ in range(2):
        with pytest.raises(EmbeddedRedisError, match=f"damaged in the middle: after {size:,} good bytes, .*backup"):
            start(tmp_path)
        outcome = invoke("mend", "--data-dir", tmp_path, "--yes")
        assert (outcome.code, "restore a backup" in outcome.err) == (1, True)
        assert part.read_bytes() == commands + hole + commands


def test_a_damaged_part_before_another_with_commands_is_no_end(tmp_path: Path) -> None:
    """As after a power cut during a rewrite, whose next part has commands, or none yet."""
    part = fill(tmp_path, "a")
    commands = part.read_bytes()
    append(part, bytes(4096))
    later = part.with_name(part.name.replace(".incr.", "1.incr."))
    number = later.name.split(".")[2]
    with (part.parent / "appendonly.aof.manifest").open("a") as manifest:
        manifest.write(f"file {later.name} seq {number} type i\n")
    later.write_bytes(commands)
    assert "damaged in the middle" in invoke("mend", "--data-dir", tmp_path, "--yes").err
    later.write_bytes(b"")
    assert invoke("mend", "--data-dir", tmp_path, "--yes").code == 0
    assert start(tmp_path) == ["a"]


@pytest.mark.parametrize("end", CUT_ENDS)
def test_a_cut_command_before_an_empty_part_is_told_and_mended(tmp_path: Path, end: str) -> None:
    """Redis drops it only at the end of the last part."""
    part = fill(tmp_path, "a")
    append(part, CUT_ENDS[end])
    later = part.with_name(part.name.replace(".incr.", "1.incr."))
    with (part.parent / MANIFEST).open("a") as manifest:
        manifest.write(f"file {later.name} seq {later.name.split('.')[2]} type i\n")
    later.touch()
    with pytest.raises(EmbeddedRedisError, match=f"`stream-server mend --data-dir {tmp_path}` cuts them off"):
        start(tmp_path)
    assert invoke("mend", "--data-dir", tmp_path, "--yes").code == 0
    assert start(tmp_path) == ["a"]


def test_no_room_for_a_copy_names_the_full_disk_and_mend(tmp_path: Path) -> None:
    """A start copies a part whose end is cut. The command needs room for the end alone."""
    part = fill(tmp_path, "a", "x" * 2_000_000)
    append(part, HALF)
    with files_up_to(1_000_000), pytest.raises(EmbeddedRedisError, match="`stream-server mend --data-dir"):
        start(tmp_path)
    assert invoke("mend", "--data-dir", tmp_path, "--yes").code == 0
    assert start(tmp_path) == ["a", "x" * 2_000_000]


def test_a_full_disk_leaves_the_end_and_no_copy(tmp_path: Path) -> None:
    part = fill(tmp_path, "a")
    append(part, bytes(3_000_000))
    before = part.read_bytes()
    with files_up_to(1_000_000):
        outcome = invoke("mend", "--data-dir", tmp_path, "--yes")
    assert (outcome.code, "File too large" in outcome.err) == (1, True)
    assert part.read_bytes() == before
    assert not list(tmp_path.glob("*.from-*"))


def test_what_a_server_has_written_since_the_cut_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service manager has started the server again before the command could start its Redis."""
    part = fill(tmp_path, "a")
    append(part, bytes(4096))

    async def too_late(folder: Path) -> EmbeddedRedis:
        monkeypatch.undo()
        async with started_redis(folder) as embedded:
            write(embedded.url, "b")
        raise EmbeddedRedisError("the data folder is in use")

    monkeypatch.setattr(EmbeddedRedis, "start", too_late)
    outcome = invoke("mend", "--data-dir", tmp_path, "--yes")
    assert (outcome.code, "another Redis has used" in outcome.err) == (1, True), outcome
    assert [copy.read_bytes() for copy in tmp_path.glob("*.from-*")] == [bytes(4096)]
    assert start(tmp_path) == ["a", "b"]


CANCELLED_START = """
import asyncio, pathlib, sys, threading
from stream_server.runtime import embedded_redis

inside = threading.Event()

def read_forever(*_, **__):
    inside.set()
    threading.Event().wait()

async def main():
    looking = asyncio.create_task(embedded_redis.EmbeddedRedis.checked(pathlib.Path(sys.argv[1])))
    await asyncio.to_thread(inside.wait)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)

setattr(embedded_redis, sys.argv[2], read_forever)
asyncio.run(main())
"""


@pytest.mark.parametrize("reading", ["start_fault", "end_fault"])
def test_a_start_that_reads_a_long_file_can_be_cancelled(tmp_path: Path, reading: str) -> None:
    """As a signal does. The process ends although the reading does not."""
    append(fill(tmp_path, "a"), b"garbage\r\n")
    subprocess.run([sys.executable, "-c", CANCELLED_START, tmp_path, reading], check=True, timeout=PATIENCE)


def test_zeros_behind_a_snapshot_are_cut(tmp_path: Path) -> None:
    """A snapshot is the whole file after a start that nothing followed."""
    fill(tmp_path, "a", "b")
    fill(tmp_path)
    snapshot, commands = list_parts(tmp_path)
    assert commands.stat().st_size == 0
    size = append(snapshot, bytes(4096))
    with pytest.raises(EmbeddedRedisError, match=r"base\.rdb has .* good bytes and .* zeros: `stream-server mend"):
        start(tmp_path)
    assert invoke("mend", "--data-dir", tmp_path, "--yes").code == 0
    assert (tmp_path / f"{snapshot.name}.from-{size}").stat().st_size == 4096
    assert start(tmp_path) == ["a", "b"]


def test_what_does_not_load_after_all_is_put_back(tmp_path: Path) -> None:
    part = fill(tmp_path, "a")
    append(part, b"*1\r\n$7\r\nNOTHING\r\n" + bytes(4096))
    before = part.read_bytes()
    outcome = invoke("mend", "--data-dir", tmp_path, "--yes")
    assert (outcome.code, "nothing was changed" in outcome.err) == (1, True)
    assert part.read_bytes() == before
    assert not list(tmp_path.glob("*.from-*"))


def test_a_running_server_is_refused(tmp_path: Path) -> None:
    part = fill(tmp_path, "a")
    append(part, bytes(4096))
    with (tmp_path / "redis.lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = invoke("mend", "--data-dir", tmp_path, "--yes")
    assert (outcome.code, "a server runs on the data folder" in outcome.err) == (1, True)
    assert find_damage(tmp_path) is not None


def test_the_folder_of_another_redis_is_mended_and_left_to_it(tmp_path: Path) -> None:
    binary = binaries()[list(binaries())[-1]]
    with RedisProcess(binary, "--appendonly", "yes", "--appendfsync", "always") as server:
        write(server.url, "a", "b")
        server.kill()
        append(list_parts(server.folder)[-1], bytes(4096))
        with pytest.raises(TimeoutError, match="Bad file format"):
            server.start()
        assert invoke("mend", "--data-dir", server.folder, "--yes").code == 0
        server.start()
        assert read_log(server.url) == ["a", "b"]


def test_folders_without_such_a_file_are_named(tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "has no append-only file"), (tmp_path / "none", "No such file or directory")):
        outcome = invoke("mend", "--data-dir", folder)
        assert (outcome.code, said in outcome.err) == (1, True)
    outcome = invoke("mend")
    assert (outcome.code, "--data-dir" in outcome.err) == (2, True)


def test_each_cut_of_commands_is_told_from_damage(tmp_path: Path) -> None:
    """Whatever byte is the last one that was written, and with zeros behind it."""
    folder = tmp_path / "appendonlydir"
    folder.mkdir()
    (folder / "appendonly.aof.manifest").write_text("file appendonly.aof.1.incr.aof seq 1 type i\n")
    part = folder / "appendonly.aof.1.incr.aof"
    first = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$3\r\nv\r\n\r\n"
    commands = first + TRANSACTION + b"*1\r\n$4\r\nexec\r\n"
    for end in range(1, len(commands)):
        good = len(first) if end >= len(first) else 0
        part.write_bytes(commands[:end])
        found = find_damage(tmp_path, reads_all=True)
        assert found is None if end == len(first) else found and (found.keeps, found.is_cut) == (good, True), end
        part.write_bytes(commands[:end] + bytes(4096))
        found = find_damage(tmp_path)
        assert found, end
        assert (found.keeps, found.zeros, found.later, found.is_cut) == (good, 4096, 0, False), end
    part.write_bytes(commands)
    assert find_damage(tmp_path, reads_all=True) is None


async def test_the_search_of_the_end_reads_no_whole_file(tmp_path: Path) -> None:
    """A start of a healthy server looks at two bytes of a part."""
    async with started_redis(tmp_path, binary=find_redis_binary().path) as embedded:
        write(embedded.url, *("x" * 100_000,) * 100)
    part = list_parts(tmp_path)[-1]
    with part.open("r+b") as file:
        file.write(b"?")  # which only a whole reading finds
    assert find_damage(tmp_path) is None
    assert find_damage(tmp_path, reads_all=True) is not None
    with pytest.raises(EmbeddedRedisError, match="damaged in the middle: after 0 good bytes"):
        await EmbeddedRedis.start(tmp_path)
