"""Nodes of a cluster with scripted answers, without sockets: each node has a view of its own."""

from typing import Any, NamedTuple, Self

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from stream_server.store.redis.address import RedisGroup
from stream_server.store.redis.cluster_topology import CORE_SLOT, ClusterTopology
from stream_server.store.redis.connecting import HostPort


class Member(NamedTuple):
    """A node as another one sees it. ``host`` and ``names`` are what CLUSTER SLOTS has of its address."""

    node_id: str
    port: int
    slots: str = ""
    primary: str = "-"
    epoch: int = 1
    flags: str = "master"
    host: bytes | None = b"10.0.0.1"
    names: tuple[bytes, ...] = ()

    def line(self) -> str:
        at = f"{self.node_id} 10.0.0.1:{self.port}@1 {self.flags} {self.primary} 0 0 {self.epoch} connected"
        return f"{at} {self.slots}".rstrip()

    def row(self) -> list[Any]:
        return [self.host, self.port, self.node_id.encode(), list(self.names)]


PLAIN = "plain"
"""In place of a view: a Redis without a cluster."""

View = list[Member] | str | None


class ScriptedNodes:
    """The views of the nodes by their ports. A node without a view is silent. ``asked`` has the ports in order."""

    def __init__(self, **views: View) -> None:
        self.views: dict[int, View] = {int(name.removeprefix("p")): view for name, view in views.items()}
        self.asked: list[int] = []
        self.closed: list[int] = []

    def topology(self, *seeds: int) -> ClusterTopology:
        """Make the table of a cluster whose URL names these ports, or all."""
        addresses = tuple(at(port) for port in seeds or self.views)
        group = RedisGroup(addresses, is_cluster=True, use_tls=False, credentials={}, tls_options={})
        made = ClusterTopology(group, 1.0)
        made.open_client = lambda node: _Client(self, node)  # type: ignore[assignment,method-assign,return-value]  # scripted
        return made

    def answer(self, port: int) -> tuple[bytes, list[Any]]:
        self.asked.append(port)
        view = self.views.get(port)
        if view is None:
            raise RedisConnectionError("silent")
        if isinstance(view, str):
            raise ResponseError("ERR This instance has cluster support disabled")
        return "\n".join(member.line() for member in view).encode(), list(_slot_rows(view))


class _Client:
    """The part of redis-py's client that asks a node."""

    def __init__(self, nodes: ScriptedNodes, node: HostPort) -> None:
        self._nodes, self._port = nodes, node[1]

    def pipeline(self, *, transaction: bool) -> "_Pipeline":
        assert transaction
        return _Pipeline(self._nodes, self._port)

    async def aclose(self) -> None:
        self._nodes.closed.append(self._port)


class _Pipeline:
    def __init__(self, nodes: ScriptedNodes, port: int) -> None:
        self._nodes, self._port = nodes, port
        self._queued: list[str] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def execute_command(self, *command: str) -> None:
        self._queued.append(" ".join(command))

    async def execute(self) -> tuple[bytes, list[Any]]:
        assert self._queued == ["CLUSTER NODES", "CLUSTER SLOTS"]
        return self._nodes.answer(self._port)


def at(port: int) -> HostPort:
    return "10.0.0.1", port


def shard(
    node_id: str, port: int, *, slots: str = str(CORE_SLOT), epoch: int = 1, flags: str = "master", replica: str = ""
) -> list[Member]:
    """Return a primary, and a replica at the next port with these flags, if any are given."""
    made = [Member(node_id, port, slots, epoch=epoch, flags=flags)]
    return made + ([Member(f"{node_id}r", port + 1, primary=node_id, flags=replica)] if replica else [])


def _slot_rows(view: list[Member]) -> Any:
    """Yield the rows of CLUSTER SLOTS. Like Redis, leave out replicas that have failed."""
    for primary in view:
        for part in primary.slots.split():
            if not part.startswith("["):
                first, _, last = part.partition("-")
                replicas = [one for one in view if one.primary == primary.node_id and "fail" not in one.flags]
                yield [int(first), int(last or first), primary.row(), *(one.row() for one in replicas)]
