"""What one node of a Redis Cluster reports: which node owns which slots since which epoch, and where each node is.

CLUSTER SLOTS has the addresses that clients should use. CLUSTER NODES has the config epoch of each owner, a number that
grows with each failover and each move of slots. Both come from one node in one step.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from stream_server.store.redis.connecting import HostPort


class NodeRow(NamedTuple):
    """One node in CLUSTER NODES.

    Attributes:
        id: Name of the node, which it keeps when its address changes.
        address: Host and port for clients. The host is empty if the node does not know its own address yet.
        flags: Words such as ``myself``, ``master``, ``slave``, ``fail``, ``handshake``.
        primary: Id of the primary of a replica, or empty.
        epoch: Its config epoch.
        ranges: First and last slots that the node owns.
        open_slots: Slots that the node moves now, as Redis writes them. Only the node itself tells of them.
    """

    id: str
    address: HostPort
    flags: frozenset[str]
    primary: str
    epoch: int
    ranges: tuple[tuple[int, int], ...]
    open_slots: tuple[str, ...]

    @property
    def name(self) -> str:
        """Host and port as text."""
        return f"{self.address[0]}:{self.address[1]}"

    @property
    def has_failed(self) -> bool:
        """Whether most primaries agree that the node does not answer."""
        return "fail" in self.flags

    @property
    def slot_count(self) -> int:
        """Number of slots that the node owns."""
        return sum(last - first + 1 for first, last in self.ranges)

    def owns(self, slot: int) -> bool:
        """Return whether the node owns a slot."""
        return any(first <= slot <= last for first, last in self.ranges)


class Claim(NamedTuple):
    """The word of one node about a range of slots: it names the shard that serves them.

    ``epoch`` (config epoch) and ``node_id`` are those of the primary. ``is_failing_over`` says that the primary has
    failed and that a replica may take its place.
    """

    epoch: int
    node_id: str
    first_slot: int
    last_slot: int
    primary: HostPort
    replicas: tuple[HostPort, ...]
    is_failing_over: bool


def parse_rows(nodes_text: bytes) -> list[NodeRow]:
    """Return the nodes in the reply of CLUSTER NODES."""
    return [_parse_row(line) for line in nodes_text.decode().splitlines() if line]


def parse_claims(slot_rows: Iterable[Any], rows: Iterable[NodeRow], asked: HostPort) -> Iterator[Claim]:
    """Yield the claims in the reply of CLUSTER SLOTS. ``asked`` is the address of the node that answered.

    A node whose host the reply leaves out has the host of ``asked``, as the documentation of Redis says.
    """
    row_by_id = {row.id: row for row in rows}
    for first_slot, last_slot, primary, *replicas in slot_rows:
        node_id = primary[2].decode()
        row = row_by_id.get(node_id)
        yield Claim(
            epoch=0 if row is None else row.epoch,
            node_id=node_id,
            first_slot=first_slot,
            last_slot=last_slot,
            primary=_parse_address(primary, asked),
            replicas=tuple(_parse_address(replica, asked) for replica in replicas),
            is_failing_over=row is not None
            and row.has_failed
            and any(each.primary == node_id and not each.has_failed for each in row_by_id.values()),
        )


def _parse_row(line: str) -> NodeRow:
    node_id, address, flags, primary, _, _, epoch, _, *slots = line.split(" ")
    host, _, port = address.partition(",")[0].partition("@")[0].rpartition(":")
    bounds = [each.partition("-") for each in slots if not each.startswith("[")]
    return NodeRow(
        id=node_id,
        address=(host, int(port)),
        flags=frozenset(flags.split(",")),
        primary="" if primary == "-" else primary,
        epoch=int(epoch),
        ranges=tuple((int(first), int(last or first)) for first, _, last in bounds),
        open_slots=tuple(each for each in slots if each.startswith("[")),
    )


def _parse_address(node: list[Any], asked: HostPort) -> HostPort:
    """Return the address of a node in CLUSTER SLOTS: host, port, id, and a list of other names."""
    host, port = (node[0] or b"").decode(), int(node[1])
    if host == "?":  # Redis prefers host names, and this node has none
        names = [name.decode() for name in node[3]] if len(node) > 3 else []
        host = dict(zip(names[::2], names[1::2], strict=False)).get("ip", "")
    return host or asked[0], port
