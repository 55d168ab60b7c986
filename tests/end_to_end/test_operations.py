"""The operator's view of a server with several workers."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.end_to_end.api import Api, mint
from tests.end_to_end.server import Server
from tests.waiting import eventually


async def state_of(api: Api) -> Any:
    return await api.done("GET", "/v1/admin/operations", token=mint(api.admin, "admin"))


async def first_answer(api: Api, path: str) -> str:
    """Return the answer of the first worker that answers one of many connections."""

    async def ask() -> str:
        headers = {"Authorization": f"Bearer {mint(api.admin, 'admin')}"}
        async with (
            aiohttp.ClientSession() as session,
            session.get(api.server.address + path, headers=headers) as answer,
        ):
            return await answer.text()

    tasks = [asyncio.create_task(ask()) for _ in range(20)]
    done, left = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    return done.pop().result()


@pytest.mark.extended
async def test_one_worker_answers_for_all_and_shows_a_frozen_one(own_folder: Path) -> None:
    """Streams on any worker are counted, a stopped worker is silent and not an error, and it comes back."""
    async with Server(own_folder, "--workers", "2") as server, Api(server) as api:
        uid = await api.user()
        framings = ("sse", "ndjson") * 4
        streams = [await api.stream({"follow": uid}, framing=framing) for framing in framings]
        await api.post(uid, "hello")
        for stream in streams:
            await stream.until(lambda consumer: len(consumer.events) == 1)
        state = await state_of(api)
        assert [(worker["worker"], worker["ready"]) for worker in state["workers"]] == [(1, True), (2, True)]
        assert sum(worker["streams"]["sse"] for worker in state["workers"]) == 4
        assert sum(worker["streams"]["ndjson"] for worker in state["workers"]) == 4
        assert sum(worker["live"] for worker in state["workers"]) == 8
        assert sum(worker["events_delivered"] for worker in state["workers"]) == 8
        assert len({worker["pid"] for worker in state["workers"]}) == 2
        for stream in streams:
            await stream.close()
        await eventually(lambda: both_recorded(api), what="a sample of both workers at one time")
        await check_a_frozen_worker(api, state)


async def both_recorded(api: Api) -> bool:
    """Whether the last hour has a time at which both workers are in the sums."""
    history = await api.done("GET", "/v1/admin/operations/history", token=mint(api.admin, "admin"))
    memory = dict(zip(history["workers"], history["memory_bytes"], strict=True))
    return 2 in memory and memory[2] > 2**21


async def check_a_frozen_worker(api: Api, state: Any) -> None:
    """Stop one worker: the other one answers, with figures of itself only."""
    frozen = state["workers"][1]["pid"]
    os.kill(frozen, signal.SIGSTOP)
    try:
        workers = json.loads(await first_answer(api, "/v1/admin/operations"))["workers"]
        assert [worker["ready"] for worker in workers] == [True, False]
        assert (workers[1]["pid"], workers[1]["streams"]["sse"], workers[1]["memory_bytes"]) == (None, 0, 0)
        text = await first_answer(api, "/metrics")
        assert re.findall(r"^stream_server_worker_up.* (\d)", text, re.MULTILINE) == ["1", "0"]
        assert 'stream_server_streams_live{worker="1"}' in text
        assert 'stream_server_streams_live{worker="2"}' not in text
    finally:
        os.kill(frozen, signal.SIGCONT)

    async def is_back() -> bool:
        return all(worker["ready"] for worker in (await state_of(api))["workers"])

    await eventually(is_back)
