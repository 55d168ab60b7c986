"""Several workers on one port. Dead and frozen workers are replaced, and all workers end with the supervisor."""

import asyncio
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from socket import AF_INET, AF_INET6, SOCK_STREAM

import pytest

from stream_server.runtime.listening import CannotListen, Listeners, listen_alone, listen_as_worker, reserve_port
from stream_server.runtime.supervisor import Supervisor
from tests.end_to_end.faults.proxy import Proxy
from tests.end_to_end.supervisor_program import MODULE
from tests.processes import alive
from tests.program import Program, running
from tests.redis_process import private_redis
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended


@asynccontextmanager
async def supervised(*options: object) -> AsyncIterator[tuple[Program, set[int]]]:
    """Run a supervisor. Yields it and the process ids of its two serving workers."""
    async with running(MODULE, *options) as program:
        await program.hear("ready")
        yield program, await eventually(partial(both, program), what="an answer from each of two workers")


async def ask(program: Program, word: str = "pid") -> int:
    """Return the process id of the worker that takes the connection, 0 if none does within a second."""
    port = await program.hear("port")
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(f"{word}\n".encode())
                return int(await reader.readline() or 0)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return 0


async def both(program: Program, *, but: int = 0) -> set[int]:
    """Return the two workers' process ids except ``but``. Empty if 40 connections do not find two."""
    pids = set()
    for _ in range(40):
        pid = await ask(program)
        if pid == 0:
            return set()
        pids.add(pid)
    return pids if len(pids) == 2 and but not in pids else set()


async def gone(*pids: int) -> None:
    await eventually(lambda: not any(map(alive, pids)), what=f"the end of {pids}")


def goodbyes(program: Program) -> list[str]:
    return [message["goodbye"] for message in program.said if "goodbye" in message]


@pytest.mark.parametrize(
    "options", [["--loop", "uvloop", "--redis"], ["--loop", "asyncio", "--redis"], ["--inherit"]], ids=" ".join
)
async def test_workers_share_a_free_port_and_end_with_sigterm(options: list[str]) -> None:
    """With port 0, both workers share one port. SIGTERM to the supervisor ends them cleanly, and its exit code is 0."""
    async with supervised(*options) as (program, pids):
        assert program.pid not in pids
        os.kill(program.pid, signal.SIGTERM)
        assert await program.end() == 0
        assert not any(map(alive, pids))
        assert goodbyes(program) == ["SIGTERM", "SIGTERM"]
        assert not [one for one in program.said if "restarting" in str(one.get("report"))]
        assert not any(alive(message["redis"]) for message in program.said if "redis" in message)


async def test_ctrl_c_reaches_the_supervisor_only() -> None:
    """SIGINT to the terminal's process group becomes one SIGTERM for each worker."""
    async with supervised() as (program, pids):
        program.interrupt()
        assert await program.end() == 0
        assert goodbyes(program) == ["SIGTERM", "SIGTERM"]
        assert not any(map(alive, pids))


async def test_serving_workers_reload() -> None:
    """Each worker gets one SIGHUP and continues."""
    async with supervised() as (program, pids):
        os.kill(program.pid, signal.SIGHUP)
        for number in (1, 2):
            await heard(program, "reloads", number)
        assert {message["reloads"] for message in program.said if "reloads" in message} == pids
        assert await both(program) == pids


async def test_a_starting_worker_reloads_when_it_listens(tmp_path: Path) -> None:
    """An unhandled SIGHUP would end it. A worker that starts later gets the newer settings from the beginning."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with running(MODULE, "--workers", 1, "--gate", gate) as program:
        starting = await program.hear("starting")
        os.kill(program.pid, signal.SIGHUP)
        await program.hear("renewed")
        await asyncio.to_thread(gate.write_text, "come in")
        assert await program.hear("reloads") == starting
        os.kill(starting, signal.SIGKILL)
        await heard(program, "starting", 2)
        assert [message["told"] for message in program.said if "told" in message] == [None, "newer"]
        await asyncio.to_thread(gate.write_text, "come in")
        await program.hear("ready")


async def heard(program: Program, word: str, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while sum(word in message for message in program.said) < count:
            await program._listen(word)


@pytest.mark.parametrize("how", ["stopped", "blocked"])
async def test_a_frozen_worker_is_killed_and_replaced(how: str) -> None:
    """If a process or only its event loop stands still, its share of the connections would hang."""
    async with supervised("--beat-seconds", 3) as (program, pids):
        if how == "stopped":
            frozen = min(pids)
            os.kill(frozen, signal.SIGSTOP)
        else:
            frozen = await ask(program, "freeze")
        assert alive(frozen)
        assert f"(pid {frozen}) sent no heartbeat for 3 s: killing it" in await program.hear("report")
        await gone(frozen)
        assert len(await eventually(partial(both, program, but=frozen), what="a new worker")) == 2


async def test_killing_the_supervisor_ends_workers_and_redis() -> None:
    """After kill -9 of the supervisor, its workers end cleanly by themselves, and its Redis ends too."""
    async with supervised("--redis") as (program, pids):
        rest = [await program.hear("redis"), await program.hear("watcher")]
        assert all(map(alive, [*pids, *rest]))
        program.kill()
        await gone(*pids, *rest)
        await program.end()
        assert goodbyes(program) == ["orphaned", "orphaned"]


@pytest.mark.parametrize("how", ["freeze", "hold"])
async def test_a_frozen_worker_ends_after_its_supervisor_died(how: str) -> None:
    """If a worker's loop stands still and its supervisor is dead, the worker's own watchdog ends it."""
    async with supervised("--frozen-seconds", 2) as (program, pids):
        frozen = await ask(program, how)
        program.kill()
        await gone(*pids)
        await program.end()
        assert goodbyes(program) == ["orphaned"]
        assert frozen in pids


async def test_a_pause_of_all_processes_ends_none() -> None:
    """A paused machine or container. The pause is longer than the times after which frozen workers end.

    On waking, a watchdog that measures by the clock races with the event loop, so one pause would not always show it.
    """
    async with supervised("--frozen-seconds", 2, "--beat-seconds", 3) as (program, pids):
        for pauses in (1, 2, 3):
            for pid in (program.pid, *pids):
                os.kill(pid, signal.SIGSTOP)
            await asyncio.sleep(4)  # what the test is about: a time passes in which nothing runs
            for pid in (*pids, program.pid):
                os.kill(pid, signal.SIGCONT)
            os.kill(program.pid, signal.SIGHUP)  # each worker hears of it after its next heartbeat
            await heard(program, "reloads", 2 * pauses)
            assert await both(program) == pids
        assert not [one for one in program.said if "report" in one]


async def test_a_worker_that_does_not_end_is_killed() -> None:
    """If a worker ignores SIGTERM, it gets SIGKILL when the time is over."""
    async with supervised("--deaf", "--stop-seconds", 0.5) as (program, pids):
        os.kill(program.pid, signal.SIGTERM)
        assert await program.end() == 0
        assert goodbyes(program) == []
        assert sum("does not stop: killing it" in message.get("report", "") for message in program.said) == 2
        assert not any(map(alive, pids))


async def test_a_second_sigint_does_not_wait_for_goodbyes() -> None:
    """After a second Ctrl-C the supervisor does not wait for the workers' goodbyes."""
    async with supervised("--deaf", "--stop-seconds", 600) as (program, pids):
        program.interrupt()
        await eventually(partial(interrupted, program, pids), what="the end after a second signal")
        assert await program.end() == 0


def interrupted(program: Program, pids: set[int]) -> bool:
    """Send SIGINT again. Return whether the workers have ended."""
    if any(map(alive, pids)):
        os.killpg(program.pid, signal.SIGINT)
        return False
    return True


async def test_workers_that_can_never_serve_end_the_supervisor() -> None:
    """If the command fails at once several times, the supervisor reports it and ends with the command's exit code."""
    async with running(MODULE, "--hopeless", "--workers", 1) as program:
        assert await program.end() == 3
        reports = [message["report"] for message in program.said if "report" in message]
        assert [report.partition("; ")[2] for report in reports[:-1]] == [
            "restarting it in 0.1 s",
            "restarting it in 0.2 s",
        ]
        assert reports[-1].endswith("ended with code 3; no worker could start: giving up")


async def test_an_absent_worker_command_raises() -> None:
    """If the command cannot be executed, `run` raises the error and leaves no process."""
    keeper = Supervisor(["/absent/program"], {}, 2, report=lambda _: None)
    with pytest.raises(FileNotFoundError):
        await keeper.run()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_port_in_use_is_refused(host: str) -> None:
    """The port is refused even if another server shares it among its workers, although the kernel would allow that."""
    with reserve_port(host, 0) as reserved:
        port = reserved.port
        with listen_as_worker(host, port), listen_as_worker(host, port):
            told = f"cannot listen on {host} port {port}: Address already in use (choose another --port"
            with pytest.raises(CannotListen, match=re.escape(told)):
                reserve_port(host, port)
            with pytest.raises(CannotListen):
                listen_alone(host, port)


@pytest.mark.parametrize(
    "open_port", [listen_alone, listen_as_worker, partial(reserve_port, workers_bind_sockets=False)]
)
def test_a_name_is_bound_on_each_address_that_this_machine_has(
    monkeypatch: pytest.MonkeyPatch, open_port: Callable[[str, int], Listeners]
) -> None:
    """All have one port, and an address of another machine, or a repeated one, is left out."""
    places = [("192.0.2.1", 0), ("127.0.0.1", 0), ("::1", 0, 0, 0), ("127.0.0.1", 0)]
    found = [(AF_INET6 if ":" in str(place[0]) else AF_INET, SOCK_STREAM, 0, "", place) for place in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with open_port("a.name", 0) as listeners:
        assert {each.getsockname()[:2] for each in listeners.sockets} == {
            ("127.0.0.1", listeners.port), ("::1", listeners.port)
        }  # fmt: skip
        assert all(each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for each in listeners.sockets)


def test_a_reserved_port_takes_no_connection() -> None:
    """Only a worker's socket listens, so no connection waits where nobody accepts."""
    with reserve_port("127.0.0.1", 0) as reserved, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", reserved.port))


def test_an_invalid_address_is_refused() -> None:
    """A name that does not resolve, or the address of another machine, is refused with a sentence."""
    for host in ("no.such.host.invalid", "192.0.2.1"):
        with pytest.raises(CannotListen, match=f"cannot listen on {host} port 0: "):
            reserve_port(host, 0)


async def test_a_starting_worker_ends_with_its_supervisor() -> None:
    """The worker waits for a Redis that answers but delivers nothing. Without its supervisor it would wait forever."""
    ours, theirs = socket.socketpair()
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(private_redis())
        proxy = await stack.enter_async_context(Proxy(redis.socket))
        proxy.refuse(of=b"SUBSCRIBE")
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "stream_server", "serve", "--supervised", str(theirs.fileno()),
            pass_fds=(theirs.fileno(),), stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "STREAM_SERVER_REDIS": proxy.url, "STREAM_SERVER_PORT": "0",
                 "STREAM_SERVER_WORKERS": "2", "STREAM_SERVER_JWT_SECRET": "s" * 48},
        )  # fmt: skip
        theirs.close()
        await eventually(lambda: proxy.refused, what="a subscription that is refused")
        assert worker.returncode is None
        ours.close()
        async with asyncio.timeout(PATIENCE):
            assert await worker.wait() == 1
