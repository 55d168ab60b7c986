"""Whether a Redis Cluster takes writes, what is set up wrongly in it, and what to do. ``doctor`` runs this, no server.

A finding is grave if events would not arrive or writes would be refused. The others cost more in a failover than they
need to, or are in the way later.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from redis.exceptions import RedisError

from stream_server.store.redis.cluster_nodes import NodeRow, parse_rows
from stream_server.store.redis.cluster_topology import CORE_SLOT, ClusterTopology
from stream_server.store.redis.connecting import HostPort
from stream_server.store.redis.lanes import Command
from stream_server.store.redis.protocol import parse_info

NODE_TIMEOUT_MS = (2000, 5000)
"""Shortest safe and longest useful ``cluster-node-timeout``.

With a shorter one, a busy moment of a machine looks like its death. After a kill, writes come back two to three seconds
after it.
"""

SETTLE_SECONDS = 2.0
"""Seconds between the two looks at a cluster in which a failover may go on."""

TAKES_OVER = "a replica takes its place within seconds: check again then"


class ClusterFinding(NamedTuple):
    """One thing that is wrong, as a sentence.

    Attributes:
        is_grave: Whether events would not arrive or writes would be refused.
        may_pass: Whether it ends by itself if it belongs to a failover.
    """

    sentence: str
    is_grave: bool = False
    may_pass: bool = False


async def check_cluster(topology: ClusterTopology, write_replicas: int) -> list[ClusterFinding]:
    """Return what is wrong in a cluster, the grave first; empty if nothing is. Raises nothing.

    What may belong to a failover is looked at twice. ``topology`` has the addresses and the login of the nodes; its
    table is not used. ``write_replicas`` is the number of replicas that the servers wait for.
    """
    found = await _look(topology, write_replicas)
    if any(finding.may_pass for finding in found):
        await asyncio.sleep(SETTLE_SECONDS)
        found = await _look(topology, write_replicas)
    return sorted(found, key=lambda finding: not finding.is_grave)


async def _look(topology: ClusterTopology, write_replicas: int) -> list[ClusterFinding]:
    silent: list[ClusterFinding] = []
    for seed in topology.group.hosts:
        told = await ask_node(topology, seed, ("CLUSTER", "NODES"), ("CLUSTER", "INFO"))
        if not isinstance(told, str):
            rows, state = parse_rows(told[0]), parse_info(told[1])
            down = [] if state.get("cluster_state") == "ok" else [_is_down(seed)]
            return [*down, *await _check_rows(topology, rows, seed, write_replicas), *silent]
        silent.append(ClusterFinding(told))
    return [finding._replace(is_grave=True) for finding in silent]


async def ask_node(topology: ClusterTopology, node: HostPort, *commands: Command) -> list[Any] | str:
    """Return the replies of one node to ``commands``, or a sentence that says why there are none.

    There are none if the node does not answer or refuses the first command. A later command that it refuses has the
    error as its reply.
    """
    try:
        async with asyncio.timeout(topology.timeout_seconds), aclosing(topology.open_client(node)) as client:
            pipeline = client.pipeline(transaction=False)
            for command in commands:
                pipeline.execute_command(*command)
            replies = await pipeline.execute(raise_on_error=False)
            if not isinstance(replies[0], Exception):
                return list(replies)
            reason: object = replies[0]
    except (RedisError, OSError, TimeoutError) as error:
        reason = str(error) or type(error).__name__
    return f"{node[0]}:{node[1]} did not do {' '.join(map(str, commands[0]))}: {reason}"


async def _check_rows(
    topology: ClusterTopology, rows: Sequence[NodeRow], member: HostPort, write_replicas: int
) -> list[ClusterFinding]:
    owner = next((row for row in rows if row.owns(CORE_SLOT)), None)
    if owner is None:
        return [
            ClusterFinding(
                f"no node owns slot {CORE_SLOT}, that of the core, so nothing can be written: start its primary or a "
                "replica again; in a new cluster, `CLUSTER ADDSLOTS` assigns it",
                is_grave=True,
            )
        ]
    found = [*_check_core(owner, rows, write_replicas), *_check_dead_shards(owner, rows)]
    differing = []
    for row in rows:
        if row.primary or row.has_failed or not row.address[0]:
            continue
        told = await ask_node(topology, row.address, ("CLUSTER", "NODES"), ("CONFIG", "GET", "cluster-*"))
        if isinstance(told, str):
            is_core = row.id == owner.id
            after = f"; {TAKES_OVER}" if is_core and _live_replicas(owner, rows) else ""
            found.append(ClusterFinding(told + after, is_core, may_pass=True))
            continue
        seen = parse_rows(told[0])
        found += _check_open_slot(row, seen)
        if row.id == owner.id:
            found += _check_settings(told[1])
        if not any(other.id == owner.id and other.owns(CORE_SLOT) for other in seen):
            found.append(_owners_differ(member, row))
        elif _owners(seen) != _owners(rows):
            differing.append(row.name)
    if differing:
        found.append(
            ClusterFinding(
                f"{member[0]}:{member[1]} and {', '.join(differing)} name different owners of slots: during a failover "
                "or a reshard this ends by itself, else a node cannot reach the bus ports of the others"
            )
        )
    return found


def _check_core(owner: NodeRow, rows: Sequence[NodeRow], write_replicas: int) -> Iterator[ClusterFinding]:
    replicas = _live_replicas(owner, rows)
    if owner.slot_count > 1:
        yield ClusterFinding(
            f"the core's shard owns {owner.slot_count:,} slots: `redis-cli --cluster reshard` all but {CORE_SLOT} "
            "to other shards, because the core's slot itself is never moved online"
        )
    if not replicas:
        yield ClusterFinding("the core has no replica: its data and all writes are lost with its machine; add two")
    elif len(replicas) <= write_replicas:
        yield ClusterFinding(
            f"--write-replicas {write_replicas} with {len(replicas)} replica(s) of the core: after a failover all "
            "writes are refused or unknown until another replica comes; add one"
        )


def _check_dead_shards(owner: NodeRow, rows: Sequence[NodeRow]) -> Iterator[ClusterFinding]:
    for row in rows:
        if not row.has_failed or not row.ranges:
            continue
        if row.id != owner.id:
            yield ClusterFinding(
                f"{row.name} has failed with {row.slot_count:,} slots, and no replica has taken its place: their "
                "timelines wait until it is back, then `stream-server repair` completes them"
            )
        elif _live_replicas(owner, rows):
            yield _passing(f"the core's primary {row.name} has failed, and {TAKES_OVER}")
        else:
            yield ClusterFinding(f"the core's primary {row.name} has failed without a replica: start it again", True)


def _check_open_slot(node: NodeRow, seen: Sequence[NodeRow]) -> Iterator[ClusterFinding]:
    # In its own row a node shows the slots that are being moved to or from it.
    if any(slot.startswith(f"[{CORE_SLOT}-") for row in seen for slot in row.open_slots):
        yield ClusterFinding(
            f"slot {CORE_SLOT}, that of the core, is being moved at {node.name}: writes are refused; `CLUSTER SETSLOT "
            f"{CORE_SLOT} STABLE` on all primaries ends it, and the core moves by `CLUSTER FAILOVER` to a replica only",
            is_grave=True,
        )


def _check_settings(reply: Sequence[bytes] | Exception) -> Iterator[ClusterFinding]:
    if isinstance(reply, Exception):
        yield ClusterFinding(
            "the settings of the core's primary cannot be read (CONFIG GET): see there that "
            "cluster-require-full-coverage is no and cluster-node-timeout 2000 to 5000"
        )
        return
    settings = dict(zip(reply[::2], reply[1::2], strict=True))
    if settings.get(b"cluster-require-full-coverage") != b"no":
        yield ClusterFinding(
            "cluster-require-full-coverage is yes: one dead shard of timelines would stop all writes and reads; "
            "set it to no on all nodes"
        )
    shortest, longest = NODE_TIMEOUT_MS
    timeout = int(settings.get(b"cluster-node-timeout", 0))
    if not shortest <= timeout <= longest:
        is_long = timeout > longest
        cost = "writes wait longer than that for a failover" if is_long else "a busy machine is taken for dead"
        yield ClusterFinding(f"cluster-node-timeout is {timeout} ms: {cost}; set {shortest} to {longest} on all nodes")


def _owners_differ(member: HostPort, node: NodeRow) -> ClusterFinding:
    return _passing(
        f"{member[0]}:{member[1]} and {node.name} do not name the same owner of the core's slot {CORE_SLOT}: a "
        "failover ends this within seconds, so check again; if it stays, let all nodes reach each other's bus ports"
    )


def _is_down(member: HostPort) -> ClusterFinding:
    return _passing(f"the cluster is down by the word of {member[0]}:{member[1]} (cluster_state:fail): see its log")


def _passing(sentence: str) -> ClusterFinding:
    return ClusterFinding(sentence, is_grave=True, may_pass=True)


def _live_replicas(owner: NodeRow, rows: Sequence[NodeRow]) -> list[NodeRow]:
    return [row for row in rows if row.primary == owner.id and not row.flags & {"fail", "fail?", "noaddr"}]


def _owners(rows: Sequence[NodeRow]) -> set[tuple[str, tuple[tuple[int, int], ...]]]:
    return {(row.id, row.ranges) for row in rows if row.ranges}
