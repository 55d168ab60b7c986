"""Makes a Redis Cluster of empty nodes in the layout that this server wants.

One shard, the core's, owns the slot of ``{core}`` and no other. The other shards share the rest. A shard with the core
and other slots could not be spread later without moving the core's slot, and a core's slot that is moved online may
begin a second log.
"""

from collections.abc import Sequence
from itertools import pairwise, zip_longest

from stream_server.store.redis.cluster_node import (
    CORE_SLOT,
    AdminNode,
    ClusterFault,
    Say,
    all_agree,
    meet,
    wait_for,
)
from stream_server.store.redis.engine import engine_of, is_cluster_node

SLOT_COUNT = 16_384
MIN_PRIMARIES = 3
"""A majority of primaries must be left when one fails, or no replica is promoted."""

"""The first version with ADDSLOTSRANGE."""

AGREE_SECONDS = 60.0
"""Longest wait for all nodes to agree. Redis accepts no write in its first two seconds."""

Shard = list[AdminNode]
"""A primary and its replicas."""


def plan_shards(nodes: Sequence[AdminNode], replicas: int) -> list[Shard]:
    """Return the shards, the core's first. Its primary is the first node.

    Primaries are spread over hosts. A replica is on another host than its primary where that is possible. Raises
    :class:`ClusterFault` if the number of nodes does not fit.
    """
    count, rest = divmod(len(nodes), replicas + 1)
    if rest or count < MIN_PRIMARIES:
        fits = MIN_PRIMARIES * (replicas + 1)
        raise ClusterFault(
            f"{len(nodes)} nodes do not make at least {MIN_PRIMARIES} shards of {replicas + 1}: name {fits}, "
            f"{fits + replicas + 1} or more"
        )
    left = _alternate_hosts(nodes)
    shards = [[left.pop(0)] for _ in range(count)]
    for _ in range(replicas):
        left.append(left.pop(0))  # the first one is on the host of the first primary
        for shard in shards:
            hosts = {node.address[0] for node in shard}
            chosen = next((node for node in left if node.address[0] not in hosts), left[0])
            left.remove(chosen)
            shard.append(chosen)
    return shards


def plan_ranges(shard_count: int) -> list[list[tuple[int, int]]]:
    """Return the ranges of slots of each shard. The first shard gets the core's slot alone."""
    bounds = [SLOT_COUNT * at // (shard_count - 1) for at in range(shard_count)]
    spread = [_without_core(first, end - 1) for first, end in pairwise(bounds)]
    return [[(CORE_SLOT, CORE_SLOT)], *spread]


async def check_empty(node: AdminNode) -> None:
    """Check that a node is new: in cluster mode, alone, without slots or data. Raises :class:`ClusterFault`."""
    info = await node.info("server")
    engine = engine_of(info)
    if engine.fault:
        raise ClusterFault(f"{node.name}: {engine.fault}")
    if not is_cluster_node(info):
        raise ClusterFault(f"{node.name} is not in cluster mode: start it with `cluster-enabled yes`")
    state = await node.cluster_info()
    if state["cluster_known_nodes"] != "1" or state["cluster_slots_assigned"] != "0":
        raise ClusterFault(f"{node.name} is part of a cluster already")
    if await node.run("DBSIZE"):
        raise ClusterFault(f"{node.name} has data: only empty nodes make a new cluster")


async def create(shards: Sequence[Shard], say: Say) -> None:
    """Make the cluster of nodes that were checked, and wait until all agree. Raises :class:`ClusterFault`.

    A failure may leave some nodes joined: CLUSTER RESET HARD on each makes them new again.
    """
    nodes = [node for shard in shards for node in shard]
    for epoch, node in enumerate(nodes, 1):  # equal epochs would be settled one by one, which takes seconds
        await node.run("CLUSTER", "SET-CONFIG-EPOCH", epoch)
    for shard, ranges in zip(shards, plan_ranges(len(shards)), strict=True):
        await shard[0].run("CLUSTER", "ADDSLOTSRANGE", *(bound for each in ranges for bound in each))
    say("the primaries have their slots")
    await _join(nodes)
    say(f"{len(nodes)} nodes know each other")
    for primary, *replicas in shards:
        primary_id = (await primary.own_row()).id
        for replica in replicas:
            await replica.run("CLUSTER", "REPLICATE", primary_id)
    say("the replicas copy their primaries")
    await wait_for(lambda: all_agree(nodes), AGREE_SECONDS, f"the nodes did not agree within {AGREE_SECONDS:g} s")


async def _join(nodes: Sequence[AdminNode]) -> None:
    for at, node in enumerate(nodes):
        await meet(node, nodes[:at])
    ids = {(await node.own_row()).id for node in nodes}

    async def have_met() -> bool:
        return all([ids <= {row.id for row in await node.rows()} for node in nodes])

    await wait_for(have_met, AGREE_SECONDS, "the nodes did not meet: their bus ports must be open to each other")


def _alternate_hosts(nodes: Sequence[AdminNode]) -> list[AdminNode]:
    """Return the nodes in turns of their hosts, so that neighbours are on different ones. The first stays first."""
    by_host: dict[str, list[AdminNode]] = {}
    for node in nodes:
        by_host.setdefault(node.address[0], []).append(node)
    return [node for turn in zip_longest(*by_host.values()) for node in turn if node is not None]


def _without_core(first: int, last: int) -> list[tuple[int, int]]:
    if not first <= CORE_SLOT <= last:
        return [(first, last)]
    both = [(first, CORE_SLOT - 1), (CORE_SLOT + 1, last)]
    return [(start, end) for start, end in both if start <= end]
