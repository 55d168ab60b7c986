"""Jobs in tests: hurried, done to the end, and what the timelines must hold when none is left."""

import random
from collections.abc import Awaitable, Callable
from typing import Any

from stream_server.jobs.workers import JobWorkers
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.store import Store

DUE, JOB = "{core}:due", "{core}:job:"

ROUNDS = 20
"""A job may come once more, and leave another; more rounds than this would be a circle."""


def receivers(store: Store) -> JobWorkers:
    """Receivers on this store, none running yet."""
    return JobWorkers(store.job_queue, store.job_runner, random.Random(1))


def hurry(raw: Any) -> int:
    """Let all jobs be due now, as if every lease and grace were over; gives how many there are."""
    jobs = raw.zrange(DUE, 0, -1)
    for job in jobs:
        raw.zadd(DUE, {job: 0})
    return len(jobs)


async def drain(store: Store, raw: Any) -> None:
    """Receive until the queue is empty; fails if something is parked, left behind, or never ends."""
    working = receivers(store)
    for _ in range(ROUNDS):
        if not hurry(raw):
            break
        await working.run_until_empty()
    assert raw.zrange(DUE, 0, -1) == []
    assert raw.zrange("{core}:parked", 0, -1) == []
    assert raw.keys(JOB + "*") == []
    for user in raw.keys("{core}:user:*"):
        assert int(raw.hget(user, "busy") or 0) == 0, "a job of theirs was counted and is not there"


def numbers(raw: Any, key: str) -> set[str]:
    """The members of a sorted set."""
    return {member.decode() for member in raw.zrange(key, 0, -1)}


def home(raw: Any, uid: str) -> set[str]:
    """The statuses in a home; a sorted set holds nobody twice, so that it has each once."""
    return numbers(raw, f"home:{{{uid}}}")


def check(raw: Any) -> None:
    """Every home and list timeline is what the truth says; for worlds in which no timeline was ever full."""
    for key in raw.keys("{core}:user:*"):
        uid = key.decode().rpartition(":")[2]
        followed = numbers(raw, "{core}:following:" + uid) | {uid}
        assert home(raw, uid) == written(raw, followed), f"home of {raw.hget(key, 'login')}"
    lists = {key.decode().rpartition(":")[2] for key in raw.keys("{core}:list:*")}
    for list_id in lists:
        members = numbers(raw, "{core}:members:" + list_id)
        assert numbers(raw, f"timeline:{{{list_id}}}") == written(raw, members), "a list's timeline"
    timelines = {key.decode().partition("{")[2].rstrip("}") for key in raw.keys("timeline:*")}
    assert timelines <= lists, "the timeline of a list that is gone"


def written(raw: Any, authors: set[str]) -> set[str]:
    """All statuses of these authors."""
    return {status for author in authors for status in numbers(raw, "{core}:profile:" + author)}


class Killed(BaseException):
    """The process is gone: nothing catches this."""


class Doomed:
    """Lets a store's process meet its fate at its ``k``-th round trip to Redis.

    There, ``deed`` is done by others, ``before`` or ``after`` what the round trip does, or when ``half`` of its
    commands are done; then it ``dies``, or goes on as if nothing had been. ``met`` says whether it came to that.
    """

    def __init__(self, store: Store, k: int, when: str, deed: Callable[[], Awaitable[object]], *, dies: bool) -> None:
        self._exchange = store._redis.run_pipeline
        self._k, self._when, self._deed, self._dies = k, when, deed, dies
        self.met = False
        store._redis.run_pipeline = self.exchange  # type: ignore[method-assign]  # what a test is for

    async def exchange(self, commands: Any, timeout_seconds: float) -> list[Any]:
        """A round trip, or the end."""
        self._k -= 1
        if self.met and self._dies:
            raise Killed
        if self._k != 0:
            return await self._exchange(commands, timeout_seconds)
        self.met = True
        begun = {"before": 0, "half": (len(commands) + 1) // 2, "after": len(commands)}[self._when]
        replies = await self._exchange(commands[:begun], timeout_seconds) if begun else []
        await self._deed()
        if self._dies:
            raise Killed
        if begun < len(commands):
            replies += await self._exchange(commands[begun:], timeout_seconds)
        return replies


def fresh() -> IdempotencyKey:
    """A key for one write."""
    return IdempotencyKey.generate()


class Kept:
    """Everything in Redis at one moment, to go back to."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        names = raw.keys("*")
        with raw.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.dump(name)
            self._data = dict(zip(names, pipe.execute(), strict=True))

    def restore(self) -> None:
        """Back to that moment."""
        with self._raw.pipeline(transaction=False) as pipe:
            pipe.flushall()
            for name, value in self._data.items():
                pipe.restore(name, 0, value)
            pipe.execute()
