"""A Redis Cluster on this machine for a demo: three primaries, each with a replica, in the layout of the server."""

import asyncio
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_server.demo.child_processes import ChildProcesses, DemoFault, free_ports
from stream_server.runtime.embedded_redis import EmbeddedRedisError, find_redis_binary
from stream_server.store.redis import cluster_layout
from stream_server.store.redis.cluster_node import AdminNode, AdminNodes, ClusterFault, Say

HOST = "127.0.0.1"
NODES = 6
REPLICAS = 1
TIMEOUT_SECONDS = 10.0

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


def find_cluster_binary() -> Path:
    """Return the program of the nodes. Raises :class:`DemoFault` with what to install."""
    try:
        return find_redis_binary().path
    except EmbeddedRedisError as error:
        raise DemoFault(str(error)) from None


async def start_cluster(binary: Path, children: ChildProcesses, say: Say) -> LocalCluster:
    """Start the nodes and make the cluster. Raises :class:`DemoFault` or `ClusterFault`."""
    ports = free_ports(2 * NODES)
    async with AdminNodes(TIMEOUT_SECONDS) as admin:
        starts = (_start_node(binary, children, ports[at], ports[NODES + at], admin) for at in range(NODES))
        started = await asyncio.gather(*starts)
        shards = cluster_layout.plan_shards([named for _, named in started], REPLICAS)
        await cluster_layout.create(shards, say)
    node_of = {named.address: node for node, named in started}
    return LocalCluster(tuple(node_of[shard[at].address] for at in range(REPLICAS + 1) for shard in shards))


async def _start_node(
    binary: Path, children: ChildProcesses, port: int, bus_port: int, admin: AdminNodes
) -> tuple[LocalNode, AdminNode]:
    name = f"redis-{port}"
    folder = children.folder / name
    folder.mkdir()
    command = (binary, "--port", str(port), "--cluster-port", str(bus_port), "--dir", folder, *OPTIONS)
    process = await children.start(name, *command)
    node = admin.connect((HOST, port))
    await children.wait_for(name, process, partial(_answers, node))
    return LocalNode(port, process.pid), node


async def _answers(node: AdminNode) -> bool:
    try:
        return bool(await node.run("PING"))
    except ClusterFault:
        return False
