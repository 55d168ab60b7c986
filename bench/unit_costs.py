"""What one deed, one heard entry and one stream cost: the figures of `bench.units`, and their file."""

from pathlib import Path

import msgspec

CHECKED_IN = Path(__file__).with_name("unit_costs.json")
"""The figures of the run behind `docs/capacity.md`."""


class Machine(msgspec.Struct, frozen=True):
    """The machine and the programs of a run. ``busy_percent`` is what other programs used, in % of a core."""

    processor: str
    cores: int
    python: str
    redis: str
    appendfsync: str
    commit: str
    busy_percent: float


class Times(msgspec.Struct, frozen=True):
    """CPU times of one deed in µs.

    Attributes:
        redis: Of Redis' main thread, without what it costs to send the entries to its subscribers.
        server: Of the server that does the deed, without hearing its entries.
        hear: Of each server that hears the entries and matches them for one client.
    """

    redis: float
    server: float
    hear: float


class Deed(msgspec.Struct, frozen=True):
    """The cost of one deed on average. Sizes are in bytes.

    Attributes:
        commands: Commands of Redis, also those that scripts call.
        many: CPU times if 16 deeds are done at the same time.
        alone: CPU times if each deed waits for the one before it, so that each wakes up all processes.
        entries: Entries of the log.
        memory: Growth of Redis' memory.
        aof: Growth of the append-only file. A replica gets as much.
        answer: Bytes of the answer.
        families: The growth of the keys by family, as in `store/keys.py`.
    """

    commands: float
    many: Times
    alone: Times
    entries: float
    memory: float
    aof: float
    answer: float
    families: dict[str, float]


class Stream(msgspec.Struct, frozen=True):
    """The cost of one stream of a kind for its server. Times are CPU time in µs, sizes bytes.

    Attributes:
        memory: Anonymous memory of the server, without the kernel's socket buffers.
        connect_us: CPU time of the server for a connect.
        connect_redis_us: CPU time of Redis' main thread for a connect.
        heartbeat_us: CPU time for one heartbeat.
        wake_us: CPU time to begin the delivery of one post, however many receive it. It falls if posts come together.
        deliver_us: CPU time for one delivery, with the search for the clients that match.
        deliver_bytes: Bytes of one delivery.
    """

    memory: float
    connect_us: float
    connect_redis_us: float
    heartbeat_us: float
    wake_us: float
    deliver_us: float
    deliver_bytes: float


class PageCost(msgspec.Struct, frozen=True):
    """CPU times of a home page in µs, 16 at the same time.

    Attributes:
        primary: Of the main thread of the primary.
        replica: Of the main thread of the busiest replica, over all pages. 0 without replicas.
        server: Of the server.
    """

    primary: float
    replica: float
    server: float


class UnitCosts(msgspec.Struct, frozen=True):
    """All figures of a run.

    Attributes:
        idle_commands: Commands a second that a server process sends to Redis while nothing happens.
        idle_redis_us: CPU time of Redis for them in a second, in µs.
        idle_server_us: CPU time of a server process in a second while nothing happens, in µs.
        deeds: Costs by name of the deed, such as ``post, 10 followers``.
        streams: Costs by kind of the stream.
        subscriber_us: CPU time of Redis for one entry and one subscriber, in µs.
        full_home: Memory of a home timeline of full length, in bytes.
        process_memory: Memory of a server process without streams, in bytes.
        pages: Costs of a home page without replicas, with one replica, and so on.
        pages_busy_percent: What other programs used while these were measured, in % of a core.
    """

    machine: Machine
    idle_commands: float
    idle_redis_us: float
    idle_server_us: float
    deeds: dict[str, Deed]
    streams: dict[str, Stream]
    subscriber_us: float
    full_home: float
    process_memory: float
    pages: list[PageCost] = []
    pages_busy_percent: float = 0

    def json(self) -> str:
        """Return the figures as text, rounded to a thousandth."""
        return msgspec.json.format(msgspec.json.encode(_rounded(msgspec.to_builtins(self))), indent=1).decode() + "\n"


def read(path: Path = CHECKED_IN) -> UnitCosts:
    """Read the figures of a run. Raises OSError, or ValidationError of msgspec if the file has another form."""
    return msgspec.json.decode(path.read_bytes(), type=UnitCosts)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return round(value, 3) if isinstance(value, float) else value
