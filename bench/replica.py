"""A replica of the measured Redis, on the last core."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from redis import Redis

from bench.process import free_port, last_core, pin
from stream_server.runtime.embedded_redis import EmbeddedRedis

MOST = 2
"""Most replicas of a server that is measured."""


class Replica(NamedTuple):
    """A Redis that follows the measured one: its port on the loopback address, and the id of its process."""

    port: int
    pid: int


@asynccontextmanager
async def replica(primary_port: int, *options: str, appendfsync: str = "everysec") -> AsyncIterator[Replica]:
    """Start a replica with further ``options`` of Redis, wait until it has all data, and end it with the block."""
    port = free_port()
    extra = [*options, "--port", str(port), "--replicaof", "127.0.0.1", str(primary_port)]
    embedded = await EmbeddedRedis.start(None, appendfsync=appendfsync, extra=extra)
    try:
        pin(embedded.redis_pid, last_core())
        with Redis(port=port) as client:
            while client.info("replication")["master_link_status"] != "up":  # noqa: ASYNC110 - another process says it
                await asyncio.sleep(0.05)
        yield Replica(port, embedded.redis_pid)
    finally:
        await embedded.stop()
