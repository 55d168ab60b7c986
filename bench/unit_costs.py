"""What one deed, one heard entry and one stream cost: the figures of `bench.units`, and their file.

`unit_costs.json` has the figures of the run behind `docs/capacity.md`. `bench.simulate` computes with them.
"""

from pathlib import Path

import msgspec

CHECKED_IN = Path(__file__).with_name("unit_costs.json")
"""The figures of the run behind `docs/capacity.md`."""


RELAY_WORKERS = 2
"""Workers of the relay that is measured."""


class Machine(msgspec.Struct, frozen=True):
    """The machine and the programs of a run. ``busy_percent`` is what other programs used, in % of a core."""

    processor: str
    cores: int
    python: str
    redis: str
    appendfsync: str
    commit: str
    busy_percent: float


class Idle(msgspec.Struct, frozen=True):
    """The cost of one more server process each second while nothing happens. Times are CPU time in µs.

    ``redis_own_us`` is what Redis costs without any server.
    """

    commands: float
    redis_us: float
    redis_own_us: float
    server_us: float
    redis_in: float
    redis_out: float


class Deed(msgspec.Struct, frozen=True):
    """The cost of one deed, on average, of deeds of which 16 are done at the same time.

    Sizes are in bytes and times in µs of CPU time.

    Attributes:
        count: Number of deeds that were measured.
        commands: Commands of Redis, also those that scripts call.
        redis_us: CPU time of Redis' main thread, without what it costs to send the entries to its subscribers.
        redis_other_us: CPU time of Redis' other threads, which write the append-only file to the disk.
        script_us: Time in scripts; a part of ``redis_us``.
        server_us: CPU time of the server that does the deed, without hearing its entries.
        hear_us: CPU time of a server that hears the entries of the deed and matches them for one client.
        entries: Entries of the log.
        published: Bytes that each subscriber of Redis gets.
        redis_in: Bytes from the server to Redis.
        redis_out: Bytes from Redis to the server, without what is published.
        http_in: Bytes of the request.
        http_out: Bytes of the answer.
        memory: Growth of Redis' memory.
        aof: Growth of the append-only file. A replica gets as much.
        alone_redis_us: As ``redis_us``, of deeds that are done one at a time, so that each wakes up all processes.
        alone_server_us: As ``server_us``, one at a time.
        alone_hear_us: As ``hear_us``, one at a time.
        families: The memory of the keys by family, as in `store/keys.py`.
        calls: Calls of each command of Redis.
    """

    count: int
    commands: float
    redis_us: float
    redis_other_us: float
    script_us: float
    server_us: float
    hear_us: float
    entries: float
    published: float
    redis_in: float
    redis_out: float
    http_in: float
    http_out: float
    memory: float
    aof: float
    alone_redis_us: float
    alone_server_us: float
    alone_hear_us: float
    families: dict[str, float]
    calls: dict[str, float]


class Stream(msgspec.Struct, frozen=True):
    """The cost of one stream of a kind for its server. Times are CPU time in µs, sizes bytes.

    Attributes:
        count: Number of streams that were measured.
        memory: Anonymous memory of the server, without the kernel's socket buffers.
        redis_memory: Memory of Redis.
        connect_us: CPU time of the server for a connect.
        connect_redis_us: CPU time of Redis' main thread for a connect.
        connect_commands: Commands of Redis for a connect.
        heartbeat_us: CPU time for one heartbeat.
        heartbeat_bytes: Bytes of one heartbeat.
        wake_us: CPU time to begin the delivery of one post, however many receive it. It falls if posts come together.
        deliver_us: CPU time for one delivery, with the search for the clients that match.
        deliver_bytes: Bytes of one delivery.
    """

    count: int
    memory: float
    redis_memory: float
    connect_us: float
    connect_redis_us: float
    connect_commands: float
    heartbeat_us: float
    heartbeat_bytes: float
    wake_us: float
    deliver_us: float
    deliver_bytes: float


class Relay(msgspec.Struct, frozen=True):
    """The cost of hearing one post by a relay and two workers. Times are CPU time in µs, ``alone`` one post at a time.

    Attributes:
        relay_us: Of the relay.
        worker_us: Of each worker, as ``hear_us`` of a server that hears by itself.
        alone_relay_us: Of the relay, one at a time.
        alone_worker_us: Of each worker, one at a time.
        idle_us: Of the relay in a second in which nothing happens.
        memory: Memory of the relay, in bytes.
        link_us: Of the relay for one more worker. 0 in runs that did not measure it.
        alone_link_us: Of the relay for one more worker, one at a time.
    """

    relay_us: float
    worker_us: float
    alone_relay_us: float
    alone_worker_us: float
    idle_us: float
    memory: float
    link_us: float = 0.0
    alone_link_us: float = 0.0


NO_RELAY = Relay(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""The figures of a version without a relay."""


class UnitCosts(msgspec.Struct, frozen=True):
    """All figures of a run.

    Attributes:
        deeds: Costs by name of the deed, such as ``post, 10 followers``.
        streams: Costs by kind of the stream.
        joined_us: CPU time for hearing the entries of a post by its name, if one read brings many, in µs.
        relay: Costs of hearing by a relay.
        subscriber_us: CPU time of Redis for one entry and one subscriber, in µs.
        alone_subscriber_us: The same, if each entry is sent by itself.
        full_home: Memory of a home timeline of full length, in bytes.
        process_memory: Memory of a server process without streams, in bytes.
    """

    machine: Machine
    idle: Idle
    deeds: dict[str, Deed]
    streams: dict[str, Stream]
    joined_us: dict[str, float]
    relay: Relay
    subscriber_us: float
    alone_subscriber_us: float
    full_home: float
    process_memory: float

    def json(self) -> str:
        """Return the figures as text, rounded to a thousandth."""
        return msgspec.json.format(msgspec.json.encode(_rounded(msgspec.to_builtins(self))), indent=1).decode() + "\n"


def read(path: Path = CHECKED_IN) -> UnitCosts:
    """Read the figures of a run. Raises OSError, or ValidationError of msgspec if the file has another form."""
    return msgspec.json.decode(path.read_bytes(), type=UnitCosts)


def _rounded(value: object) -> object:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, 3) if isinstance(value, float) else value
