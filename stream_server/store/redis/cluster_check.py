"""Finds what is set up wrongly in a Redis Cluster, and says what to do.

A finding is grave if events would not arrive or writes would be refused. The others cost more in a failover than they
need to, or are in the way later.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stream_server.store.redis.address import ClusterSeeds
from stream_server.store.redis.cluster_node import CORE_SLOT, AdminNode, AdminNodes, ClusterFault, NodeRow

MIN_NODE_TIMEOUT_MS = 2000
"""Shortest safe ``cluster-node-timeout``. With a shorter one, a busy moment of a machine looks like its death."""

MAX_NODE_TIMEOUT_MS = 5000
"""Longest useful ``cluster-node-timeout``. After a kill, writes come back two to three seconds after it."""


SETTLE_SECONDS = 2.0
"""Seconds between the two looks at a cluster in which a failover may go on."""

TAKES_OVER = "a replica takes its place within seconds: check again then"


@dataclass(frozen=True, slots=True)
class ClusterFinding:
    """One thing that is wrong, as a sentence.

    Attributes:
        is_grave: Whether events would not arrive or writes would be refused.
        may_pass: Whether it ends by itself if it belongs to a failover.
    """

    is_grave: bool
    sentence: str
    may_pass: bool = False


async def check_seeds(seeds: ClusterSeeds, timeout_seconds: float, write_replicas: int) -> list[ClusterFinding]:
    """Return what is wrong in the cluster of a URL, as :func:`check_cluster` does, and which named nodes are silent.

    ``timeout_seconds`` is the longest wait for one node. Raises nothing: a silent cluster is a grave finding.
    """
    async with admin_nodes(seeds, timeout_seconds) as nodes:
        silent: list[ClusterFinding] = []
        for address in seeds.seeds:
            try:
                return await check_cluster(nodes, nodes.connect(address), write_replicas) + silent
            except ClusterFault as error:
                silent.append(_advice(str(error)))
        return [_grave(finding.sentence) for finding in silent]


def admin_nodes(seeds: ClusterSeeds, timeout_seconds: float) -> AdminNodes:
    """Return the opener of connections to the nodes of a URL, with its login and TLS."""
    login: dict[str, Any] = {**seeds.credentials, **seeds.tls_options}
    return AdminNodes(timeout_seconds, ssl=seeds.use_tls, **login)


async def check_cluster(nodes: AdminNodes, member: AdminNode, write_replicas: int = 0) -> list[ClusterFinding]:
    """Return what is wrong in the cluster of ``member``, the grave first; empty if nothing is.

    What may belong to a failover is looked at twice. ``write_replicas`` is the number of replicas that the servers
    wait for. Raises :class:`ClusterFault` if ``member`` cannot be asked.
    """
    found = await _look(nodes, member, write_replicas)
    if any(finding.may_pass for finding in found):
        await asyncio.sleep(SETTLE_SECONDS)
        found = await _look(nodes, member, write_replicas)
    return sorted(found, key=lambda finding: not finding.is_grave)


async def _look(nodes: AdminNodes, member: AdminNode, write_replicas: int) -> list[ClusterFinding]:
    rows = await member.rows()
    owner_row = next((row for row in rows if row.owns(CORE_SLOT)), None)
    state = await member.cluster_info()
    found = []
    if state.get("cluster_state") != "ok":
        found.append(_passing(f"the cluster is down by the word of {member.name} (cluster_state:fail): see its log"))
    if owner_row is None:
        return [
            *found,
            _grave(
                f"no node owns slot {CORE_SLOT}, that of the core, so nothing can be written: start its primary or a "
                f"replica again; in a new cluster, `stream-server cluster create` assigns it"
            ),
        ]
    found += _check_core(owner_row, rows, write_replicas) + _check_dead_shards(rows, owner_row)
    return found + await _check_primaries(nodes, member, rows, owner_row)


def _check_core(owner: NodeRow, rows: Sequence[NodeRow], write_replicas: int) -> list[ClusterFinding]:
    found = []
    replicas = _live_replicas(owner, rows)
    if owner.slot_count > 1:
        found.append(
            _advice(
                f"the core's shard owns {owner.slot_count:,} slots: `redis-cli --cluster reshard` all but {CORE_SLOT} "
                "to other shards, because the core's slot itself is never moved online"
            )
        )
    if not replicas:
        found.append(_advice("the core has no replica: its data and all writes are lost with its machine; add two"))
    elif len(replicas) <= write_replicas:
        found.append(
            _advice(
                f"--write-replicas {write_replicas} with {len(replicas)} replica(s) of the core: after a failover all "
                "writes are refused or unknown until another replica comes; add one"
            )
        )
    return found


def _live_replicas(owner: NodeRow, rows: Sequence[NodeRow]) -> list[NodeRow]:
    return [row for row in rows if row.primary == owner.id and not row.flags & {"fail", "fail?", "noaddr"}]


def _check_dead_shards(rows: Sequence[NodeRow], owner: NodeRow) -> list[ClusterFinding]:
    found = []
    for row in rows:
        if "fail" not in row.flags or not row.ranges:
            continue
        where = f"{row.address[0]}:{row.address[1]}"
        if row.id == owner.id and _live_replicas(owner, rows):
            found.append(_passing(f"the core's primary {where} has failed, and {TAKES_OVER}"))
        elif row.id == owner.id:
            found.append(_grave(f"the core's primary {where} has failed without a replica: start it again"))
        else:
            found.append(
                _advice(
                    f"{where} has failed with {row.slot_count:,} slots, and no replica has taken its place: their "
                    "timelines wait until it is back, then `stream-server repair` completes them"
                )
            )
    return found


async def _check_primaries(
    nodes: AdminNodes, member: AdminNode, rows: Sequence[NodeRow], owner_row: NodeRow
) -> list[ClusterFinding]:
    """Ask every primary: only the nodes that move a slot tell of it, and each may know other owners."""
    found: list[ClusterFinding] = []
    differing: list[str] = []
    for row in rows:
        if row.primary or not row.address[0] or "fail" in row.flags:
            continue
        node = nodes.connect(row.address)
        try:
            seen = await node.rows()
            found += _check_open_slots(node, seen)
            if row.id == owner_row.id:
                found += await _check_settings(node)
        except ClusterFault as error:
            is_core = row.id == owner_row.id
            after = f"; {TAKES_OVER}" if is_core and _live_replicas(owner_row, rows) else ""
            found.append(ClusterFinding(is_core, f"{error}{after}", may_pass=True))
            continue
        if not any(other.id == owner_row.id and other.owns(CORE_SLOT) for other in seen):
            found.append(_owners_differ(member, node))
        elif _owners(seen) != _owners(rows):
            differing.append(node.name)
    if differing:
        found.append(
            _advice(
                f"{member.name} and {', '.join(differing)} name different owners of slots: during a failover or a "
                "reshard this ends by itself, else a node cannot reach the bus ports of the others"
            )
        )
    return found


def _owners(rows: Sequence[NodeRow]) -> set[tuple[str, tuple[tuple[int, int], ...]]]:
    return {(row.id, row.ranges) for row in rows if row.ranges}


def _owners_differ(member: AdminNode, node: AdminNode) -> ClusterFinding:
    return _passing(
        f"{member.name} and {node.name} do not name the same owner of the core's slot {CORE_SLOT}: a failover ends "
        "this within seconds, so check again; if it stays, let all nodes reach each other's bus ports"
    )


def _check_open_slots(node: AdminNode, rows: Sequence[NodeRow]) -> list[ClusterFinding]:
    own = next(row for row in rows if "myself" in row.flags)
    if not is_core_open(own):
        return []
    return [
        _grave(
            f"slot {CORE_SLOT}, that of the core, is being moved at {node.name}: writes are refused; "
            f"`CLUSTER SETSLOT {CORE_SLOT} STABLE` there ends it, and `stream-server cluster move-core` moves the core"
        )
    ]


def is_core_open(row: NodeRow) -> bool:
    """Return whether a node, by its own row, sends the core's slot away or takes it from another one."""
    return any(opened.startswith(f"{CORE_SLOT} ") for opened in row.open_slots)


async def _check_settings(node: AdminNode) -> list[ClusterFinding]:
    try:
        reply = await node.run("CONFIG", "GET", "cluster-*")
    except ClusterFault:
        return [
            _advice(
                "the settings of the core's primary cannot be read (CONFIG GET): see there that "
                "cluster-require-full-coverage is no and cluster-node-timeout 2000 to 5000"
            )
        ]
    settings = {_text(name): _text(value) for name, value in _pairs(reply)}
    found = []
    if settings.get("cluster-require-full-coverage") != "no":
        found.append(
            _advice(
                "cluster-require-full-coverage is yes: one dead shard of timelines would stop all writes and reads; "
                "set it to no on all nodes"
            )
        )
    timeout = int(settings.get("cluster-node-timeout", 0))
    if not MIN_NODE_TIMEOUT_MS <= timeout <= MAX_NODE_TIMEOUT_MS:
        cost = (
            "writes wait longer than that for a failover"
            if timeout > MAX_NODE_TIMEOUT_MS
            else ("a machine that is busy for a moment is taken for dead")
        )
        advised = f"set {MIN_NODE_TIMEOUT_MS} to {MAX_NODE_TIMEOUT_MS} on all nodes"
        found.append(_advice(f"cluster-node-timeout is {timeout} ms: {cost}; {advised}"))
    return found


def _pairs(reply: object) -> list[tuple[object, object]]:
    if isinstance(reply, dict):
        return list(reply.items())
    assert isinstance(reply, list)
    return list(zip(reply[::2], reply[1::2], strict=True))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _grave(sentence: str) -> ClusterFinding:
    return ClusterFinding(is_grave=True, sentence=sentence)


def _passing(sentence: str) -> ClusterFinding:
    return ClusterFinding(is_grave=True, sentence=sentence, may_pass=True)


def _advice(sentence: str) -> ClusterFinding:
    return ClusterFinding(is_grave=False, sentence=sentence)
