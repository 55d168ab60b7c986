"""The tables of `docs/capacity.md`: the unit costs of one run, and what follows from them."""

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from bench.disturbance import DISTURBED
from bench.table import markdown
from bench.unit_costs import Deed, UnitCosts, read

DAY = 86_400

SAFE = 0.7
"""Share of a core or of a memory that a plan should use at most."""

FADING = frozenset({"log", "request", "home", "notices", "sizes", "rates", "answers", "streams", "processes"})
"""Families of keys whose size has a bound. All others grow for ever."""

MENTIONS, HOMES, HEARTBEAT_SECONDS = 0.3, 0.8, 15
"""Share of posts that mention a user, share of pages that are home timelines, and the default of the heartbeats."""

DEEDS = {
    "commands": "commands", "Redis, µs": "many.redis", "server, µs": "many.server",
    "each server that hears, µs": "many.hear", "entries": "entries", "memory, bytes": "memory",
    "append-only file, bytes": "aof", "answer, bytes": "answer",
}  # fmt: skip
STREAMS = {
    "memory, bytes": "memory", "connect, µs": "connect_us", "connect in Redis, µs": "connect_redis_us",
    "heartbeat, µs": "heartbeat_us", "a post that any of them gets, µs": "wake_us", "delivery, µs": "deliver_us",
    "delivery, bytes": "deliver_bytes",
}  # fmt: skip
"""Titles and fields of the columns."""


class Site(NamedTuple):
    """A site on paper. Rates are a second.

    Attributes:
        processes: Server processes, on all machines together.
        streams: Streams of users, on all machines together.
        matching: Share of the posts that one stream receives.
        users: Users with a full home timeline.
        days: Days for which statuses are kept.
        core_gb: Memory of the machine with Redis, in GB.
    """

    processes: int
    streams: int
    posts: float
    pages: float
    matching: float
    users: int
    days: int = 30
    core_gb: float = 64


ONE_MACHINE = Site(processes=2, streams=10_000, posts=20, pages=40, matching=0.001, users=100_000)
LARGE = Site(
    processes=400, streams=5_000_000, posts=1000, pages=1000, matching=5e-6, users=5_000_000, days=4, core_gb=512
)


def machine(costs: UnitCosts) -> str:
    """Return the machine of the run, and the figures that no table has."""
    one = costs.machine
    doubt = ", so all CPU times are rough" if one.busy_percent > 100 * DISTURBED else ""
    return (
        f"Measured on {one.cores} cores of {one.processor} with Python {one.python} and {one.redis}, "
        f"`appendfsync {one.appendfsync}`, at commit {one.commit}. Other programs used {one.busy_percent:.0f} % of a "
        f"core{doubt}.\n\n"
        f"* A server process without streams takes {costs.process_memory / 2**20:.0f} MiB. While nothing happens, it "
        f"needs {costs.idle_server_us / 1e4:.1f} % of a core, and sends Redis {costs.idle_commands:.0f} commands a "
        f"second.\n"
        f"* One subscriber costs Redis {costs.subscriber_us:.1f} µs for each entry. The costs of deeds are without "
        f"it.\n"
        f"* A full home timeline takes {costs.full_home / 1000:,.0f} kB.\n"
    )


def one_core(costs: UnitCosts) -> str:
    """Return the posts a second at which Redis is as busy as is safe."""
    post, page = _post(costs, attrgetter("many.redis")), _page(costs, attrgetter("many.redis"))
    mixes = {"posts alone": 0, "with one page for each post": 1, "with ten pages for each post": 10}
    rows = ((name, f"{SAFE * 1e6 / (post + pages * page):,.0f}") for name, pages in mixes.items())
    return markdown((f"Redis' core, {100 * SAFE:.0f} % busy", "posts a second"), rows)


def replicas(costs: UnitCosts) -> str:
    """Return what a home page costs with replicas, and what a site carries until the primary or a replica is full."""
    post = _post(costs, attrgetter("many.redis"))
    rows = [
        (
            str(count), *(f"{us:,.0f}" for us in (each.primary, each.replica, each.server)),
            f"{SAFE * 1e6 / max(each.primary, each.replica):,.0f}",
            f"{SAFE * 1e6 / (post + 10 * each.primary):,.0f}",
        )
        for count, each in enumerate(costs.pages)
    ]  # fmt: skip
    titles = ("replicas", "primary, µs", "busiest replica, µs", "server, µs", "pages a second", "posts a second")
    busy = f"Measured alone. Other programs used {costs.pages_busy_percent:.0f} % of a core.\n"
    return markdown(titles, rows) + "\n" + busy


def loads(costs: UnitCosts, site: Site) -> str:
    """Return what each part of a site has to carry at most, in the order of their shares of what is safe."""
    stream = costs.streams["user"]
    post, page = partial(_post, costs), partial(_page, costs)
    redis, server, hear = attrgetter("many.redis"), attrgetter("many.server"), attrgetter("many.hear")
    lasting = site.days * DAY * site.posts * post(_lasting)
    each = 1 / site.processes
    parts: dict[str, tuple[str, float, float, dict[str, float]]] = {
        "Redis: CPU": ("cores", 1e-6, 1, {
            "posts": site.posts * post(redis), "pages": site.pages * page(redis),
            "subscribers": site.processes * site.posts * post(attrgetter("entries")) * costs.subscriber_us,
            "idle servers": site.processes * costs.idle_redis_us,
        }),
        "Redis: memory": ("GB", 1e-9, site.core_gb, {
            "statuses": lasting, "home timelines": site.users * costs.full_home,
        }),
        "each server process: CPU": ("cores", 1e-6, 1, {
            "posts": each * site.posts * post(server), "pages": each * site.pages * page(server),
            "hearing": site.posts * post(hear), "idle": costs.idle_server_us,
            "delivering": each * site.streams * site.posts * site.matching * stream.deliver_us,
            "heartbeats": each * site.streams / HEARTBEAT_SECONDS * stream.heartbeat_us,
        }),
        "each server process: memory": ("GB", 1e-9, 0, {
            "the process": costs.process_memory, "streams": each * site.streams * stream.memory,
        }),
    }  # fmt: skip
    rows = []
    for name, (unit, scale, limit, shares) in parts.items():
        used = sum(shares.values())
        mostly = [f"{cause} {100 * part / used:.0f} %" for cause, part in shares.items() if part > 0.1 * used]
        full = f"{100 * used * scale / (SAFE * limit):,.0f} %" if limit else ""
        rows.append((name, f"{used * scale:,.2f} {unit}", full, ", ".join(mostly)))
    return markdown(("part", "load", "of what is safe", "mostly"), rows)


BLOCKS: dict[str, Callable[[UnitCosts], str]] = {
    "unit_machine": machine,
    "unit_deeds": lambda costs: _fields("one", DEEDS, costs.deeds),
    "unit_streams": lambda costs: _fields("one stream", STREAMS, costs.streams),
    "capacity_one_machine": lambda costs: loads(costs, ONE_MACHINE),
    "capacity_example": lambda costs: loads(costs, LARGE),
    "capacity_one_core": one_core,
    "capacity_replicas": replicas,
}


def blocks() -> dict[str, Callable[[], str]]:
    """Return the builders of all generated parts, with the checked-in figures."""
    costs = read()
    return {name: partial(build, costs) for name, build in BLOCKS.items()}


def _post(costs: UnitCosts, cost: Callable[[Deed], float]) -> float:
    """Return the cost of a post of an author with ten followers, some of which have a mention."""
    plain, told = (cost(costs.deeds[f"post, 10 followers{ending}"]) for ending in ("", ", mention"))
    return plain + MENTIONS * (told - plain)


def _page(costs: UnitCosts, cost: Callable[[Deed], float]) -> float:
    return HOMES * cost(costs.deeds["home page"]) + (1 - HOMES) * cost(costs.deeds["profile page"])


def _lasting(deed: Deed) -> float:
    return sum(size for name, size in deed.families.items() if name not in FADING)


def _fields(first: str, columns: dict[str, str], rows: Mapping[str, object]) -> str:
    def cell(row: object, path: str) -> str:
        value = float(attrgetter(path)(row))
        whole = abs(value) >= 30 or path in {"commands", "entries"}
        return f"{value:,.{0 if whole else 1}f}".replace("-0.0", "0.0")

    cells = ((name, *(cell(row, path) for path in columns.values())) for name, row in rows.items())
    return markdown((first, *(title.strip() for title in columns)), cells)
