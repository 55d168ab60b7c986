"""Primaries and replicas: real redis-servers with a port, and what is asked of them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.redis_process import RedisProcess
from tests.waiting import eventually

PORTED = 0
"""A free port."""

LIVELY = ("--repl-ping-replica-period", "1", "--repl-timeout", "5")
"""Options by which a link between two that has broken is noticed in seconds."""


@contextmanager
def servers(binary: Path, count: int, *options: str) -> Iterator[list[RedisProcess]]:
    """So many, running; they know nothing of each other."""
    with ExitStack() as stack:
        yield [stack.enter_context(RedisProcess(binary, *LIVELY, *options, port=PORTED)) for _ in range(count)]


def run(server: RedisProcess, *command: str) -> Any:
    """One command, on a connection of its own."""
    with server.client() as client:
        return client.execute_command(*command)


def replication(server: RedisProcess) -> dict[str, Any]:
    """INFO replication, asked now."""
    with server.client() as client:
        return dict(client.info("replication"))


def entries(server: RedisProcess) -> int:
    """How long its log is."""
    return int(run(server, "XLEN", "{core}:log"))


async def linked(server: RedisProcess) -> None:
    """Until a replica has its primary's data, and what is written there comes at once."""
    await eventually(lambda: replication(server).get("master_link_status") == "up", seconds=60, what="a replica linked")
