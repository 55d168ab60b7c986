"""The lane of a call: which calls may wait for each other on one connection."""

import pytest

from stream_server.store.redis.lanes import BULK_BYTES, Command, Lane, choose_lane

WRITING: Command = ("EVALSHA", "sha", 3, "{core}:request:s:1", "{core}:meta", "{core}:never", "-", 60_000)
READING: Command = ("EVALSHA", "sha", 3, "{core}:meta", "{core}:meta", "{core}:never", "-", 0)


@pytest.mark.parametrize(
    ("commands", "lane"),
    [
        ([("HGET", "k", "f")], Lane.READ),
        ([("HMGET", "k", "f"), ("EXISTS", "k")], Lane.READ),
        ([READING], Lane.SCRIPT),
        ([READING, ("GET", "k")], Lane.SCRIPT),
        ([WRITING], Lane.WRITE),
        ([("SET", "k", "v")], Lane.WRITE),
        ([("MULTI",), ("ZADD", "k", 1, "m"), READING, ("EXEC",)], Lane.WRITE),
        ([("SOMETHING", "new")], Lane.WRITE),
        ([("XRANGE", "k", "-", "+")], Lane.BULK),
        ([("SCAN", 0), ("DBSIZE",)], Lane.BULK),
        ([WRITING, ("WAIT", 1, 100)], Lane.BLOCKING),
    ],
)
def test_a_call_takes_the_highest_lane_that_a_command_needs(commands: list[Command], lane: Lane) -> None:
    assert choose_lane(commands, 100) is lane


def test_large_commands_delay_no_small_ones() -> None:
    assert choose_lane([("ZADD", "k", 1, "m")] * 2, BULK_BYTES) is Lane.BULK
    assert choose_lane([("ZADD", "k", 1, "m")], BULK_BYTES) is Lane.BULK
    assert choose_lane([WRITING, ("WAIT", 1, 100)], BULK_BYTES) is Lane.BLOCKING
