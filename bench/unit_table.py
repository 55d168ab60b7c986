"""The tables that `bench.units` prints."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from bench.unit_costs import NO_RELAY, Relay, UnitCosts

DEED_COLUMNS = (
    ("commands", "commands", 0),
    ("Redis µs", "redis_us", 0),
    ("in scripts", "script_us", 0),
    ("server µs", "server_us", 0),
    ("heard µs", "hear_us", 0),
    ("alone: Redis µs", "alone_redis_us", 0),
    ("server µs", "alone_server_us", 0),
    ("heard µs", "alone_hear_us", 0),
    ("entries", "entries", 0),
    ("memory B", "memory", 0),
    ("AOF B", "aof", 0),
    ("published B", "published", 0),
    ("to Redis B", "redis_in", 0),
    ("from Redis B", "redis_out", 0),
    ("request B", "http_in", 0),
    ("answer B", "http_out", 0),
)
"""Title, field and decimals of each column of the deeds."""

STREAM_COLUMNS = (
    ("memory B", "memory", 0),
    ("in Redis B", "redis_memory", 0),
    ("connect µs", "connect_us", 0),
    ("connect, Redis µs", "connect_redis_us", 0),
    ("connect, commands", "connect_commands", 1),
    ("heartbeat µs", "heartbeat_us", 1),
    ("heartbeat B", "heartbeat_bytes", 0),
    ("post µs", "wake_us", 0),
    ("delivery µs", "deliver_us", 1),
    ("delivery B", "deliver_bytes", 0),
)
"""The same of the streams."""


TAB = "    "
"""The indent of a figure that belongs to the one above."""


def show(costs: UnitCosts) -> None:
    """Print all figures."""
    console = Console(width=None if Console().is_terminal else 170)
    console.print(_table("one deed", DEED_COLUMNS, costs.deeds.items()))
    console.print(_families(costs))
    console.print(_table("one stream", STREAM_COLUMNS, costs.streams.items()))
    for line in notes(costs):
        console.print(line, highlight=False)


def notes(costs: UnitCosts) -> list[str]:
    """Return the figures that are in no table, one sentence each."""
    idle, machine = costs.idle, costs.machine
    return [
        f"an idle server process: {idle.server_us:,.0f} µs a second",
        f"{TAB}in Redis {idle.redis_us:,.0f} µs and {idle.commands:.1f} commands a second",
        f"an idle Redis without it: {idle.redis_own_us:,.0f} µs a second",
        *(f"heard among many in one read, {name}: {us:.0f} µs" for name, us in costs.joined_us.items()),
        *_relay_notes(costs.relay),
        f"one more subscriber: {costs.subscriber_us:.1f} µs of Redis an entry",
        f"{TAB}one at a time: {costs.alone_subscriber_us:.1f} µs",
        f"a full home timeline: {costs.full_home:,.0f} bytes",
        f"a server process without streams: {costs.process_memory / 2**20:.0f} MiB",
        f"{machine.cores} cores of {machine.processor}, Python {machine.python}, {machine.redis}",
        f"appendfsync {machine.appendfsync}, commit {machine.commit}",
        f"other programs used {machine.busy_percent:.0f} % of a core",
    ]


def _relay_notes(relay: Relay) -> list[str]:
    if relay == NO_RELAY:
        return ["this version has no relay"]
    return [
        f"heard by a relay and two workers: relay {relay.relay_us:.0f} µs, each worker {relay.worker_us:.0f} µs a post",
        f"{TAB}one at a time: relay {relay.alone_relay_us:.0f} µs, each worker {relay.alone_worker_us:.0f} µs",
        f"{TAB}one more worker: {relay.link_us:.1f} µs of the relay, {relay.alone_link_us:.1f} µs one at a time",
        f"{TAB}idle: {relay.idle_us:,.0f} µs a second, {relay.memory / 2**20:.0f} MiB",
    ]


def _table(title: str, columns: Iterable[tuple[str, str, int]], rows: "Iterable[tuple[str, object]]") -> Table:
    made = Table(title=title, title_justify="left")
    made.add_column("")
    for name, _, _ in columns:
        made.add_column(name, justify="right")
    for name, row in rows:
        made.add_row(name, *(f"{getattr(row, field):,.{decimals}f}" for _, field, decimals in columns))
    return made


def _families(costs: UnitCosts) -> Table:
    names = sorted({name for deed in costs.deeds.values() for name in deed.families})
    made = Table(title="memory of one deed by family of keys, bytes", title_justify="left")
    made.add_column("")
    for name in names:
        made.add_column(name, justify="right")
    for deed, cost in costs.deeds.items():
        if cost.families:
            made.add_row(deed, *(f"{cost.families[name]:,.0f}" if name in cost.families else "" for name in names))
    return made
