"""What one node of a Redis Cluster reports: which node owns which slots since which epoch, and where each node is.

CLUSTER SLOTS has the addresses that clients should use. CLUSTER NODES has the config epoch of each owner, a number that
grows with each failover and each move of slots. Both come from one node in one step.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from stream_server.store.redis.guided_connection import HostPort


class NodeState(NamedTuple):
    """A row of CLUSTER NODES that has slots.

    Attributes:
        node_id: Name of the node, which it keeps when its address changes.
        epoch: Its config epoch.
        slots: Its slots as Redis writes them, without those that are being moved.
        has_failed: Whether most primaries agree that it does not answer, so a replica is about to take its place.
        may_be_replaced: Whether it has a replica that has not failed.
    """

    node_id: str
    epoch: int
    slots: str
    has_failed: bool
    may_be_replaced: bool


class Claim(NamedTuple):
    """Some slots, and the shard that serves them by one node's word.

    ``epoch`` and ``node_id`` are those of the primary. ``is_failing_over`` tells that it has failed and a replica may
    take its place.
    """

    epoch: int
    node_id: str
    first_slot: int
    last_slot: int
    primary: HostPort
    replicas: tuple[HostPort, ...]
    is_failing_over: bool


def parse_states(nodes_text: bytes) -> frozenset[NodeState]:
    """Return the nodes that have slots, from the reply of CLUSTER NODES."""
    rows = [line.split(" ") for line in nodes_text.decode().splitlines() if line]
    replaceable = {row[3] for row in rows if row[3] != "-" and "fail" not in row[2].split(",")}
    return frozenset(
        NodeState(
            node_id=row[0],
            epoch=int(row[6]),
            slots=" ".join(part for part in row[8:] if not part.startswith("[")),
            has_failed="fail" in row[2].split(","),
            may_be_replaced=row[0] in replaceable,
        )
        for row in rows
        if len(row) > 8 and row[3] == "-"
    )


def parse_claims(slot_rows: Iterable[Any], states: Iterable[NodeState], asked: HostPort) -> Iterator[Claim]:
    """Yield the claims in the reply of CLUSTER SLOTS. ``asked`` is the address of the node that answered.

    A node without a known host has that of the node that was asked, as Redis means it.
    """
    state_by_id = {state.node_id: state for state in states}
    for first_slot, last_slot, primary, *replicas in slot_rows:
        node_id = primary[2].decode()
        state = state_by_id.get(node_id)
        yield Claim(
            epoch=0 if state is None else state.epoch,
            node_id=node_id,
            first_slot=first_slot,
            last_slot=last_slot,
            primary=_parse_address(primary, asked),
            replicas=tuple(_parse_address(replica, asked) for replica in replicas),
            is_failing_over=state is not None and state.has_failed and state.may_be_replaced,
        )


def _parse_address(node: list[Any], asked: HostPort) -> HostPort:
    """Return the address of a node in CLUSTER SLOTS: host, port, id, and since Redis 7 a list of other names."""
    host, port = (node[0] or b"").decode(), int(node[1])
    if host == "?":  # Redis prefers host names, and this node has none
        names = [name.decode() for name in node[3]] if len(node) > 3 else []
        host = dict(zip(names[::2], names[1::2], strict=False)).get("ip", "")
    return host or asked[0], port
