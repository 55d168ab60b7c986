"""The findings of the doctor, with a durable Redis and with others."""

import asyncio
import resource
from contextlib import closing
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from filters.registry import ENTRY_POINT_GROUP, Registry
from stream_server.commands import doctor, doctor_redis
from stream_server.commands import doctor_machine as machine
from stream_server.commands.doctor_machine import CheckResult, CheckState
from stream_server.config import config
from stream_server.hub.group import leave_to_python
from tests.redis_process import RedisProcess, binaries, newest
from tests.tiers import each_engine
from tests.waiting import eventually


def outcome(findings: list[CheckResult], word: str) -> CheckState:
    """Return the state of the one finding that names ``word``."""
    (state,) = (finding.state for finding in findings if word in finding.sentence)
    return state


@pytest.mark.parametrize("which", each_engine())
async def test_a_redis_that_may_lose_data_is_reported(which: str) -> None:
    options = ("--maxmemory-policy", "allkeys-lru", "--client-output-buffer-limit", "pubsub", "8mb", "4mb", "60")
    with RedisProcess(binaries()[which], *options) as server:
        found = await doctor_redis.check_redis(server.url, 1.0)
    assert outcome(found, f"{which}.") is CheckState.GOOD
    assert outcome(found, "clocks") is CheckState.GOOD
    assert outcome(found, "appendonly off") is CheckState.ADVICE
    assert outcome(found, "allkeys-lru") is CheckState.BROKEN
    assert outcome(found, "4 MiB") is CheckState.ADVICE


@pytest.mark.parametrize("which", each_engine())
async def test_a_durable_redis_only_needs_a_rewritten_append_only_file(which: str) -> None:
    with RedisProcess(binaries()[which], "--appendonly", "yes", "--appendfsync", "always") as server:
        before = await doctor_redis.check_redis(server.url, 1.0)
        client = server.client()
        client.bgrewriteaof()
        await eventually(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
        client.close()
        after = await doctor_redis.check_redis(server.url, 1.0)
    assert outcome(before, "BGREWRITEAOF") is CheckState.ADVICE
    assert not [finding for finding in after if "BGREWRITEAOF" in finding.sentence]


async def test_snapshots_are_advised_against() -> None:
    """When one fails, Redis refuses all writes."""
    with RedisProcess(newest()) as server, closing(server.client()) as client:
        client.config_set("save", "3600 1")
        found = await doctor_redis.check_redis(server.url, 1.0)
        client.config_set("save", "")
        without = await doctor_redis.check_redis(server.url, 1.0)
    assert outcome(found, "`save` points") is CheckState.ADVICE
    assert not [finding for finding in without if "save" in finding.sentence]


async def test_an_unreachable_redis_is_broken_and_its_password_hidden(tmp_path: Path) -> None:
    found = await doctor_redis.check_redis(f"unix://:hunter22@{tmp_path}/nobody.sock", 0.2)
    assert [finding.state for finding in found] == [CheckState.BROKEN]
    assert "hunter22" not in found[0].sentence


async def test_a_missing_server_is_only_advice() -> None:
    assert (await doctor.check_server("http://127.0.0.1:9")).state is CheckState.ADVICE


def test_the_signing_key_is_checked_and_never_shown_or_created(tmp_path: Path) -> None:
    short = config.load({"jwt_secret": "hunter22"}, {})
    assert machine.check_token_key(short).state is CheckState.BROKEN
    assert "hunter22" not in machine.check_token_key(short).sentence
    kept = config.load({"data_dir": str(tmp_path)}, {})
    assert machine.check_token_key(kept).state is CheckState.GOOD
    assert not list(tmp_path.iterdir())
    (tmp_path / "jwt.secret").write_text("x" * 64)
    (tmp_path / "jwt.secret").chmod(0o644)
    assert machine.check_token_key(kept).state is CheckState.BROKEN


def test_the_data_folder_is_checked(tmp_path: Path) -> None:
    new = config.load({"data_dir": str(tmp_path / "new" / "deep")}, {})
    assert machine.check_data_folder(new)[0].state is CheckState.GOOD
    (tmp_path / "jwt.secret").touch()
    tmp_path.chmod(0o777)
    open_to_all = config.load({"data_dir": str(tmp_path)}, {})
    assert outcome(machine.check_data_folder(open_to_all), "chmod 700") is CheckState.ADVICE


@pytest.mark.parametrize(("hard", "state"), [(1024, CheckState.ADVICE), (65_536, CheckState.GOOD)])
def test_the_limit_of_open_files_is_the_hard_one(monkeypatch: pytest.MonkeyPatch, hard: int, state: CheckState) -> None:
    """A server raises its own limit up to it, so only the hard one needs a person."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, hard))
    found = machine.check_descriptors()
    assert found.state is state
    assert f" {hard} files" in found.sentence
    assert "ulimit -n" not in found.sentence


async def test_with_an_external_redis_nothing_is_said_of_an_embedded_one() -> None:
    settings = config.load({"redis": "redis://127.0.0.1:1", "redis_timeout_seconds": 1.0}, {})
    found = await doctor.run_checks(settings, "http://127.0.0.1:9", is_elsewhere=True)
    told = " ".join(each.sentence for each in found)
    assert "temporary folder" not in told
    assert "redis-server" not in told
    assert outcome(found, "each start makes another key") is CheckState.ADVICE


async def test_a_port_of_another_program_is_not_a_server_that_is_not_ready() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        found = await doctor.run_checks(config.load({"port": port}, {}), f"http://127.0.0.1:{port}")
    assert outcome(found, "another program answers") is CheckState.ADVICE
    assert outcome(found, "Address already in use") is CheckState.BROKEN


def test_the_language_of_the_fan_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "send_to_each", len)
    assert machine.check_fan_out() == (CheckState.GOOD, "fan-out in C")
    monkeypatch.setattr(machine, "send_to_each", leave_to_python)
    found = machine.check_fan_out()
    assert found.state is CheckState.ADVICE
    assert found.sentence.startswith("fan-out in Python: ")


def test_installed_filters_are_listed_and_a_broken_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = machine.check_filters()
    assert found.state is CheckState.GOOD
    assert {"follow", "track", "rule"} <= set(found.sentence.removeprefix("filters: ").split(", "))
    wrong = EntryPoint("loud", "no_such_package:Loud", ENTRY_POINT_GROUP)
    monkeypatch.setattr(Registry, "from_entry_points", lambda: Registry([wrong]))
    found = machine.check_filters()
    assert found.state is CheckState.BROKEN
    assert "filter loud (no_such_package:Loud" in found.sentence
