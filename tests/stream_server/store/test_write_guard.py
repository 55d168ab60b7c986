"""What a Redis says about its memory, its replicas and its clock."""

import time
from collections.abc import Callable

import pytest

from stream_server.security.clock_check import ClockCheck
from stream_server.store.redis.protocol import parse_info
from stream_server.store.store import Store
from stream_server.store.write_guard import RedisState, WriteGuard, count_replicas, parse_state

ROW = "slave{}:ip=10.0.0.7,port=6379,state={},offset=4711,lag={}"


@pytest.mark.parametrize(
    ("rows", "count"),
    [
        ([], 0),
        ([ROW.format(0, "online", 0), ROW.format(1, "online", 5)], 2),
        ([ROW.format(0, "online", 6), ROW.format(1, "wait_bgsave", 0), ROW.format(2, "send_bulk", 0)], 0),
        (["connected_slaves:2"], 2),
        (["connected_slaves:1", ROW.format(0, "wait_bgsave", 0)], 0),
    ],
    ids=["none", "two", "silent or without the data", "only their number is told", "one that has not the data"],
)
def test_only_replicas_that_could_confirm_a_write_count(rows: list[str], count: int) -> None:
    """As `INFO replication` describes them."""
    assert count_replicas(parse_info("\r\n".join(["# Replication", "role:master", *rows]).encode())) == count


def test_the_limit_of_memory_is_that_of_redis_else_that_of_its_machine() -> None:
    told = {"used_memory": "50", "maxmemory": "0", "total_system_memory": "200"}
    assert parse_state(told) == RedisState(50, 200, 0)
    assert parse_state(told | {"maxmemory": "100"}).used_share == 0.5
    assert parse_state({}).used_share == 0.0


@pytest.mark.parametrize(("ahead", "told"), [(0.0, ""), (-60.5, "differ by 60"), (60.5, "differ by 60")])
async def test_the_clock_of_redis_is_compared(
    store: Store, ahead: float, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    check = ClockCheck()
    guards: list[Callable[[], float]] = [lambda: time.time() + ahead, time.time]
    for clock in guards:
        guard = WriteGuard(store.state, 0, check.compare, clock)
        await guard.check()
        await guard.check()
        warnings = " ".join(check.warnings)
        assert told in warnings if clock is not time.time else not warnings
    assert len([record for record in caplog.records if "differ by" in record.getMessage()]) == bool(told)
