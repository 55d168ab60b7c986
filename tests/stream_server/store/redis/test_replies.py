"""The client's reading of each reply of Redis: a write is `unavailable` only if Redis surely did not execute it."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from stream_server.errors import ApiError, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis import scripts as scripts_module
from stream_server.store.redis import timeout_budget
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.pipelined_connection import MAX_UNANSWERED_COMMANDS, NoReply
from stream_server.store.redis.script_settings import REPEATED_REPLY, SizeLimits
from stream_server.store.redis.scripts import FIRST_ATTEMPT_SHARE, ScriptCall, ScriptRunner
from stream_server.store.redis.timeout_budget import LOST_TIMES, TimeoutBudget
from tests.stream_server.store.people import new_key
from tests.stream_server.store.redis.jumping_clock import JumpingClock
from tests.stream_server.store.redis.scripted_redis import CUT, SILENCE, Reply, ScriptedRedis
from tests.waiting import PATIENCE, eventually

SHORT = 2.0
"""Seconds to wait for a silent Redis."""

MADE = b"*2\r\n:0\r\n$5\r\n1-0 1\r\n"
"""The answer of a script that has written."""

REFUSALS = {
    "a replica": b"-READONLY You can't write against a read only replica.\r\n",
    "full": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "disk": b"-MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.\r\n",
    "too few replicas": b"-NOREPLICAS Not enough good replicas to write.\r\n",
    "busy": b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    "cluster": b"-CLUSTERDOWN The cluster is down\r\n",
    "cluster with reads only, in a script": b"-ERR Script attempted to execute a write command while the cluster is "
    b"down and readonly script: 7f, on @user_script:7.\r\n",
    "moving": b"-ASK 10092 127.0.0.1:7001\r\n",
    "moved": b"-MOVED 10092 127.0.0.1:7001\r\n",
    "migrating": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "an orphan": b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    "a password": b"-NOAUTH Authentication required.\r\n",
    "killed": b"-ERR Error running script (call to f_0): @user_script:1: Script killed by user with SCRIPT KILL...\r\n",
}
"""Answers by which Redis says that it did not run the script."""

DROPPED = {"a replica", "loading", "an orphan", "a password"}
"""Refusals after which another connection may find another server, or a server that can write."""


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> JumpingClock:
    """A clock that jumps over waiting for a silent Redis."""
    return JumpingClock(monkeypatch)


async def _write(
    redis: ScriptedRedis, seconds: float = PATIENCE, replicas: int = 0, *, twice: bool = False
) -> ApiError:
    """Do one write, or two in one round trip. Returns the error."""
    link = RedisClient(redis.url, seconds)
    scripts = ScriptRunner(link, SizeLimits(), min_write_replicas=replicas)
    try:
        like = (ScriptCall("like", {"uid": "1", "id": "2"}), new_key())
        with pytest.raises(ApiError) as failure:
            await (scripts.write_each([like, like]) if twice else scripts.write("like", new_key(), uid="1", id="2"))
    finally:
        await link.close()
    assert failure.value.retry_after == 1
    return failure.value


@pytest.mark.parametrize("why", REFUSALS)
async def test_a_refusal_by_redis_is_unavailable_and_not_retried(why: str) -> None:
    async with ScriptedRedis(EVALSHA=[REFUSALS[why]], GET=[REFUSALS[why]]) as redis:
        assert type(await _write(redis)) is Unavailable
        assert redis.count("EVALSHA") == 1
        link = RedisClient(redis.url, PATIENCE)
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
        await link.close()


@pytest.mark.parametrize("prefix", [b"Script", b"Error running script (call to f_0): @user_script:7: Lua script"])
async def test_a_script_that_misses_a_moved_key_has_an_unknown_outcome(prefix: bytes) -> None:
    reply = b"-ERR " + prefix + b" attempted to access a non local key in a cluster node\r\n"
    async with ScriptedRedis(EVALSHA=[reply]) as redis:
        assert type(await _write(redis)) is OutcomeUnknown
        assert redis.count("EVALSHA") == 1
        link = RedisClient(redis.url, PATIENCE)
        with pytest.raises(Unavailable):  # a read changes nothing
            await ScriptRunner(link, SizeLimits()).call("log_look_up", "{core}:meta", place="1-0", since=1)
        await link.close()


@pytest.mark.parametrize("why", REFUSALS)
async def test_a_refusal_that_only_another_server_lifts_closes_the_connection(why: str) -> None:
    async with ScriptedRedis(EVALSHA=[REFUSALS[why], MADE]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        scripts = ScriptRunner(link, SizeLimits())
        with pytest.raises(Unavailable):
            await scripts.write("like", new_key(), uid="1", id="2")
        assert (await scripts.write("like", new_key(), uid="1", id="2")).value == b"1-0 1"
        assert redis.connections == (2 if why in DROPPED else 1)
        await link.close()


CUTS: dict[str, list[Reply]] = {
    "cut": [CUT],
    "cut in the middle": [b"*2\r\n:0\r\n$5\r\n1-0", CUT],
    "silent": [SILENCE],
    "cut, then silent": [CUT, SILENCE],
    "silent, then a refusal": [SILENCE, REFUSALS["loading"]],
    "junk": [b"?what\r\n"],
}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("how", CUTS)
async def test_a_write_without_an_answer_is_tried_twice_and_has_an_unknown_outcome(how: str) -> None:
    """Its user is charged all the same, once: Redis may have appended it."""
    budget = TimeoutBudget(SHORT)
    timeout_budget.CURRENT.set(budget)
    async with ScriptedRedis(EVALSHA=CUTS[how]) as redis:
        assert type(await _write(redis, SHORT)) is OutcomeUnknown
        assert redis.count("EVALSHA") == 2
    assert LOST_TIMES * 100 < budget.appended_bytes < LOST_TIMES * 400, "such a command has about 200 bytes"


@pytest.mark.usefixtures("clock")
async def test_a_write_whose_first_answer_was_lost_is_charged() -> None:
    """The answer to the repetition does not tell what the first attempt has appended."""
    budget = TimeoutBudget(SHORT)
    timeout_budget.CURRENT.set(budget)
    repeated = b"*2\r\n$%d\r\n%b\r\n$5\r\n1-0 1\r\n" % (len(REPEATED_REPLY), REPEATED_REPLY.encode())
    async with ScriptedRedis(EVALSHA=[CUT, repeated]) as redis:
        link = RedisClient(redis.url, SHORT)
        text = "x" * 1000
        reply = await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid=text, id="2")
        await link.close()
    assert reply.is_repeat
    assert LOST_TIMES * len(text) < budget.appended_bytes < LOST_TIMES * (len(text) + 400)


async def test_a_write_has_an_unknown_outcome_when_redis_vanishes_before_the_retry() -> None:
    async with ScriptedRedis(EVALSHA=[MADE, CUT]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        scripts = ScriptRunner(link, SizeLimits())
        await scripts.write("like", new_key(), uid="1", id="2")
        await redis.vanish()
        with pytest.raises(OutcomeUnknown):
            await scripts.write("like", new_key(), uid="1", id="2")
        assert (redis.count("EVALSHA"), redis.connections) == (2, 1)
        await link.close()


async def test_both_attempts_of_a_write_share_one_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second attempt has the rest of the time. The clock is the test's own, because a busy machine is late."""
    given, now = list[float](), [100.0]

    async def silent(_: RedisClient, __: Sequence[Command], timeout_seconds: float) -> list[Any]:
        given.append(timeout_seconds)
        now[0] += timeout_seconds
        raise NoReply

    monkeypatch.setattr(RedisClient, "run_pipeline", silent)
    monkeypatch.setattr(scripts_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    link = RedisClient("unix:///nowhere", SHORT)
    with pytest.raises(OutcomeUnknown):
        await ScriptRunner(link, SizeLimits()).write("like", IdempotencyKey.generate(), uid="1", id="2")
    assert given == pytest.approx([SHORT * FIRST_ATTEMPT_SHARE, SHORT * (1 - FIRST_ATTEMPT_SHARE)])
    await link.close()


@pytest.mark.parametrize(
    ("lines", "expected", "asked"),
    [
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [CUT]}, Unavailable, 1),
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n"] * 2, "SCRIPT": [b"+OK\r\n"]}, Unavailable, 2),
        ({"EVALSHA": [CUT, *[b"-NOSCRIPT No matching script.\r\n"] * 2], "SCRIPT": [b"+OK\r\n"]}, OutcomeUnknown, 3),
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [REFUSALS["busy"]]}, Unavailable, 1),
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n", CUT]}, OutcomeUnknown, 3),
        ({"EVALSHA": [CUT, b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [CUT]}, OutcomeUnknown, 2),
    ],
    ids=[
        "lost while it is given them",
        "given to another",
        "given to another after a loss",
        "refused while it is given them",
        "lost behind it",
        "lost before it",
    ],
)
async def test_outcome_when_redis_does_not_know_the_script(
    lines: dict[str, list[Reply]], expected: type[ApiError], asked: int
) -> None:
    async with ScriptedRedis(**lines) as redis:
        assert type(await _write(redis)) is expected
        assert redis.count("EVALSHA") == asked
        assert redis.count("SCRIPT") >= 1


async def test_a_partly_executed_batch_has_an_unknown_outcome() -> None:
    forgotten = b"-NOSCRIPT No matching script.\r\n"
    async with ScriptedRedis(EVALSHA=[MADE, forgotten, MADE, forgotten], SCRIPT=[CUT]) as redis:
        assert type(await _write(redis, twice=True)) is OutcomeUnknown
        assert redis.count("EVALSHA") == 4


@pytest.mark.parametrize("why", ["loading", "a password"])
async def test_a_batch_that_redis_refuses_half_way_has_an_unknown_outcome(why: str) -> None:
    async with ScriptedRedis(EVALSHA=[MADE, REFUSALS[why]]) as redis:
        assert type(await _write(redis, twice=True)) is OutcomeUnknown
        assert redis.count("EVALSHA") >= 3


@pytest.mark.usefixtures("clock")
async def test_a_write_behind_too_many_unanswered_commands_is_unavailable() -> None:
    async with ScriptedRedis(SET=[SILENCE]) as redis:
        link = RedisClient(redis.url, 10.0)  # the write waits for a part of this time
        waiting = [asyncio.create_task(link.execute(("SET", "k", "v"))) for _ in range(MAX_UNANSWERED_COMMANDS)]
        await eventually(lambda: redis.count("SET"), what="the commands sent")
        with pytest.raises(Unavailable):
            await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid="1", id="2")
        assert redis.count("EVALSHA") == 0
        await link.close()
        assert all(isinstance(e, Unavailable) for e in await asyncio.gather(*waiting, return_exceptions=True))


WAITED: dict[str, list[Reply]] = {
    "too few": [b":1\r\n"],
    "demoted meanwhile": [b"-UNBLOCKED force unblock from blocking operation, instance state changed\r\n"],
    "silent": [SILENCE],
}


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize("how", WAITED)
async def test_a_write_without_its_replicas_has_an_unknown_outcome(how: str) -> None:
    async with ScriptedRedis(EVALSHA=[MADE], WAIT=WAITED[how]) as redis:
        assert type(await _write(redis, SHORT, replicas=2)) is OutcomeUnknown
        assert redis.count("WAIT") >= 1


async def test_a_refused_write_does_not_need_replicas() -> None:
    refusal = b"-REFUSED NOT_FOUND status script: 1f, on @user_script:1.\r\n"
    async with ScriptedRedis(EVALSHA=[refusal], WAIT=[b":0\r\n"]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        with pytest.raises(ApiError) as failure:
            await ScriptRunner(link, SizeLimits(), min_write_replicas=1).write("like", new_key(), uid="1", id="2")
        assert failure.value.error_code == "not_found"
        assert redis.count("WAIT") == 1
        await link.close()


async def test_a_write_without_required_replicas_sends_one_command() -> None:
    async with ScriptedRedis(EVALSHA=[MADE]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        await ScriptRunner(link, SizeLimits()).write("like", new_key(), uid="1", id="2")
        await link.close()
        assert redis.seen == ["PING", "EVALSHA"]  # the connection, and the write


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", sorted(REFUSALS))
async def test_a_refused_retry_has_an_unknown_outcome(name: str, *, twice: bool) -> None:
    """The first attempt may have been executed before Redis was demoted or full."""
    async with ScriptedRedis(EVALSHA=[CUT, *[REFUSALS[name]] * 2]) as redis:
        failure = await _write(redis, twice=twice)
        assert isinstance(failure, OutcomeUnknown)
        assert redis.count("EVALSHA") >= 2
