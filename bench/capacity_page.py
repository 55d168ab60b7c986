"""The tables of `docs/capacity.md` and `docs/scaling.md`: the unit costs of one run and forecasts from them."""

from collections.abc import Callable, Iterable
from functools import partial

from bench.capacity import SAFE, Forecast
from bench.disturbance import DISTURBED
from bench.paper_site import Layout, Traffic
from bench.unit_costs import Deed, UnitCosts, read

ONE_MACHINE = Layout(nodes=1, processes=2, clients=10_000)
SMALL = Traffic(posts=20, pages=40)
"""A site on one machine: posts and pages a second, and else the defaults."""

LARGE = Layout(
    nodes=100,
    processes=16,
    clients=50_000,
    users=20_000_000,
    days=30,
    shards=40,
    node_gb=64,
    core_gb=512,
)
BUSY = Traffic(posts=1000, followers=100, pages=1000, follows=50, matching=25 / 5_000_000)
"""The worked example: five million streams. A quarter of an author's hundred followers is connected."""

FEWER_DAYS = LARGE._replace(days=4)
FEWER_PROCESSES = FEWER_DAYS._replace(processes=4)

STEPS = (
    ("as it is", LARGE, BUSY),
    ("statuses are kept for four days", FEWER_DAYS, BUSY),
    ("and a node has four processes", FEWER_PROCESSES, BUSY),
    ("and there are two replicas to hear from", FEWER_PROCESSES._replace(replicas=2), BUSY),
)
"""The worked example, with one thing after the other changed."""

PAGES_OF_A_POST = {"posts alone": 0.0, "with one page for each post": 1.0, "with ten pages for each post": 10.0}
"""The mixes of posts and pages for which the limit of the core is shown."""

DEEDS = (
    ("commands", "commands", 0),
    ("Redis, µs", "redis_us", 0),
    ("server, µs", "server_us", 0),
    ("each server that hears, µs", "hear_us", 0),
    ("one at a time: Redis, µs", "alone_redis_us", 0),
    ("server, µs", "alone_server_us", 0),
    ("each that hears, µs", "alone_hear_us", 0),
    ("entries", "entries", 0),
    ("memory, bytes", "memory", 0),
    ("append-only file, bytes", "aof", 0),
    ("to each subscriber, bytes", "published", 0),
    ("answer, bytes", "http_out", 0),
)
STREAMS = (
    ("memory, bytes", "memory", 0),
    ("connect, µs", "connect_us", 0),
    ("connect in Redis, µs", "connect_redis_us", 0),
    ("heartbeat, µs", "heartbeat_us", 1),
    ("a post that any of them gets, µs", "wake_us", 0),
    ("delivery, µs", "deliver_us", 1),
    ("delivery, bytes", "deliver_bytes", 0),
)


def machine(costs: UnitCosts) -> str:
    """Return the machine of the run, and the figures that no table has."""
    one, idle, relay = costs.machine, costs.idle, costs.relay
    doubt = ", so all CPU times are rough" if one.busy_percent > 100 * DISTURBED else ""
    return (
        f"Measured on {one.cores} cores of {one.processor} with Python {one.python} and {one.redis}, "
        f"`appendfsync {one.appendfsync}`, at commit {one.commit}. Other programs used {one.busy_percent:.0f} % of a "
        f"core{doubt}.\n\n"
        f"* A server process without streams takes {costs.process_memory / 2**20:.0f} MiB. While nothing happens, it "
        f"needs {idle.server_us / 1e4:.1f} % of a core, and sends Redis {idle.commands:.0f} commands a second.\n"
        f"* One subscriber costs Redis {costs.subscriber_us:.1f} µs for each entry, and "
        f"{costs.alone_subscriber_us:.1f} µs if entries come one at a time. The costs of deeds are without it.\n"
        f"* With two workers, the relay needs {relay.relay_us:.0f} µs to hear a post and hand it on, and each worker "
        f"{relay.worker_us:.0f} µs. One at a time, these are {relay.alone_relay_us:.0f} and "
        f"{relay.alone_worker_us:.0f} µs. One more worker costs the relay {relay.link_us:.1f} and "
        f"{relay.alone_link_us:.1f} µs. The relay takes {relay.memory / 2**20:.0f} MiB.\n"
        f"* A full home timeline takes {costs.full_home / 1000:,.0f} kB.\n"
    )


def deeds(costs: UnitCosts) -> str:
    """Return what each deed costs."""
    return _fields("one", DEEDS, costs.deeds.items())


def families(costs: UnitCosts) -> str:
    """Return the memory of the keys of each deed by family."""
    rows = (
        (name, ", ".join(f"{family} {size:,.0f}" for family, size in deed.families.items()))
        for name, deed in costs.deeds.items()
        if deed.families
    )
    return _table(("one", "growth of Redis' keys, bytes"), rows)


def streams(costs: UnitCosts) -> str:
    """Return what each kind of stream costs."""
    return _fields("one stream", STREAMS, costs.streams.items())


def limits(costs: UnitCosts) -> str:
    """Return how many deeds a second one core of Redis does."""
    rows = (
        (name, f"{1e6 / deed.redis_us:,.0f}", f"{1e6 / deed.server_us:,.0f}")
        for name, deed in costs.deeds.items()
        if deed.redis_us > 0 and deed.server_us > 0
    )
    return _table(("one kind of deed alone", "a second and core of Redis", "a second and core of a server"), rows)


def one_machine(costs: UnitCosts) -> str:
    """Return the loads of a site on one machine."""
    return _forecast(Forecast(costs, ONE_MACHINE, SMALL))


def example(costs: UnitCosts) -> str:
    """Return the loads of the worked example, as it is."""
    return _forecast(Forecast(costs, LARGE, BUSY))


def steps(costs: UnitCosts) -> str:
    """Return the first full part of the worked example while it grows."""
    rows = []
    for name, layout, traffic in STEPS:
        forecast = Forecast(costs, layout, traffic)
        first = forecast.first_full()
        rows.append((name, first.name, f"{100 * first.share:,.0f} %", f"{forecast.headroom():.2f}", first.advice))
    return _table(("the site", "first full", "of what is safe", "traffic that fits, times", "what to do then"), rows)


def one_core(costs: UnitCosts) -> str:
    """Return the posts a second at which the core of Redis is full, with all else removed from it."""
    layout = Layout(nodes=1, processes=1, clients=0, users=0, shards=1000, replicas=2)
    rows = []
    for name, pages in PAGES_OF_A_POST.items():
        traffic = Traffic(posts=100, followers=100, follows=0, pages=100 * pages, reconnects=0)
        core = Forecast(costs, layout, traffic)
        low, high = 0.0, 1e5
        while high - low > 1:
            middle = (low + high) / 2
            grown = Forecast(costs, layout, core.traffic.times(middle / 100)).core_cpu()
            low, high = (middle, high) if grown.share <= 1 else (low, middle)
        rows.append((name, f"{low:,.0f}"))
    return _table((f"the core of Redis, {100 * SAFE:.0f} % busy", "posts a second"), rows)


def threads(costs: UnitCosts) -> str:
    """Return how much of a deed Redis spends outside of scripts, which is all that more threads could take over."""
    names = ("post, 0 followers", "post, 0 followers, mention", "home page", "follow")
    rows = (
        (name, f"{deed.redis_us:,.0f}", _outside(deed)) for name, deed in ((name, costs.deeds[name]) for name in names)
    )
    return _table(("one", "Redis, µs", "outside of scripts"), rows)


def _outside(deed: Deed) -> str:
    """Return the share outside of scripts. Their time is by the clock, so it is too long if Redis waited for a core."""
    share = 1 - deed.script_us / deed.redis_us
    return f"{100 * share:.0f} %" if share > 0 else "not known: Redis waited for a core"


BLOCKS: dict[str, Callable[[UnitCosts], str]] = {
    "unit_machine": machine,
    "unit_deeds": deeds,
    "unit_families": families,
    "unit_streams": streams,
    "unit_limits": limits,
    "capacity_one_machine": one_machine,
    "capacity_example": example,
    "capacity_steps": steps,
    "capacity_one_core": one_core,
    "capacity_threads": threads,
}


def blocks() -> dict[str, Callable[[], str]]:
    """Return the builders of all generated parts, with the checked-in figures."""
    costs = read()
    return {name: partial(build, costs) for name, build in BLOCKS.items()}


def _forecast(forecast: Forecast) -> str:
    rows = (
        (
            part.name,
            f"{part.used:,.2f} {part.unit}",
            f"{part.limit:g} {part.unit}" if part.limit else "",
            f"{100 * part.share:,.0f} %" if part.limit else "",
            part.mostly(),
        )
        for part in forecast.parts()
    )
    first = forecast.first_full()
    table = _table(("part", "load", "limit", "of what is safe", "mostly"), rows)
    return (
        f"{table}\nFirst full is *{first.name}*. The site carries {forecast.headroom():.2f} times this traffic. "
        f"What to do then: {first.advice}. A day's statuses take {forecast.lasting_a_day() / 1e9:,.1f} GB.\n"
    )


def _fields(first: str, columns: Iterable[tuple[str, str, int]], rows: "Iterable[tuple[str, object]]") -> str:
    columns = tuple(columns)
    cells = ((name, *(f"{getattr(row, field):,.{decimals}f}" for _, field, decimals in columns)) for name, row in rows)
    return _table((first, *(title for title, _, _ in columns)), cells)


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
