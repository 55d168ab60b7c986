"""What is made of each answer of Redis, and of none: `unavailable` only where nothing was written."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from stream_server.errors import ApiError, OutcomeUnknown, Unavailable
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.redis.client import MAX_CONNECTIONS, Command, RedisClient
from stream_server.store.redis.scripts import FIRST_ATTEMPT_SHARE, Scripts, SizeLimits
from tests.stream_server.store.scripted import CUT, SILENCE, Reply, ScriptedRedis
from tests.waiting import PATIENCE, eventually

SHORT = 0.5
"""Time for a Redis that is silent; nothing here depends on how much of it is used up."""

MADE = b"*2\r\n:0\r\n$5\r\n1-0 1\r\n"
"""What a script answers when it has written."""

REFUSALS = {
    "a replica": b"-READONLY You can't write against a read only replica.\r\n",
    "a replica, by 6.2 in a script": b"-ERR Error running script (call to f_0): @user_script:7: @user_script: 7: "
    b"-READONLY You can't write against a read only replica.\r\n",
    "full": b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "full, by 6.2 in a script": b"-ERR Error running script (call to f_0): @user_script:7: @user_script: 7: "
    b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n",
    "disk": b"-MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.\r\n",
    "too few replicas": b"-NOREPLICAS Not enough good replicas to write.\r\n",
    "busy": b"-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n",
    "cluster": b"-CLUSTERDOWN The cluster is down\r\n",
    "migrating": b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "an orphan": b"-MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.\r\n",
    "a password": b"-NOAUTH Authentication required.\r\n",
    "killed": b"-ERR Error running script (call to f_0): @user_script:1: Script killed by user with SCRIPT KILL...\r\n",
}
"""Redis has not run it."""

DROPPED = {"a replica", "a replica, by 6.2 in a script", "loading", "an orphan", "a password"}
"""Refusals after which another connection may find another server, or a server that can."""


async def _write(
    redis: ScriptedRedis, seconds: float = PATIENCE, replicas: int = 0, *, twice: bool = False
) -> ApiError:
    """One write, or two in one round trip: what it fails with."""
    link = RedisClient(redis.url, seconds)
    scripts = Scripts(link, SizeLimits(), replicas)
    try:
        like = ("like", IdempotencyKey.generate(), ("1", "2"))
        with pytest.raises(ApiError) as told:
            await (
                scripts.write_each([like, like])
                if twice
                else scripts.write("like", IdempotencyKey.generate(), "1", "2")
            )
    finally:
        await link.close()
    assert told.value.retry_after == 1
    return told.value


@pytest.mark.parametrize("why", REFUSALS)
async def test_a_refusal_of_redis_is_unavailable(why: str) -> None:
    """Asked once: it would refuse the second time as well. Reading is no other thing."""
    async with ScriptedRedis(EVALSHA=[REFUSALS[why]], GET=[REFUSALS[why]]) as redis:
        assert type(await _write(redis)) is Unavailable
        assert redis.count("EVALSHA") == 1
        link = RedisClient(redis.url, PATIENCE)
        with pytest.raises(Unavailable):
            await link.execute(("GET", "k"))
        await link.close()


@pytest.mark.parametrize("why", REFUSALS)
async def test_who_cannot_be_the_primary_is_hung_up_on(why: str) -> None:
    """The next connection goes to whoever is it by then; for the others the same one will do."""
    async with ScriptedRedis(EVALSHA=[REFUSALS[why], MADE]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        scripts = Scripts(link, SizeLimits())
        with pytest.raises(Unavailable):
            await scripts.write("like", IdempotencyKey.generate())
        assert (await scripts.write("like", IdempotencyKey.generate())).value == b"1-0 1"
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


@pytest.mark.parametrize("how", CUTS)
async def test_a_write_that_is_not_answered_has_an_unknown_outcome(how: str) -> None:
    """Asked twice at most, under one key; that the second asking was refused says nothing of the first."""
    async with ScriptedRedis(EVALSHA=CUTS[how]) as redis:
        assert type(await _write(redis, SHORT)) is OutcomeUnknown
        assert redis.count("EVALSHA") == 2


async def test_a_redis_that_goes_away_while_a_write_is_run() -> None:
    """The second attempt finds nobody: that nothing was sent then is not to say that nothing was written."""
    async with ScriptedRedis(EVALSHA=[CUT]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        connected = await link.execute(("PING",))
        redis.vanish()
        with pytest.raises(OutcomeUnknown):
            await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
        assert connected == [b"PONG"]
        assert (redis.count("EVALSHA"), redis.connections) == (1, 1)
        await link.close()


async def test_both_attempts_are_within_one_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one comes, and has what the first has left of it."""
    given: list[float] = []
    exchange = RedisClient.run_pipeline

    async def noted(self: RedisClient, commands: Sequence[Command], timeout_seconds: float) -> list[Any]:
        given.append(timeout_seconds)
        return await exchange(self, commands, timeout_seconds)

    monkeypatch.setattr(RedisClient, "run_pipeline", noted)
    async with ScriptedRedis(EVALSHA=[SILENCE]) as redis:
        await _write(redis, SHORT)
        assert redis.count("EVALSHA") == len(given) == 2
    assert given[0] <= SHORT * FIRST_ATTEMPT_SHARE
    assert 0 < given[1] <= SHORT * (1 - FIRST_ATTEMPT_SHARE)


@pytest.mark.parametrize(
    ("lines", "expected", "asked"),
    [
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [CUT]}, Unavailable, 1),
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [REFUSALS["busy"]]}, Unavailable, 1),
        ({"EVALSHA": [b"-NOSCRIPT No matching script.\r\n", CUT]}, OutcomeUnknown, 3),
        ({"EVALSHA": [CUT, b"-NOSCRIPT No matching script.\r\n"], "SCRIPT": [CUT]}, OutcomeUnknown, 2),
    ],
    ids=["lost while it is given them", "refused while it is given them", "lost behind it", "lost before it"],
)
async def test_a_redis_that_knows_no_script(
    lines: dict[str, list[Reply]], expected: type[ApiError], asked: int
) -> None:
    """Nothing was run before it has the script; what was asked before that may have been."""
    async with ScriptedRedis(**lines) as redis:
        assert type(await _write(redis)) is expected
        assert redis.count("EVALSHA") == asked
        assert redis.count("SCRIPT") >= 1


async def test_a_batch_of_which_a_part_was_run() -> None:
    """Redis forgot one script of two, and is gone when it is given it: the other was run."""
    forgotten = b"-NOSCRIPT No matching script.\r\n"
    async with ScriptedRedis(EVALSHA=[MADE, forgotten, MADE, forgotten], SCRIPT=[CUT]) as redis:
        assert type(await _write(redis, twice=True)) is OutcomeUnknown
        assert redis.count("EVALSHA") == 4


@pytest.mark.parametrize("why", ["loading", "a password"])
async def test_a_batch_that_redis_does_not_go_on_with(why: str) -> None:
    """The first of two was run; redis-py takes the second answer for a broken connection."""
    async with ScriptedRedis(EVALSHA=[MADE, REFUSALS[why]]) as redis:
        assert type(await _write(redis, twice=True)) is OutcomeUnknown
        assert redis.count("EVALSHA") >= 3


async def test_no_free_connection_in_time() -> None:
    """All are taken by a Redis that is silent: who waits for one has sent nothing, and says so."""
    async with ScriptedRedis(GET=[SILENCE]) as redis:
        link = RedisClient(redis.url, SHORT)
        waiting = [asyncio.create_task(link.execute(("GET", "k"))) for _ in range(MAX_CONNECTIONS)]
        await eventually(lambda: redis.count("GET") == MAX_CONNECTIONS, what="all connections taken")
        with pytest.raises(Unavailable):
            await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
        assert redis.count("EVALSHA") == 0
        assert all(isinstance(e, Unavailable) for e in await asyncio.gather(*waiting, return_exceptions=True))
        await link.close()


WAITED: dict[str, list[Reply]] = {
    "too few": [b":1\r\n"],
    "demoted meanwhile": [b"-UNBLOCKED force unblock from blocking operation, instance state changed\r\n"],
    "silent": [SILENCE],
}


@pytest.mark.parametrize("how", WAITED)
async def test_a_write_without_its_replicas_has_an_unknown_outcome(how: str) -> None:
    """It is on the primary, and may be lost with it."""
    async with ScriptedRedis(EVALSHA=[MADE], WAIT=WAITED[how]) as redis:
        assert type(await _write(redis, SHORT, replicas=2)) is OutcomeUnknown
        assert redis.count("WAIT") >= 1


async def test_what_was_refused_needs_no_replicas() -> None:
    """Nothing was written that they could have."""
    async with ScriptedRedis(EVALSHA=[b"-NOT_FOUND status\r\n"], WAIT=[b":0\r\n"]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        with pytest.raises(ApiError) as told:
            await Scripts(link, SizeLimits(), 1).write("like", IdempotencyKey.generate())
        assert told.value.error_code == "not_found"
        assert redis.count("WAIT") == 1
        await link.close()


async def test_who_asks_for_no_replicas_does_not_wait() -> None:
    """It costs nothing: not a command more."""
    async with ScriptedRedis(EVALSHA=[MADE]) as redis:
        link = RedisClient(redis.url, PATIENCE)
        await Scripts(link, SizeLimits()).write("like", IdempotencyKey.generate())
        await link.close()
        assert redis.seen == ["PING", "EVALSHA"]  # the connection, and the write


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.parametrize("name", sorted(REFUSALS))
async def test_a_repetition_that_is_refused_says_nothing_of_the_first_attempt(name: str, *, twice: bool) -> None:
    """That one may have been made, by a Redis that was demoted or full before it was asked again."""
    async with ScriptedRedis(EVALSHA=[CUT, *[REFUSALS[name]] * 2]) as redis:
        told = await _write(redis, twice=twice)
        assert isinstance(told, OutcomeUnknown)
        assert redis.count("EVALSHA") >= 2
