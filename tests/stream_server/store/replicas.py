"""Primaries and replicas: real servers on free ports, and questions to them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.redis_process import RedisProcess
from tests.waiting import eventually

PORTED = 0
"""A free port."""

LIVELY = ("--repl-ping-replica-period", "1", "--repl-timeout", "5")
"""Options by which the servers notice a broken link within seconds."""


@contextmanager
def servers(binary: Path, count: int, *options: str) -> Iterator[list[RedisProcess]]:
    """Start ``count`` independent servers."""
    with ExitStack() as stack:
        yield [stack.enter_context(RedisProcess(binary, *LIVELY, *options, port=PORTED)) for _ in range(count)]


def run(server: RedisProcess, *command: str) -> Any:
    with server.client() as client:
        return client.execute_command(*command)


def replication(server: RedisProcess) -> dict[str, Any]:
    with server.client() as client:
        return dict(client.info("replication"))


def entries(server: RedisProcess) -> int:
    """The length of the server's log."""
    return int(run(server, "XLEN", "{core}:log"))


async def linked(server: RedisProcess) -> None:
    """Wait until a replica has its primary's data and follows it."""
    await eventually(lambda: replication(server).get("master_link_status") == "up", what="a replica linked")
