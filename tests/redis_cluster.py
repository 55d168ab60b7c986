"""A real Redis Cluster for tests: primaries and replicas on loopback, which a test may kill, freeze and reshard.

The layout is the one that the server wants: one shard holds the slot of ``{core}`` and no other, from the first moment.
The slots of derived keys are spread over the other shards.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import redis
from redis.crc import key_slot

from tests.processes import state
from tests.redis_process import RedisProcess, free_ports
from tests.waiting import PATIENCE

SLOTS = 16_384
CORE_SLOT = key_slot(b"{core}:meta")
NODE_TIMEOUT_MS = 2000
LINK_SECONDS = 60.0
"""Patience with the cluster. Nodes accept writes two seconds after their start at the earliest."""

PRIMARIES = 3
"""So many that a majority is left to promote a replica."""

ELECTION_SECONDS = 4 * NODE_TIMEOUT_MS / 1000
"""After an election Redis begins no other one at the same node for four node timeouts. In the first half of that
time it counts the old votes again. A planned failover to that node fails then: Redis ends it after five seconds."""

LIVELY = ("--repl-ping-replica-period", "1", "--repl-timeout", "5", "--loglevel", "notice")
"""Options of a node: it soon notices a broken link, and its log tells of elections."""

FAILOVER_SECONDS = 6.0
"""Redis gives a planned failover up after five seconds if the replica had no time to catch up."""

COPIES = ("psync", "sync", "replconf")
"""Commands that replication needs. A user without them gets no data from a primary."""


class Node(RedisProcess):
    """One node of a cluster. Its id is known after the first start, and it keeps id, ports and data at a restart."""

    def __init__(self, binary: Path, port: int, bus_port: int, *options: str) -> None:
        super().__init__(
            binary, "--cluster-enabled", "yes", "--cluster-port", str(bus_port), *LIVELY, *options, port=port
        )
        self.bus_port = bus_port
        self.id = ""

    def __repr__(self) -> str:
        return f"<node {self.port}>"

    def start(self, seconds: float = PATIENCE) -> Self:
        super().start(seconds)
        self.id = self.run("CLUSTER", "MYID").decode()
        return self

    def run(self, *command: object) -> Any:
        """Send one command to this node alone, over its unix socket."""
        with self.client() as client:
            return client.execute_command(*map(str, command))

    def table(self) -> dict[str, dict[str, Any]]:
        """Return CLUSTER NODES as this node sees it, by node id: port, flags, primary (id or "-"), epoch, slots."""
        return {row["id"]: row for row in map(_parse_row, self.run("CLUSTER", "NODES").decode().splitlines())}

    def last_election(self) -> float:
        """Return when this node last stood for election, in seconds since 1970, by its log; 0 if it never did."""
        found = re.findall(r"\w (\d+ \w+ \d+ [\d:.]+) [#*] Start(?:ing a failover| of) election", self.log)
        return datetime.strptime(found[-1], "%d %b %Y %H:%M:%S.%f").astimezone().timestamp() if found else 0.0

    def info(self, section: str = "replication") -> dict[str, Any]:
        with self.client() as client:
            return dict(client.info(section))


class PrivateCluster:
    """A cluster of real processes. ``nodes`` has the first primaries, that of the core first, then their replicas."""

    def __init__(self, binary: Path, *more: str, replicas: int = 1, durable: bool = True) -> None:
        """``more`` are further options of each node. ``replicas`` is the number for each primary.

        With ``durable`` each second is written to disk.
        """
        options = (
            "--cluster-node-timeout", str(NODE_TIMEOUT_MS),
            "--cluster-require-full-coverage", "no",
            "--cluster-allow-replica-migration", "no",
            "--appendonly", "yes" if durable else "no",
            "--appendfsync", "everysec", *more,
        )  # fmt: skip
        count = PRIMARIES * (1 + replicas)
        ports = free_ports(2 * count)
        self._binary, self._options = binary, options
        self.nodes = [Node(binary, ports[2 * at], ports[2 * at + 1], *options) for at in range(count)]

    @property
    def url(self) -> str:
        """The URL for the setting ``--redis``. It names all nodes."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, *, made: bool = True) -> Self:
        """Start all nodes at once, and make the layout. Returns when all nodes agree and accept writes.

        Without ``made`` the nodes stay empty and know nothing of each other.
        """
        try:
            self._start_nodes(self.nodes)
            if made:
                self.make()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End all processes and delete their folders, also after a fault."""
        for node in self.nodes:
            node.stop()

    def new_node(self) -> Node:
        """Start one more empty node, which knows no other."""
        port, bus_port = free_ports(2)
        node = Node(self._binary, port, bus_port, *self._options)
        self.nodes.append(node)
        self._start_nodes([node])
        return node

    def add_node(self) -> Node:
        """Start one more empty node, and let it join. It holds no slots and is a replica of nobody."""
        node = self.new_node()
        self._meet([self.nodes[0], node])
        self.agreed()
        return node

    # The state of the cluster, as its living nodes tell it.

    @property
    def alive(self) -> list[Node]:
        """The nodes whose processes run and are not frozen."""
        return [node for node in self.nodes if is_awake(node)]

    def by_id(self, node_id: str) -> Node:
        return next(node for node in self.nodes if node.id == node_id)

    def owner(self, slot: int = CORE_SLOT) -> Node:
        """Return the owner of a slot by the living node with the newest epoch. Dead ones count until a promotion."""
        claims = [
            (row["epoch"], row["id"])
            for node in self.alive
            for row in node.table().values()
            if any(first <= slot <= last for first, last in row["slots"])
        ]
        return self.by_id(max(claims)[1])

    def primaries(self) -> list[Node]:
        """Return the owners of slots, the core's first, as the living nodes see them."""
        core = self.owner()
        table = core.table() if is_awake(core) else self.alive[0].table()
        return [core, *(self.by_id(row["id"]) for row in table.values() if row["slots"] and row["id"] != core.id)]

    def replicas(self, primary: Node) -> list[Node]:
        """Return the replicas of a primary, as the first living node sees them."""
        table = self.alive[0].table()
        return [self.by_id(row["id"]) for row in table.values() if row["primary"] == primary.id]

    def rested_replica(self, primary: Node) -> Node:
        """Return a replica of a primary that a planned failover can promote. Waits if it just stood for election."""
        replica = min(self.replicas(primary), key=Node.last_election)
        wait_until(lambda: time.time() > replica.last_election() + ELECTION_SECONDS, LINK_SECONDS, "a rested one")
        return replica

    def agreed(self) -> None:
        """Wait until all living nodes name the same owners and replicas, accept writes, and all links are up."""
        wait_until(self._agrees, LINK_SECONDS, "nodes that agree")

    def promoted(self, old: Node) -> Node:
        """Wait until another node than ``old`` owns the slot of the core, by the word of all living nodes."""
        named: set[str] = set()

        def is_promoted() -> bool:
            nonlocal named
            named = _owners([node for node in self.alive if node is not old], CORE_SLOT)
            return len(named) == 1 and old.id not in named

        wait_until(is_promoted, LINK_SECONDS, "a promotion")
        return self.by_id(named.pop())

    def linked(self, replica: Node) -> None:
        """Wait until a replica follows its primary."""
        wait_until(lambda: replica.info().get("master_link_status") == "up", LINK_SECONDS, "a replica linked")

    def flush(self) -> None:
        """Delete all data, on all primaries."""
        for node in self.primaries():
            node.run("FLUSHALL", "SYNC")

    # Faults.

    def failover(self, replica: Node, *, asked: bool = False) -> None:
        """Promote a :meth:`rested_replica` by a plain CLUSTER FAILOVER, and wait until all living nodes know it.

        On a busy machine Redis may give up. Then it is asked again. With ``asked`` somebody has just asked it once.
        """
        asked_at = time.monotonic() if asked else -math.inf

        def is_promoted() -> bool:
            nonlocal asked_at
            if replica.info()["role"] == "master":
                return True
            if time.monotonic() > asked_at + FAILOVER_SECONDS:
                asked_at = time.monotonic()
                replica.run("CLUSTER", "FAILOVER")
            return False

        wait_until(is_promoted, LINK_SECONDS, "a replica promoted")
        self.agreed()

    def cut_replication(self, replica: Node) -> None:
        """Cut a replica off its primary's data. The messages of the cluster's bus go on.

        The primary forbids the commands of replication to its default user, which replicas are without a password.
        """
        primary = self.by_id(self.alive[0].table()[replica.id]["primary"])
        primary.run("ACL", "SETUSER", "default", *(f"-{command}" for command in COPIES))

        def is_cut() -> bool:
            primary.run("CLIENT", "KILL", "TYPE", "replica")  # on a busy machine none may be linked at this moment
            return bool(replica.info()["master_link_status"] == "down")

        wait_until(is_cut, LINK_SECONDS, "a broken link")

    def mend_replication(self, primary: Node) -> None:
        """Undo :meth:`cut_replication` at the primary, and wait until its replicas follow it again."""
        primary.run("ACL", "SETUSER", "default", *(f"+{command}" for command in COPIES))
        replicas = self.replicas(primary)
        wait_until(lambda: all(_follows(replica, primary) for replica in replicas), LINK_SECONDS, "replicas linked")

    def open_slot(self, slot: int, source: Node, target: Node) -> None:
        """Begin to move a slot online, as a tool for resharding does, and move no key."""
        target.run("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.run("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)

    def close_slot(self, slot: int) -> None:
        """End the move of a slot where it is: its owner keeps it.

        A node that still imports a slot does not learn its new owner after a failover, so all primaries are told.
        """
        for node in self.primaries():
            node.run("CLUSTER", "SETSLOT", slot, "STABLE")

    def reshard(self, source: Node, target: Node, slots: Sequence[int]) -> int:
        """Move slots with their keys online, one after another. Returns the number of keys moved."""
        return sum(self._move_slot(slot, source, target) for slot in slots)

    def slots(self, node: Node) -> list[int]:
        """Return the slots of a primary, in order."""
        return [slot for first, last in node.table()[node.id]["slots"] for slot in range(first, last + 1)]

    # How it is made.

    @staticmethod
    def _start_nodes(nodes: Sequence[Node]) -> None:
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(Node.start, nodes))

    def make(self) -> None:
        """Make the layout of empty nodes. Returns when all nodes agree and accept writes."""
        primaries = self.nodes[:PRIMARIES]
        for epoch, node in enumerate(self.nodes, 1):
            node.run("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        for node, ranges in zip(primaries, layout(), strict=True):
            node.run("CLUSTER", "ADDSLOTSRANGE", *(bound for each in ranges for bound in each))
        self._meet(self.nodes)
        for at, replica in enumerate(self.nodes[PRIMARIES:]):
            replica.run("CLUSTER", "REPLICATE", primaries[at % PRIMARIES].id)
        self.agreed()

    @staticmethod
    def _meet(nodes: Sequence[Node]) -> None:
        """Let each node meet each other one at once: by gossip alone it takes seconds."""
        for at, node in enumerate(nodes):
            with node.client() as client:
                for other in nodes[:at]:
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", str(other.port), str(other.bus_port))
        ids = {node.id for node in nodes}
        wait_until(lambda: all(ids <= node.table().keys() for node in nodes), LINK_SECONDS, "nodes that have met")

    def _agrees(self) -> bool:
        seen = set()
        for node in self.alive:
            if b"cluster_state:ok" not in node.run("CLUSTER", "INFO"):
                return False
            if node.info().get("master_link_status", "up") != "up":
                return False
            table = node.table()
            if any({"handshake", "fail?"} & {*row["flags"]} for row in table.values()):
                return False
            seen.add(frozenset((row["id"], row["primary"], tuple(row["slots"])) for row in table.values()))
        return len(seen) == 1

    def _move_slot(self, slot: int, source: Node, target: Node) -> int:
        moved = 0
        self.open_slot(slot, source, target)
        while keys := source.run("CLUSTER", "GETKEYSINSLOT", slot, 100):
            with source.client() as client:
                client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            moved += len(keys)
        for node in (target, source):
            node.run("CLUSTER", "SETSLOT", slot, "NODE", target.id)
        return moved


def layout() -> list[list[tuple[int, int]]]:
    """Return the ranges of slots of each primary. The first has the core's slot alone."""
    rest = [slot for slot in range(SLOTS) if slot != CORE_SLOT]
    others = PRIMARIES - 1
    bounds = [len(rest) * at // others for at in range(others + 1)]
    return [[(CORE_SLOT, CORE_SLOT)], *(_ranges(rest[bounds[at] : bounds[at + 1]]) for at in range(others))]


def is_awake(node: Node) -> bool:
    """Whether a node's process runs and is not frozen."""
    return node.process is not None and node.process.poll() is None and state(node.process.pid) != "T"


def wait_until(check: Callable[[], object], seconds: float, what: str) -> None:
    """Call ``check`` every 20 ms until it is true. Raises AssertionError with ``what`` after ``seconds``."""
    end = time.monotonic() + seconds
    while not _is_true(check):
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)  # the condition is checked above; this only paces it


def _is_true(check: Callable[[], object]) -> bool:
    try:
        return bool(check())
    except (redis.ConnectionError, redis.TimeoutError):
        return False


def _follows(replica: Node, primary: Node) -> bool:
    """Whether a replica has the replication id of its primary and has reached its offset.

    One whose PSYNC was refused copies by the old SYNC. It says "up" and counts its offset from there, so it stays
    behind for good, under its own id or the primary's. So its link is cut again.
    """
    wanted, found = primary.info(), replica.info()
    is_up: bool = found["master_link_status"] == "up"
    same_id = found["master_replid"] == wanted["master_replid"]
    is_same: bool = same_id and found["slave_repl_offset"] >= wanted["master_repl_offset"]
    if is_up and not is_same:
        primary.run("CLIENT", "KILL", "TYPE", "replica")
    return is_up and is_same


def _owners(nodes: Iterable[Node], slot: int) -> set[str]:
    """Return the ids that these nodes name as owner of a slot."""
    return {
        row["id"]
        for node in nodes
        for row in node.table().values()
        if any(first <= slot <= last for first, last in row["slots"])
    }


def _ranges(slots: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for slot in slots:
        if found and found[-1][1] == slot - 1:
            found[-1] = (found[-1][0], slot)
        else:
            found.append((slot, slot))
    return found


def _parse_row(line: str) -> dict[str, Any]:
    """Parse one line of CLUSTER NODES. Slots that are being moved (``[…]``) are left out."""
    node_id, address, flags, primary, _, _, epoch, _, *slots = line.split(" ")
    bounds = [each.partition("-") for each in slots if not each.startswith("[")]
    return {
        "id": node_id,
        "port": int(address.partition("@")[0].rpartition(":")[2]),
        "flags": flags.split(","),
        "primary": primary,
        "epoch": int(epoch),
        "slots": [(int(first), int(last or first)) for first, _, last in bounds],
    }
