"""Workers that ask each other over unix sockets."""

import asyncio
import socket
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from stream_server.monitoring import worker_sockets
from stream_server.monitoring.worker_sockets import WorkerSockets


async def test_a_worker_asks_all_others_and_sees_who_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answers much, one has no socket, one accepts and says nothing, one says too much."""
    monkeypatch.setattr(worker_sockets, "DEADLINE_SECONDS", 0.2)
    monkeypatch.setattr(worker_sockets, "MAX_REPORT_BYTES", 2**20)

    async def answer(question: str) -> bytes:
        return question.encode() + b"!" * 1_000_000

    async def answer_too_much(question: str) -> bytes:
        return bytes(2**20 + 1)

    workers = {slot: WorkerSockets(tmp_path, slot, 5) for slot in range(1, 6)}
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "worker-4.sock"))
        mute.listen()
        async with AsyncExitStack() as stack:
            for slot, answers in ((1, answer), (2, answer), (5, answer_too_much)):
                await stack.enter_async_context(workers[slot].offered(answers))
            told = await workers[1].ask_others("report")
            assert (tmp_path / "worker-2.sock").stat().st_mode & 0o777 == 0o600
    assert told == {2: b"report" + b"!" * 1_000_000, 3: None, 4: None, 5: None}
    assert not (tmp_path / "worker-2.sock").exists()


async def test_the_socket_of_a_killed_predecessor_is_replaced(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(tmp_path / "worker-2.sock"))

    async def answer(question: str) -> bytes:
        return b"here"

    async with WorkerSockets(tmp_path, 2, 2).offered(answer):
        assert await WorkerSockets(tmp_path, 1, 2).ask_others("x") == {2: b"here"}


async def test_a_worker_without_a_folder_asks_nobody() -> None:
    async with WorkerSockets().offered(lambda _: asyncio.sleep(0, b"")):
        assert await WorkerSockets().ask_others("x") == {}


async def test_a_folder_that_is_gone_costs_only_the_answers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with WorkerSockets(tmp_path / "gone", 1, 2).offered(lambda _: asyncio.sleep(0, b"")):
        assert await WorkerSockets(tmp_path / "gone", 1, 2).ask_others("x") == {2: None}
    assert "the other workers cannot ask this one" in caplog.text
