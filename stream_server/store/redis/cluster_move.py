"""Moves the core of a Redis Cluster to another machine: by a replica and a planned failover, and in no other way.

The slot of ``{core}`` is never moved online. While it is half moved, a script at the new node finds no log and would
begin a second one. A plain CLUSTER FAILOVER loses nothing: the old primary pauses writes until the replica has all of
them. FORCE and TAKEOVER do not wait, and lose acknowledged writes.
"""

import time

from stream_server.store.redis.cluster_node import (
    CORE_SLOT,
    AdminNode,
    AdminNodes,
    ClusterFault,
    NodeRow,
    Say,
    meet,
    wait_for,
)
from stream_server.store.redis.engine import is_cluster_node

MAX_LAG_BYTES = 1 << 16
"""Bytes that a replica may lack when the failover begins. Redis gives up after five seconds of waiting for them."""

FAILOVER_SECONDS = 10.0
NOT_FAILED_OVER = (
    "the failover did not come about, and the old primary goes on: try again later, because after an election "
    "Redis begins no other one for four node timeouts"
)
AGREE_SECONDS = 60.0


async def move_core(nodes: AdminNodes, target: AdminNode, member: AdminNode, copy_seconds: float, say: Say) -> float:
    """Make ``target`` the primary of the core. Return the seconds for which the failover ran: 0 if it was primary.

    ``member`` is any node of the cluster, which ``target`` joins if it is new. ``copy_seconds`` is the longest wait for
    its copy of the data. Raises :class:`ClusterFault`. The old primary is still the core's then, unless the fault says
    that ``member`` does not know the new one.
    """
    owner_row = await _find_owner(member)
    owner = nodes.connect(owner_row.address if owner_row.address[0] else member.address)
    await _check_owner(owner, target)
    row = await target.own_row()
    if row.id == owner_row.id:
        say(f"{target.name} is the primary of the core already")
        return 0.0
    await _make_replica(owner, owner_row, target, row, say)
    alive = [row for row in await owner.rows() if row.ranges and row.address[0] and "fail" not in row.flags]
    voters = [nodes.connect(each.address) for each in alive]

    async def all_know() -> bool:
        return all([await _knows_replica(voter, row.id, owner_row.id) for voter in voters])

    await wait_for(all_know, AGREE_SECONDS, f"not all primaries know {target.name} as a replica of the core")
    say(f"{target.name} copies the core from {owner.name}")
    await wait_for(
        lambda: _has_all_data(owner, target), copy_seconds, f"{target.name} did not get all data in {copy_seconds:g} s"
    )
    say("it has all data: the failover begins")
    seconds = await _fail_over(target)
    await wait_for(lambda: _is_owner(member, row.id), AGREE_SECONDS, f"{member.name} does not know the new primary")
    return seconds


async def _find_owner(member: AdminNode) -> NodeRow:
    owners = [row for row in await member.rows() if row.owns(CORE_SLOT)]
    if not owners:
        raise ClusterFault(f"{member.name} knows no node with slot {CORE_SLOT}: is it part of a cluster?")
    return owners[0]


async def _check_owner(owner: AdminNode, target: AdminNode) -> None:
    if any(opened.startswith(f"{CORE_SLOT} ") for opened in (await owner.own_row()).open_slots):
        raise ClusterFault(f"slot {CORE_SLOT} is open: CLUSTER SETSLOT {CORE_SLOT} STABLE on all primaries first")
    if not is_cluster_node(await target.info("server")):
        raise ClusterFault(f"{target.name} is not in cluster mode")


async def _make_replica(owner: AdminNode, owner_row: NodeRow, target: AdminNode, row: NodeRow, say: Say) -> None:
    """Make the target a replica of the core's owner, unless it is one. It must own no slots and join if it is new."""
    if row.primary == owner_row.id:
        return
    if row.ranges:
        raise ClusterFault(f"{target.name} owns slots of its own: name a replica of the core, or a new node")
    if owner_row.id not in {other.id for other in await target.rows()}:
        if await target.run("DBSIZE"):
            raise ClusterFault(f"{target.name} has data of its own: only an empty node can join")
        await meet(target, [owner])

        async def knows() -> bool:
            rows = {other.id: other for other in await target.rows()}
            return owner_row.id in rows and "handshake" not in rows[owner_row.id].flags

        await wait_for(knows, AGREE_SECONDS, f"{target.name} and {owner.name} did not meet: are their bus ports open?")
        say(f"{target.name} joined the cluster")
    await target.run("CLUSTER", "REPLICATE", owner_row.id)


async def _has_all_data(owner: AdminNode, target: AdminNode) -> bool:
    copy = await target.info("replication")
    if copy.get("master_link_status") != "up":
        return False
    written = int((await owner.info("replication"))["master_repl_offset"])
    return written - int(copy["slave_repl_offset"]) <= MAX_LAG_BYTES and _row_is_replica(await target.own_row())


async def _fail_over(target: AdminNode) -> float:
    started = time.monotonic()
    await target.run("CLUSTER", "FAILOVER")

    async def is_primary() -> bool:
        return bool((await target.run("ROLE"))[0] == b"master")

    await wait_for(is_primary, FAILOVER_SECONDS, NOT_FAILED_OVER)
    return time.monotonic() - started


async def _is_owner(member: AdminNode, node_id: str) -> bool:
    return (await _find_owner(member)).id == node_id


async def _knows_replica(voter: AdminNode, node_id: str, primary_id: str) -> bool:
    """Return whether a primary would vote for this replica."""
    return any(row.id == node_id and row.primary == primary_id for row in await voter.rows())


def _row_is_replica(row: NodeRow) -> bool:
    return "slave" in row.flags
