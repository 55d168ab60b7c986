"""One node of a Redis Cluster as an operator sees it: its own state, and its table of all nodes.

The commands that set up, check and change a cluster use it. Each node must be asked by itself, because only the node
that moves a slot tells of it.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

from redis.asyncio import Redis
from redis.crc import key_slot
from redis.exceptions import RedisError

from stream_server.store import keys
from stream_server.store.redis.replies import parse_info

CORE_SLOT = key_slot(keys.META.encode())
"""The slot of all keys with the hash tag ``{core}``."""

POLL_SECONDS = 0.05

HostPort = tuple[str, int]
Say = Callable[[str], None]
"""Tells a person of the progress, one sentence at a time."""


class ClusterFault(Exception):
    """Raised if a cluster cannot be made or changed. The message is one sentence for a person."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node in CLUSTER NODES.

    Attributes:
        id: Id of the node.
        address: Host and port for clients. The host is empty if the node does not know its own address yet.
        bus_port: Port of the messages between nodes.
        flags: Words such as ``myself``, ``master``, ``slave``, ``fail``, ``handshake``.
        primary: Id of the primary of a replica, or empty.
        epoch: Number of its configuration. Of two owners of one slot, that with the higher number is right.
        ranges: First and last slots that the node owns.
        open_slots: Slots that the node moves now, each as ``<slot> -> <id>`` or ``<slot> <- <id>``. Only a node itself
            tells of them.
    """

    id: str
    address: HostPort
    bus_port: int
    flags: frozenset[str]
    primary: str
    epoch: int
    ranges: tuple[tuple[int, int], ...]
    open_slots: tuple[str, ...]

    @property
    def slot_count(self) -> int:
        """Number of slots that the node owns."""
        return sum(last - first + 1 for first, last in self.ranges)

    def owns(self, slot: int) -> bool:
        """Return whether the node owns a slot."""
        return any(first <= slot <= last for first, last in self.ranges)


def parse_row(line: str) -> NodeRow:
    """Parse one line of CLUSTER NODES."""
    node_id, address, flags, primary, _, _, epoch, _, *slots = line.split(" ")
    host_port, _, bus = address.partition(",")[0].partition("@")
    host, _, port = host_port.rpartition(":")
    bounds = [each.partition("-") for each in slots if not each.startswith("[")]
    return NodeRow(
        id=node_id,
        address=(host, int(port)),
        bus_port=int(bus or 0),
        flags=frozenset(flags.split(",")),
        primary="" if primary == "-" else primary,
        epoch=int(epoch),
        ranges=tuple((int(first), int(last or first)) for first, _, last in bounds),
        open_slots=tuple(
            each.strip("[]").replace("->-", " -> ").replace("-<-", " <- ") for each in slots if each.startswith("[")
        ),
    )


class AdminNode:
    """A connection to one node for its operator. Every method raises :class:`ClusterFault` if the node fails."""

    def __init__(self, address: HostPort, timeout_seconds: float, **login: Any) -> None:
        """``login`` has the credentials and TLS options of redis-py."""
        self.address = address
        self._redis: Any = Redis(
            host=address[0], port=address[1], socket_timeout=timeout_seconds, socket_connect_timeout=timeout_seconds,
            single_connection_client=True, decode_responses=False, **login,
        )  # fmt: skip

    @property
    def name(self) -> str:
        """The address as text."""
        return f"{self.address[0]}:{self.address[1]}"

    async def run(self, *command: str | int) -> Any:
        """Send one command and return its reply."""
        try:
            return await self._redis.execute_command(*command)
        except (RedisError, OSError) as error:
            said = str(error) or type(error).__name__
            raise ClusterFault(f"{self.name} did not do {' '.join(map(str, command[:2]))}: {said}") from error

    async def info(self, section: str) -> dict[str, str]:
        """Return one section of INFO."""
        reply = await self.run("INFO", section)
        return {str(name): str(value) for name, value in reply.items()}

    async def cluster_info(self) -> dict[str, str]:
        """Return CLUSTER INFO."""
        return parse_info(await self.run("CLUSTER", "INFO"))

    async def rows(self) -> list[NodeRow]:
        """Return CLUSTER NODES: all nodes as this one sees them."""
        text: bytes = await self.run("CLUSTER", "NODES")
        return [parse_row(line) for line in text.decode().splitlines()]

    async def own_row(self) -> NodeRow:
        """Return the node's own row of its table."""
        return next(row for row in await self.rows() if "myself" in row.flags)

    async def close(self) -> None:
        """Close the connection."""
        await self._redis.aclose()


class AdminNodes:
    """Opens connections to nodes with one login, and closes all of them at the end of ``async with``."""

    def __init__(self, timeout_seconds: float, **login: Any) -> None:
        self._timeout_seconds = timeout_seconds
        self._login = login
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def connect(self, address: HostPort) -> AdminNode:
        """Return a node. Its connection is opened by its first command."""
        node = AdminNode(address, self._timeout_seconds, **self._login)
        self._stack.push_async_callback(node.close)
        return node


def parse_address(text: str) -> HostPort:
    """Parse ``host:port`` or ``[IPv6]:port``. Raises :class:`ClusterFault`."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ClusterFault(f"{text} is not HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def resolve_ip(host: str) -> str:
    """Return the IP address of a host, because CLUSTER MEET takes no names. Raises :class:`ClusterFault`."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ClusterFault(f"the host {host} is unknown") from error
    return str(found[0][4][0])


async def meet(node: AdminNode, others: Iterable[AdminNode]) -> None:
    """Let a node meet the others at once. By gossip alone nodes need seconds to know each other."""
    for other in others:
        bus_port = (await other.own_row()).bus_port
        await node.run("CLUSTER", "MEET", await resolve_ip(other.address[0]), other.address[1], bus_port)


async def wait_for(check: Callable[[], Awaitable[bool]], seconds: float, failure: str) -> None:
    """Call ``check`` every 50 ms until it is true. Raises :class:`ClusterFault` with ``failure`` after ``seconds``."""
    end = asyncio.get_running_loop().time() + seconds
    while not await check():
        if asyncio.get_running_loop().time() > end:
            raise ClusterFault(failure)
        await asyncio.sleep(POLL_SECONDS)


async def all_agree(nodes: Iterable[AdminNode]) -> bool:
    """Return whether these nodes accept writes, name the same owners and replicas, and have their primaries' data."""
    seen = set()
    for node in nodes:
        rows, state, link = await node.rows(), await node.cluster_info(), await node.info("replication")
        if state.get("cluster_state") != "ok" or link.get("master_link_status", "up") != "up":
            return False
        if any(row.flags & {"handshake", "fail", "fail?"} for row in rows):
            return False
        seen.add(frozenset((row.id, row.primary, row.ranges) for row in rows))
    return len(seen) == 1
