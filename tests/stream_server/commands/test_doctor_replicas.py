"""The findings of the doctor with replicas and Sentinels."""

import pytest

from stream_server.commands import doctor_redis, server_access
from stream_server.commands.doctor_machine import CheckResult, CheckState
from stream_server.commands.exit_codes import CommandFailure
from stream_server.config import config
from stream_server.store.idempotency import IdempotencyKey
from tests.redis_process import RedisProcess, newest
from tests.stream_server.store.replicas import linked, replication, servers
from tests.stream_server.store.sentinels import watch
from tests.waiting import PATIENCE, eventually

BINARY = newest()


def states(findings: list[CheckResult]) -> list[CheckState]:
    return [finding.state for finding in findings]


async def _of_replicas(primary: RedisProcess, read: RedisProcess, copies: int) -> list[CheckResult]:
    found = await doctor_redis.check_redis(primary.url, PATIENCE, read_urls=read.url, write_replicas=copies)
    return [finding for finding in found if "replica" in finding.sentence]


async def test_replicas_are_checked_and_counted() -> None:
    with servers(BINARY, 2) as (primary, replica):
        alone = await _of_replicas(primary, replica, 1)
        replica.replica_of(primary)
        await linked(replica)
        await eventually(lambda: replication(primary)["slave0"]["state"] == "online", what="an acknowledgement")
        paired = await _of_replicas(primary, replica, 1)
        wanting = await _of_replicas(primary, replica, 2)
    assert states(alone) == [CheckState.ADVICE, CheckState.BROKEN]
    assert states(paired) == [CheckState.GOOD, CheckState.GOOD]
    assert states(wanting) == [CheckState.GOOD, CheckState.BROKEN]


async def test_each_replica_to_read_from_is_named() -> None:
    with servers(BINARY, 2) as (primary, replica):
        replica.replica_of(primary)
        await linked(replica)
        urls = f"redis://127.0.0.1:1 {replica.url}"
        found = await doctor_redis.check_redis(primary.url, PATIENCE, read_urls=urls)
    shown = [finding for finding in found if "to read from" in finding.sentence]
    assert states(shown) == [CheckState.ADVICE, CheckState.GOOD]
    assert [finding.sentence[:14] for finding in shown] == ["replica 1 of 2", "replica 2 of 2"]


async def test_sentinels_are_checked() -> None:
    with watch(BINARY) as watched:
        await watched.settled()
        well = await doctor_redis.check_sentinels(watched.url, PATIENCE)
        behind = await doctor_redis.check_redis(watched.url, PATIENCE)
        settled = config.load({"redis": watched.url, "write_replicas": 1, "redis_timeout_seconds": PATIENCE}, {})
        async with server_access.open_store(settled) as store:
            assert await store.users.create_many([("ann", "Ann")], IdempotencyKey.generate())
        first = watched.sentinels[0]
        few = await doctor_redis.check_sentinels(f"redis+sentinel://127.0.0.1:{first.port}/main", PATIENCE)
        other = f"redis+sentinel://u:hunter22@127.0.0.1:{first.port}/other"
        unknown = await doctor_redis.check_sentinels(other, PATIENCE)
        watched.sentinels[1].kill()
        fewer = await doctor_redis.check_sentinels(watched.url, PATIENCE)
        for sentinel in watched.sentinels:
            sentinel.kill()
        gone = await doctor_redis.check_sentinels(watched.url, PATIENCE)
        with pytest.raises(CommandFailure, match="cannot be reached"):
            async with server_access.open_store(settled):
                pass
    assert states(well) == [CheckState.GOOD], well
    assert behind[0].sentence.endswith(" answers"), behind
    assert states(few) == [CheckState.ADVICE, CheckState.GOOD], few
    assert states(fewer) == [CheckState.ADVICE, CheckState.GOOD], fewer
    assert states(gone) == states(unknown) == [CheckState.BROKEN], (gone, unknown)
    assert not any("hunter22" in finding.sentence for finding in unknown)
    assert await doctor_redis.check_sentinels("redis://localhost", 1.0) == []
