"""A Redis Cluster on this machine for a demo: three primaries, each with a replica, as docs/cluster.md lays it out."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

from stream_server.demo.child_processes import POLL_SECONDS, START_SECONDS, ChildProcesses, DemoFault, free_ports
from stream_server.errors import ApiError
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.cluster_nodes import parse_rows
from stream_server.store.redis.cluster_topology import CORE_SLOT
from stream_server.store.redis.replies import parse_info

HOST = "127.0.0.1"
TIMEOUT_SECONDS = 10.0

SLOTS = (
    (CORE_SLOT, CORE_SLOT),
    (0, 8191),
    (8192, CORE_SLOT - 1, CORE_SLOT + 1, 16_383),
)
"""First and last slots of each primary. The first one has the core's slot alone."""

NODES = 2 * len(SLOTS)

OPTIONS = (
    "--bind", HOST, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
    "--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration", "yes",
    "--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction",
    "--hash-max-listpack-value", "1024", "--client-output-buffer-limit", "pubsub", "256mb", "64mb", "60",
)  # fmt: skip
"""As docs/cluster.md advises. A replica goes where none is left."""


class LocalNode(NamedTuple):
    """A running node: its port and process id."""

    port: int
    pid: int


class LocalCluster(NamedTuple):
    """A running cluster: its primaries, that of the core first, then their replicas in the same order."""

    nodes: tuple[LocalNode, ...]

    @property
    def url(self) -> str:
        """The value of ``--redis``."""
        return f"redis+cluster://{','.join(f'{HOST}:{node.port}' for node in self.nodes)}"

    @property
    def core(self) -> LocalNode:
        """The core's primary at the start."""
        return self.nodes[0]


async def start_cluster(binary: Path, children: ChildProcesses, say: Callable[[str], None]) -> LocalCluster:
    """Start the nodes and make the cluster. Raises :class:`DemoFault`."""
    ports = free_ports(2 * NODES)
    bus_ports = ports[NODES:]
    async with AsyncExitStack() as stack:
        clients = [RedisClient(f"redis://{HOST}:{port}", TIMEOUT_SECONDS) for port in ports[:NODES]]
        for client in clients:
            stack.push_async_callback(client.close)
        starts = (_start_node(binary, children, ports[at], bus_ports[at], clients[at]) for at in range(NODES))
        nodes = await asyncio.gather(*starts)
        try:
            await _join(clients, nodes, bus_ports, say)
        except ApiError as error:
            raise DemoFault(f"the cluster was not made: {error.message}") from error
    return LocalCluster(tuple(nodes))


async def _start_node(
    binary: Path, children: ChildProcesses, port: int, bus_port: int, client: RedisClient
) -> LocalNode:
    async def answers() -> bool:
        try:
            return bool(await client.execute(("PING",)))
        except ApiError:
            return False

    folder = children.folder / f"redis-{port}"
    folder.mkdir()
    command = (binary, "--port", str(port), "--cluster-port", str(bus_port), "--dir", folder, *OPTIONS)
    process = await children.start(folder.name, *command)
    await children.wait_for(folder.name, process, answers)
    return LocalNode(port, process.pid)


async def _join(
    clients: Sequence[RedisClient], nodes: Sequence[LocalNode], bus_ports: Sequence[int], say: Callable[[str], None]
) -> None:
    """Give the primaries their slots and replicas, and wait until all nodes agree."""
    ids = []
    for at, client in enumerate(clients):
        commands: list[tuple[str | int, ...]] = [("CLUSTER", "SET-CONFIG-EPOCH", at + 1), ("CLUSTER", "MYID")]
        if at < len(SLOTS):
            commands.append(("CLUSTER", "ADDSLOTSRANGE", *SLOTS[at]))
        met = ((HOST, other.port, bus) for other, bus in zip(nodes[:at], bus_ports, strict=False))
        commands += (("CLUSTER", "MEET", *each) for each in met)  # each other one: gossip takes seconds
        ids.append((await client.execute(*commands))[1])
    await _wait(lambda: _all(clients, _knows_all), "meet")
    say(f"{NODES} nodes know each other")
    for at, client in enumerate(clients[len(SLOTS) :]):
        await client.execute(("CLUSTER", "REPLICATE", ids[at]))
    say("the replicas copy their primaries")
    await _wait(lambda: _all(clients, _is_ready), "agree")


async def _wait(check: Callable[[], Awaitable[bool]], what: str) -> None:
    end = time.monotonic() + START_SECONDS
    while not await check():
        if time.monotonic() > end:
            raise DemoFault(f"the nodes of the cluster did not {what}")
        await asyncio.sleep(POLL_SECONDS)


async def _all(clients: Sequence[RedisClient], check: Callable[[Any], bool]) -> bool:
    asked = (("CLUSTER", "NODES"), ("CLUSTER", "INFO"), ("INFO", "replication"))
    return all([check(await client.execute(*asked)) for client in clients])


def _knows_all(told: Sequence[bytes]) -> bool:
    rows = parse_rows(told[0])
    return len(rows) == NODES and not any("handshake" in row.flags for row in rows)


def _is_ready(told: Sequence[bytes]) -> bool:
    replicas = sum(bool(row.primary) for row in parse_rows(told[0]))
    is_linked = parse_info(told[2]).get("master_link_status", "up") == "up"
    return replicas == len(SLOTS) and is_linked and parse_info(told[1])["cluster_state"] == "ok"
