"""Jobs in tests: make them due, run them to the end, compare the timelines, interrupt a process."""

from collections.abc import Awaitable, Callable
from typing import Any

from stream_server.store.jobs.workers import JobWorkers
from stream_server.store.redis.script_settings import SizeLimits
from stream_server.store.store import Store

DUE, JOB = "{core}:due", "{core}:job:"

BY_JOBS = SizeLimits(step_timelines=0)
"""Every timeline is changed by a job, as those of an author with many readers or on a cluster."""

ROUNDS = 20
"""Limit of rounds in `drain`. A job may come once more and leave another; more rounds would be a loop."""


def job_workers(store: Store) -> JobWorkers:
    return JobWorkers(store.job_queue, store.job_runner)


def make_due(raw: Any) -> int:
    """Make all jobs due now, as if every lease and pause were over. Returns the number of jobs."""
    jobs = raw.zrange(DUE, 0, -1)
    for job in jobs:
        raw.zadd(DUE, {job: 0})
    return len(jobs)


async def drain(store: Store, raw: Any) -> None:
    """Run job workers until the queue is empty. Fails if a job is parked, left behind, or never ends."""
    working = job_workers(store)
    for _ in range(ROUNDS):
        if not make_due(raw):
            break
        await working.run_until_empty()
    assert raw.zrange(DUE, 0, -1) == []
    assert raw.zrange("{core}:parked", 0, -1) == []
    assert raw.keys(JOB + "*") == []
    for user in raw.keys("{core}:user:*"):
        assert int(raw.hget(user, "busy") or 0) == 0, "the user counts a job that does not exist"


def members(raw: Any, key: str) -> set[str]:
    return {member.decode() for member in raw.zrange(key, 0, -1)}


def home(raw: Any, uid: str) -> set[str]:
    return members(raw, f"home:{{{uid}}}")


def check_timelines(raw: Any) -> None:
    """Compare every home and list timeline with the follows and statuses. No timeline may have been full."""
    for key in raw.keys("{core}:user:*"):
        uid = key.decode().rpartition(":")[2]
        followed = members(raw, "{core}:following:" + uid) | {uid}
        assert home(raw, uid) == written(raw, followed), f"home of {raw.hget(key, 'login')}"
    lists = {key.decode().rpartition(":")[2] for key in raw.keys("{core}:list:*")}
    for list_id in lists:
        on_list = members(raw, "{core}:members:" + list_id)
        assert members(raw, f"timeline:{{{list_id}}}") == written(raw, on_list), "a list's timeline"
    timelines = {key.decode().partition("{")[2].rstrip("}") for key in raw.keys("timeline:*")}
    assert timelines <= lists, "the timeline of a list that is gone"


def written(raw: Any, authors: set[str]) -> set[str]:
    return {status for author in authors for status in members(raw, "{core}:profile:" + author)}


class Killed(BaseException):
    """The process is gone: a `BaseException`, so that the store does not catch it."""


class Interruption:
    """Interrupts a store at its ``k``-th round trip to Redis.

    The interruption runs ``action`` ``before`` or ``after`` the commands, or after ``half`` of them. Then the
    process ``dies`` or continues. ``fired`` tells whether the store reached that round trip.
    """

    def __init__(self, store: Store, k: int, when: str, action: Callable[[], Awaitable[object]], *, dies: bool) -> None:
        self._exchange = store._redis.run_pipeline
        self._k, self._when, self._action, self._dies = k, when, action, dies
        self.fired = False
        store._redis.run_pipeline = self.exchange  # type: ignore[method-assign]  # what a test is for

    async def exchange(self, commands: Any, timeout_seconds: float) -> list[Any]:
        self._k -= 1
        if self.fired and self._dies:
            raise Killed
        if self._k != 0:
            return await self._exchange(commands, timeout_seconds)
        self.fired = True
        begun = {"before": 0, "half": (len(commands) + 1) // 2, "after": len(commands)}[self._when]
        replies = await self._exchange(commands[:begun], timeout_seconds) if begun else []
        await self._action()
        if self._dies:
            raise Killed
        if begun < len(commands):
            replies += await self._exchange(commands[begun:], timeout_seconds)
        return replies


async def nothing() -> None:
    """Do nothing, as the action of an `Interruption`."""


class RedisDump:
    """All keys of Redis at one moment, to restore them later."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        names = raw.keys("*")
        with raw.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.dump(name)
            self._data = dict(zip(names, pipe.execute(), strict=True))

    def restore(self) -> None:
        self._raw.flushall()
        with self._raw.pipeline(transaction=False) as pipe:
            for name, value in self._data.items():
                pipe.restore(name, 0, value)
            pipe.execute()


def forget_scripts_before_transactions(store: Store, raw: Any) -> None:
    """Let Redis forget its scripts before each transaction of the store, as after a restart."""
    exchange = store._redis.run_pipeline

    async def forgetting(commands: Any, timeout_seconds: float) -> list[Any]:
        if commands[0][0] == "MULTI":
            raw.script_flush()
        return await exchange(commands, timeout_seconds)

    store._redis.run_pipeline = forgetting  # type: ignore[method-assign]  # the fault
