"""Timelines of many followers, with servers and workers that are killed: nobody misses a post or has it twice."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import COMMAND, Running, clean_environment, run, running
from tests.end_to_end.api import Api
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.extended

FOLLOWERS = 120
PASS = ("--fanout-batch-size", "10")


class Followers:
    def __init__(self, api: Api, raw: Any) -> None:
        self.api, self.raw = api, raw

    async def gather(self) -> None:
        self.author = await self.api.user()
        made = await self.api.users(f"f{number}" for number in range(FOLLOWERS))
        self.ids = list(made.values())
        for start in range(0, FOLLOWERS, 20):
            await asyncio.gather(*(self.api.follow(uid, self.author) for uid in self.ids[start : start + 20]))

    def statuses(self) -> set[bytes]:
        return set(self.raw.zrange("{core}:profile:" + self.author, 0, -1))

    def homes(self) -> list[list[bytes]]:
        pipe = self.raw.pipeline(transaction=False)
        for uid in [self.author, *self.ids]:
            pipe.zrange(f"home:{{{uid}}}", 0, -1)
        found: list[list[bytes]] = pipe.execute()
        return found

    def settled(self) -> bool:
        return bool(self.raw.zcard("{core}:due") == 0)

    def hurry(self) -> None:
        for job in self.raw.zrange("{core}:due", 0, -1):
            self.raw.zadd("{core}:due", {job: 0}, xx=True)

    def hurried(self) -> bool:
        self.hurry()
        return self.settled()

    def check(self) -> None:
        expected = sorted(self.statuses())
        assert all(sorted(home) == expected for home in self.homes())
        assert self.raw.zcard("{core}:parked") == 0


def _worker(server: Server, *flags: str) -> AbstractContextManager[Running]:
    """A process of job workers, which is killed at the end of the block."""
    folder, env = server.folder / "worker", clean_environment()
    return running(*COMMAND, "worker", "--data-dir", server.data, *PASS, *flags, folder=folder, env=env)


async def _progress(raw: Any, before: bytes | None) -> Callable[[], bool]:
    return lambda: bool(raw.hget("{core}:meta", "fence") != before)


async def test_killed_workers_leave_no_follower_out(own_folder: Path, redis_url: str) -> None:
    """The request does the first pass. The workers that do the rest are killed again and again, except the last."""
    source = random.Random(8)
    with Server(own_folder, *PASS, "--redis", redis_url, "--job-workers", "0") as server, server.redis_client() as raw:
        async with Api(server) as api:
            followers = Followers(api, raw)
            await followers.gather()
            first = (await api.post(followers.author, "the first"))["id"].encode()
            assert [first in home for home in followers.homes()].count(True) == 1 + 10
            for number in range(40):
                await api.post(followers.author, f"number {number}")
            gone = (await api.post(followers.author, "taken back"))["id"]
            await api.delete(followers.author, gone)
            for _ in range(4):
                before = raw.hget("{core}:meta", "fence")
                followers.hurry()
                with _worker(server, "--job-workers", "2"):
                    await eventually(await _progress(raw, before), what="progress of the worker")
                    await asyncio.sleep(source.uniform(0, 0.05))  # the kill comes at a random moment of a pass
            assert not followers.settled()
            with _worker(server) as worker:
                await eventually(followers.hurried, what="the queue is empty")
                followers.check()
                worker.process.terminate()
                assert (worker.process.wait(PATIENCE), worker.err) == (0, "")
                assert "parked 0" in worker.out.splitlines()[-1]


def test_repair_reports_and_repairs(own_folder: Path) -> None:
    """The exit code is 1, with a table, if repair found something, and 0 if not."""
    with Server(own_folder) as server, server.redis_client() as raw:
        raw.zadd("home:{4711}", {"1": 1})
        raw.hset("{core}:job:refill-home-4711", mapping={"mode": "refill", "owner": "4711"})
        raw.zadd("{core}:parked", {"refill-home-4711": 1})
        for flags in (("--dry-run",), ()):
            found = run("repair", "--data-dir", server.data, *flags)
            assert found.code == 1
            assert "a home timeline without a user" in found.out
            assert "refill-home-4711" in found.out
        again = run("repair", "--data-dir", server.data)
        assert (again.code, again.out) == (0, "no faults found\n")


def test_worker_and_repair_need_a_server(tmp_path: Path) -> None:
    """Without options they print a sentence that asks for a server. If the server is absent, they say so."""
    for command in ("worker", "repair"):
        unnamed = run(command)
        assert unnamed.code == 2
        assert "--redis" in unnamed.err
        assert "--jwt-secret" not in unnamed.err  # these commands have no such option
        absent = run(command, "--data-dir", tmp_path)
        assert absent.code == 3
        assert "no server is running" in absent.err
        assert run(command, "--redis", f"unix://{tmp_path}/none.sock").code == 3
