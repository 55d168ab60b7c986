"""Each state in which `serve` refuses to start, or a write fails, is a finding of `doctor`."""

import asyncio
import fcntl
import json
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from stream_server.commands import doctor_redis
from stream_server.commands.doctor_machine import CheckState
from stream_server.errors import ApiError
from stream_server.runtime.append_only_file import list_parts
from stream_server.security.clock_check import ClockCheck
from stream_server.store.store import Store
from stream_server.store.write_guard import WriteGuard
from tests import unprivileged
from tests.command_line import COMMAND, Outcome, clean_environment, invoke, run
from tests.redis_process import RedisProcess, newest
from tests.stream_server.runtime.embedding import started_redis, write
from tests.stream_server.store.people import People, open_store
from tests.waiting import PATIENCE

BINARY = newest()


class Place(NamedTuple):
    """What a state is made of: the data folder, which a server has used before, and a folder for other files."""

    data: Path
    other: Path


class Prepared(NamedTuple):
    """A state: further flags and variables of both commands, and whether it is one only without root's rights."""

    flags: tuple[str, ...] = ()
    variables: Mapping[str, str] = MappingProxyType({})
    needs_rights: bool = False


def no_rights(name: str) -> Callable[[Place], AbstractContextManager[Prepared]]:
    @contextmanager
    def made(place: Place) -> Iterator[Prepared]:
        path = place.data / name
        if not path.exists():
            path.write_text("x" * 64)
        path.chmod(0)
        yield Prepared(needs_rights=True)
        path.chmod(0o700)

    return made


@contextmanager
def closed_parent(place: Place) -> Iterator[Prepared]:
    place.other.chmod(0)
    yield Prepared(("--data-dir", str(place.other / "data")), needs_rights=True)
    place.other.chmod(0o700)


def a_file(place: Place) -> AbstractContextManager[Prepared]:
    (place.other / "file").touch()
    return nullcontext(Prepared(("--data-dir", str(place.other / "file"))))


def newer_redis(place: Place) -> AbstractContextManager[Prepared]:
    (place.data / "redis.version").write_text("Valkey 99.0.0\n")
    return nullcontext(Prepared())


def lost_data(place: Place) -> AbstractContextManager[Prepared]:
    (place.data / "appendonlydir" / "appendonly.aof.manifest").unlink()
    return nullcontext(Prepared())


@contextmanager
def locked(place: Place) -> Iterator[Prepared]:
    with (place.data / "redis.lock").open("w") as lock:
        lock.write("4711")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Prepared()


def readable_key(place: Place) -> AbstractContextManager[Prepared]:
    (place.data / "jwt.secret").write_text("x" * 64)
    (place.data / "jwt.secret").chmod(0o644)
    return nullcontext(Prepared())


def zeros_behind_the_data(place: Place) -> AbstractContextManager[Prepared]:
    with list_parts(place.data)[-1].open("ab") as part:
        part.write(bytes(4096))
    return nullcontext(Prepared())


@contextmanager
def used_port(_: Place) -> Iterator[Prepared]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield Prepared(("--port", str(other.getsockname()[1])))


def given(*flags: str, **variables: str) -> Callable[[Place], AbstractContextManager[Prepared]]:
    named = {f"STREAM_SERVER_{name.upper()}": value for name, value in variables.items()}
    return lambda _: nullcontext(Prepared(flags, named))


def redis_that(spoil: Callable[[RedisProcess], None], scheme: str = "redis") -> Callable[[Place], Any]:
    @contextmanager
    def made(_: Place) -> Iterator[Prepared]:
        with RedisProcess(BINARY, port=0) as server:
            spoil(server)
            yield Prepared(("--redis", server.url.replace("redis:", f"{scheme}:")))

    return made


def locked_out(server: RedisProcess) -> None:
    with server.client() as client:
        client.config_set("requirepass", "hunter22")


def without_scripts(server: RedisProcess) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-@scripting", "-set")


NOBODY = "redis://127.0.0.1:1"

MACHINE = {
    "the data folder is closed": (no_rights("."), "Permission denied", "cannot be read and written"),
    "a folder above is closed": (closed_parent, "Permission denied", "Permission denied"),
    "the data folder is a file": (a_file, "Not a directory|File exists", "cannot be read and written|Not a directory"),
    "the lock is another user's": (no_rights("redis.lock"), "Permission denied: .*redis.lock", "redis.lock cannot be"),
    "the log is another user's": (no_rights("redis.log"), "Permission denied: .*redis.log", "redis.log cannot be"),
    "the version is hidden": (no_rights("redis.version"), "redis.version: Permission", "redis.version cannot be"),
    "the data are hidden": (no_rights("appendonlydir"), "ended at once|Permission denied", "appendonlydir cannot be"),
    "the key is hidden": (no_rights("jwt.secret"), "jwt.secret: Permission", "jwt.secret"),
    "others can read the key": (readable_key, "other users can read .*jwt.secret", "other users can read .*jwt.secret"),
    "a newer Redis wrote the data": (newer_redis, "was written by Valkey 99", "was written by Valkey 99"),
    "the list of the data is gone": (lost_data, "would start empty", "would start empty"),
    "zeros end the data": (zeros_behind_the_data, "4,096 zeros: `stream-server me", "4,096 zeros: `stream-server mend"),
    "another server runs on the folder": (locked, "in use by another server.*4711", "in use by another server.*4711"),
    "the port is in use": (used_port, "Address already in use", "Address already in use"),
    "the key is short": (given(jwt_secret="short"), "jwt_secret must be 32 bytes", "jwt_secret must be 32 bytes"),
    "the key of the bus is short": (given(bus_secret="short"), "bus_secret must be 32", "bus_secret must be 32"),
    "traces go nowhere": (given(otlp_endpoint="nowhere"), "--otlp-endpoint must be", "--otlp-endpoint must be"),
    "Redis is away": (given("--redis", NOBODY), "Redis of --redis cannot be reached", "Redis cannot be reached"),
    "Redis has another password": (redis_that(locked_out), "Redis of --redis refuses", "Redis refuses"),
    "Redis gives no rights": (redis_that(without_scripts), "refuses: .*permissions", "writes: .*permissions"),
    "Redis is no cluster": (redis_that(lambda _: None, "redis+cluster"), "is not in a cluster", "cluster support dis"),
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    async def use_the_folder() -> None:
        async with started_redis(tmp_path / "data") as embedded:
            write(embedded.url, "a")

    (tmp_path / "other").mkdir()
    asyncio.run(use_the_folder())
    return Place(tmp_path / "data", tmp_path / "other")


@pytest.mark.extended
@pytest.mark.parametrize("state", MACHINE)
def test_the_doctor_finds_why_serve_refuses(place: Place, state: str) -> None:
    """Both say it in one sentence, and nothing ends with a traceback."""
    prepare, refusal, finding = MACHINE[state]
    with prepare(place) as prepared:
        variables = {"STREAM_SERVER_REDIS_TIMEOUT_SECONDS": "1", **prepared.variables}
        flags = ("--data-dir", str(place.data), "--port", "0", *prepared.flags)
        served = serve(*flags, env=clean_environment(**variables), needs_rights=prepared.needs_rights)
        with unprivileged.without_rights():
            asked = invoke("doctor", "--json", *flags, env=variables)
    assert served.code in {1, 2, 3}, served
    assert asked.code == 1, asked
    broken = [each["sentence"] for each in json.loads(asked.out) if each["state"] == "broken"]
    assert re.search(refusal, served.err), served.err
    assert re.search(finding, "\n".join(broken)), broken


def serve(*flags: str, env: Mapping[str, str], needs_rights: bool) -> Outcome:
    """Run `serve` to its end. A start without root's rights imports the server anew, which takes a second."""
    if not needs_rights:
        return run("serve", *flags, env=env)
    ended = unprivileged.run([*COMMAND, "serve", *flags], env)
    assert "Traceback" not in ended.stderr, ended
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


def replica(server: RedisProcess) -> None:
    with server.client() as client:
        client.replicaof("127.0.0.1", "1")


def setting(name: str, value: str) -> Callable[[RedisProcess], None]:
    def change(server: RedisProcess) -> None:
        with server.client() as client:
            client.config_set(name, value)

    return change


def nearly_full(server: RedisProcess) -> None:
    with server.client() as client:
        client.setrange("ballast", 20 * 2**20, "x")
        client.config_set("maxmemory", int(client.info("memory")["used_memory"] / 0.95))


def broken_disk(server: RedisProcess) -> None:
    """Make the next write to the disk fail: the folder of the snapshots is gone."""
    with server.client() as client:
        client.config_set("save", "3600 1")
        shutil.rmtree(client.config_get("dir")["dir"])
        client.set("a", "b")
        client.bgsave()
        while client.info("persistence")["rdb_bgsave_in_progress"]:
            pass


def without_rights(server: RedisProcess) -> None:
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "default", "-@write")


REDIS = {
    "full": (setting("maxmemory", "1mb"), "nearly full", "refuses writes: .*maxmemory"),
    "nearly full": (nearly_full, "nearly full", "uses 95% of its memory"),
    "a replica": (replica, "accepts no writes", "refuses writes: .*read only replica"),
    "without the replicas that it wants": (setting("min-replicas-to-write", "1"), "accepts no writes", "NOREPLICAS"),
    "unable to save": (broken_disk, "cannot be reached", "refuses: MISCONF"),
    "with another password": (locked_out, "does not let this server in", "refuses: .*(NOAUTH|Authentication|password)"),
    "without rights": (without_rights, "refused a command|may have been made", "NOPERM|permissions"),
}  # fmt: skip


async def guarded_write(store: Store) -> None:
    """Write as a server does, after a look at Redis."""
    guard = WriteGuard(store.state, 0, ClockCheck().compare)
    with suppress(ApiError):
        await guard.check()
    guard.refuse_writes()
    await People(store).user("Ann")


@pytest.mark.parametrize("state", REDIS)
async def test_the_doctor_finds_why_writes_fail(tmp_path: Path, state: str) -> None:
    spoil, refusal, finding = REDIS[state]
    (tmp_path / "snapshots").mkdir()
    with RedisProcess(BINARY, "--dir", str(tmp_path / "snapshots")) as server:
        async with open_store(server.url) as store:
            spoil(server)
            with pytest.raises(ApiError, match=refusal):
                await guarded_write(store)
        found = await doctor_redis.check_redis(server.url, PATIENCE)
    broken = [each.sentence for each in found if each.state is CheckState.BROKEN]
    assert re.search(finding, "\n".join(broken)), found
    assert "hunter22" not in str(found)
