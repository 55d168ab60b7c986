"""What each part of a site has to carry: computed from the unit costs, the size of the site and its traffic.

The parts are the shard of the truth (the *core*), the shards of derived data, the replicas from which servers hear,
and the server processes with the relay of their node. A part's load is the sum of what each deed costs there. The cost
of a deed falls with the load, because a busy process takes several requests at each wake-up. Two measured points of
each deed say how far: one at a time, and 16 at the same time.
"""

from collections.abc import Callable
from typing import NamedTuple

from bench.paper_site import Layout, Traffic
from bench.unit_costs import RELAY_WORKERS, Deed, UnitCosts

DAY = 86_400

HEARTBEAT_SECONDS = 15.0
"""The default of `--heartbeat-seconds`."""

FADING = frozenset({"log", "request", "home", "notices", "weight", "rates", "answers", "streams", "processes"})
"""Families of keys whose size has a bound. All others grow for ever."""

BITS = 8e-9
"""Gigabits of a byte."""

SAFE = 0.7
"""Share of a core, of a link or of a memory that a plan should use at most."""

HEARD = "post, 0 followers"
"""The post with which a relay is measured."""

READ = "home page"
"""The deed whose costs tell how much cheaper the commands of an idle server are if Redis is busy."""


class Part(NamedTuple):
    """One part of the site and its load.

    Attributes:
        name: Name of the part.
        used: The load.
        limit: What the part has. 0 means no bound.
        unit: Unit of both.
        shares: The load by its causes.
        advice: What to add if the part is full.
    """

    name: str
    used: float
    limit: float
    unit: str
    shares: dict[str, float]
    advice: str

    @property
    def share(self) -> float:
        """The load as a share of what may be used of the part."""
        return self.used / (SAFE * self.limit) if self.limit else 0.0

    def mostly(self) -> str:
        """Return the greatest causes of the load."""
        causes = sorted(self.shares.items(), key=lambda row: -row[1])[:3]
        return ", ".join(f"{name} {100 * load / self.used:.0f} %" for name, load in causes if load > 0.05 * self.used)


class Forecast:
    """The loads of all parts of one site."""

    def __init__(self, costs: UnitCosts, layout: Layout, traffic: Traffic) -> None:
        self.costs, self.layout, self.traffic = costs, layout, traffic
        self._stream = costs.streams[layout.kind]

    def parts(self) -> list[Part]:
        """Return all parts, in the order of the way of an event."""
        made = [self.core_cpu(), self.core_network(), self.core_memory(), self.core_disk()]
        if self.layout.replicas:
            made.append(self.replica_cpu())
        if self.layout.shards:
            made += [self.shard_cpu(), self.shard_memory()]
        if self._has_relay():
            made.append(self.relay_cpu())
        return [*made, self.process_cpu(), self.node_network(), self.node_memory()]

    def first_full(self) -> Part:
        """Return the part with the greatest share of its limit."""
        return max(self.parts(), key=lambda part: part.share)

    def headroom(self) -> float:
        """Return how many times the traffic may grow until the first part is full. 0 if it is full without any."""
        low, high = 0.0, 1.0
        while self._fits(high) and high < 1e6:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self._fits(middle) else (low, middle)
        return low

    def _fits(self, factor: float) -> bool:
        return Forecast(self.costs, self.layout, self.traffic.times(factor)).first_full().share <= 1

    # Redis.

    def core_cpu(self) -> Part:
        """Return the load of the main thread of the core."""
        costs = self.costs
        together = self._core(lambda deed: deed.redis_us) | self._sending_us(costs.subscriber_us)
        alone = self._core(lambda deed: deed.alone_redis_us) | self._sending_us(costs.alone_subscriber_us)
        alone["idle servers"] = self._processes() * costs.idle.redis_us
        together["idle servers"] = alone["idle servers"] * costs.deeds[READ].redis_us / costs.deeds[READ].alone_redis_us
        fixed = {
            "connects": self._connects() * self.layout.nodes * self._stream.connect_redis_us,
            "itself": self.costs.idle.redis_own_us,
        }
        shares = _at_load(together, alone, fixed, self.layout.shared)
        advice = "lighten what is largest; a core has one thread, see scaling.md"
        if together["heard by subscribers"] > sum(together.values()) / 3:
            advice = "let servers hear from replicas"
        return _cpu("core of Redis: CPU", shares, advice)

    def replica_cpu(self) -> Part:
        """Return the load of a replica. It repeats the writes of the core, which costs it at most as much."""
        writes = self._deeds(lambda deed: deed.script_us, reads=False)
        heard = self.layout.nodes / self.layout.replicas * self._entries() * self.costs.subscriber_us
        return _cpu("replica: CPU", _microseconds({**writes, "heard by subscribers": heard}), "add a replica")

    def shard_cpu(self) -> Part:
        """Return the load of one shard with derived data."""
        shares = _microseconds({"home timelines": self._derived_us(lambda deed: deed.redis_us) / self.layout.shards})
        return _cpu("derived shard: CPU", shares, "add a shard and move slots to it")

    def core_network(self) -> Part:
        """Return the traffic of the machine with the core, in both directions."""
        subscribers = 0 if self.layout.replicas else self.layout.nodes
        shares = {
            "requests": sum(self._deeds(lambda deed: deed.redis_in + deed.redis_out).values()),
            "heard by subscribers": subscribers * self._published(),
            "fed to replicas": self.layout.replicas * self._written(),
            "idle servers": self._processes() * (self.costs.idle.redis_in + self.costs.idle.redis_out),
        }
        advice = "let servers hear from replicas" if subscribers else "a faster link"
        return _network("core of Redis: network", shares, self.layout.gigabits, advice)

    def core_memory(self) -> Part:
        """Return the memory of the core when the oldest statuses leave."""
        homes = 0.0 if self.layout.shards else self.layout.users * self.costs.full_home
        statuses = self.layout.days * self.lasting_a_day() / 1e9
        shares = {"statuses": statuses, "log": self._log(), "home timelines": homes / 1e9}
        advice = "keep statuses for fewer days, or take a machine with more memory"
        return Part("core of Redis: memory", sum(shares.values()), self.layout.core_gb, "GB", shares, advice)

    def core_disk(self) -> Part:
        """Return the growth of the append-only file in a second. It has no bound here: disks differ."""
        shares = {name: size / 1e6 for name, size in self._deeds(lambda deed: deed.aof, reads=False).items()}
        return Part("core of Redis: append-only file", sum(shares.values()), 0, "MB/s", shares, "a faster disk")

    def shard_memory(self) -> Part:
        """Return the memory of one shard with derived data."""
        size = self.layout.users * self.costs.full_home / self.layout.shards / 1e9
        advice = "add a shard and move slots to it"
        return Part("derived shard: memory", size, self.layout.core_gb, "GB", {"home timelines": size}, advice)

    def lasting_a_day(self) -> float:
        """Return the bytes that a day adds to the core for ever."""
        return DAY * sum(self._deeds(_lasting, reads=False).values())

    # Servers.

    def relay_cpu(self) -> Part:
        """Return the load of the relay of a node, which hears for all its processes."""
        relay = self.costs.relay
        more = self.layout.processes - RELAY_WORKERS
        posts = self._hearing(lambda deed: deed.hear_us) / self.costs.deeds[HEARD].hear_us
        together = {"hearing": posts * (relay.relay_us + more * relay.link_us)}
        alone = {"hearing": posts * (relay.alone_relay_us + more * relay.alone_link_us)}
        return _cpu(
            "relay: CPU", _at_load(together, alone, {"idle": relay.idle_us}, self.layout.shared), "lighten the posts"
        )

    def process_cpu(self) -> Part:
        """Return the load of one server process. The requests are spread over all of them."""
        clients, stream = self.layout.clients / self.layout.processes, self._stream
        each = self.deliveries() / self.layout.processes * stream.deliver_us
        reached = self.traffic.posts * (1 - (1 - self.traffic.matching) ** clients)
        delivering = {"matching and delivering": each}, {"matching and delivering": each + reached * stream.wake_us}
        together = self._requests(lambda deed: deed.server_us) | {"hearing": self._joined()} | delivering[0]
        alone = self._requests(lambda deed: deed.alone_server_us) | {"hearing": self._heard_alone()} | delivering[1]
        fixed = {
            "heartbeats": clients / HEARTBEAT_SECONDS * stream.heartbeat_us,
            "connects": self._connects() / self.layout.processes * stream.connect_us,
            "idle": self.costs.idle.server_us,
        }
        return _cpu(
            "server process: CPU", _at_load(together, alone, fixed, self.layout.shared), "add processes or nodes"
        )

    def node_network(self) -> Part:
        """Return the traffic of one node, without the heads of packets."""
        requests = sum(self._deeds(lambda deed: deed.http_in + deed.http_out).values())
        to_redis = sum(self._deeds(lambda deed: deed.redis_in + deed.redis_out).values())
        shares = {
            "requests": (requests + to_redis) / self.layout.nodes,
            "hearing": self._published(),
            "deliveries": self.deliveries() * self._stream.deliver_bytes,
            "heartbeats": self.layout.clients / HEARTBEAT_SECONDS * self._stream.heartbeat_bytes,
        }
        return _network("server node: network", shares, self.layout.gigabits, "add nodes")

    def node_memory(self) -> Part:
        """Return the memory of one node, without the kernel's buffers of the connections."""
        shares = {
            "processes": self._process_memory() / 1e9,
            "streams": self.layout.clients * self._stream.memory / 1e9,
        }
        return Part("server node: memory", sum(shares.values()), self.layout.node_gb, "GB", shares, "add nodes")

    def deliveries(self) -> float:
        """Return the deliveries a second of one node."""
        return self.layout.clients * self.traffic.posts * self.traffic.matching

    # What the deeds of a second cost.

    def _deeds(self, cost: Callable[[Deed], float], *, reads: bool = True) -> dict[str, float]:
        """Return what the deeds of a second cost together, by kind. ``cost`` reads the cost of one."""
        traffic, deeds = self.traffic, self.costs.deeds
        plain, told = "delete of a post, 10 followers", "delete of a post, 10 followers, mention"
        made = {
            "posts": traffic.posts * self._post(cost),
            "deletes": traffic.posts * traffic.deletes * self._told(cost(deeds[plain]), cost(deeds[told])),
            "follows": traffic.follows * cost(deeds["follow"]),
        }
        pages = traffic.homes * cost(deeds["home page"]) + (1 - traffic.homes) * cost(deeds["profile page"])
        return made | ({"pages": traffic.pages * pages} if reads else {})

    def _post(self, cost: Callable[[Deed], float]) -> float:
        return self._told(*(self._followed(cost, ending) for ending in ("", ", mention")))

    def _told(self, plain: float, told: float) -> float:
        return plain + self.traffic.mentions * (told - plain)

    def _followed(self, cost: Callable[[Deed], float], ending: str) -> float:
        """Return the cost of a post by the number of followers: straight lines between the measured numbers."""
        none, ten, many = (cost(self.costs.deeds[f"post, {n} followers{ending}"]) for n in (0, 10, 1000))
        followers = self.traffic.followers
        if followers <= 10:
            return none + (ten - none) * followers / 10
        return ten + (many - ten) * (followers - 10) / 990

    def _core(self, cost: Callable[[Deed], float]) -> dict[str, float]:
        """Return what the deeds of a second cost the core, in µs: without home timelines if they are elsewhere."""
        deeds = self._deeds(cost)
        return deeds | {"posts": deeds["posts"] - (self._derived_us(cost) if self.layout.shards else 0.0)}

    def _requests(self, cost: Callable[[Deed], float]) -> dict[str, float]:
        return {name: us / self._processes() for name, us in self._deeds(cost).items()}

    def _derived_us(self, cost: Callable[[Deed], float]) -> float:
        """Return the time a second for home timelines: what followers cost outside of scripts."""

        def outside(deed: Deed) -> float:
            return cost(deed) - deed.script_us

        bare = self._told(*(outside(self.costs.deeds[f"post, 0 followers{end}"]) for end in ("", ", mention")))
        return self.traffic.posts * max(0.0, self._post(outside) - bare)

    def _hearing(self, cost: Callable[[Deed], float]) -> float:
        """Return what a process needs in a second to hear all entries."""
        return sum(self._deeds(cost, reads=False).values())

    def _heard_alone(self) -> float:
        """Return the same if each post wakes up the process."""
        relay, deed = self.costs.relay, self.costs.deeds[HEARD]
        share = relay.alone_worker_us / deed.alone_hear_us if self._has_relay() else 1.0
        return share * self._hearing(lambda deed: deed.alone_hear_us)

    def _joined(self) -> float:
        """Return the same if one read brings many entries."""
        joined, relay, deed = self.costs.joined_us, self.costs.relay, self.costs.deeds[HEARD]
        names = (HEARD, f"{HEARD}, mention")
        many = self._told(*(self.costs.deeds[name].hear_us for name in names))
        share = relay.worker_us / deed.hear_us if self._has_relay() else 1.0
        return share * self._hearing(lambda deed: deed.hear_us) * self._told(*(joined[name] for name in names)) / many

    def _published(self) -> float:
        return sum(self._deeds(lambda deed: deed.published, reads=False).values())

    def _written(self) -> float:
        return sum(self._deeds(lambda deed: deed.aof, reads=False).values())

    def _sending_us(self, us: float) -> dict[str, float]:
        """Return what it costs the core in a second to send the entries, if one and its receiver cost ``us``."""
        replicas = self.layout.replicas
        receivers = {"heard by subscribers": 0 if replicas else self.layout.nodes, "fed to replicas": replicas}
        return {name: count * self._entries() * us for name, count in receivers.items()}

    def _entries(self) -> float:
        return sum(self._deeds(lambda deed: deed.entries, reads=False).values())

    def _log(self) -> float:
        """Return the size of the log in GB: what a week adds, or its default bounds."""
        entries = self._entries()
        size = sum(self._deeds(lambda deed: deed.families.get("log", 0.0), reads=False).values())
        return min(7 * DAY * size, 1e6 * size / entries if entries else 0.0, 2**30) / 1e9

    def _processes(self) -> int:
        return self.layout.nodes * self.layout.processes

    def _has_relay(self) -> bool:
        return self.layout.processes > 1

    def _process_memory(self) -> float:
        relay = self.costs.relay.memory if self._has_relay() else 0.0
        return self.layout.processes * self.costs.process_memory + relay

    def _connects(self) -> float:
        return self.layout.clients * self.traffic.reconnects / 3600


def _lasting(deed: Deed) -> float:
    return sum(size for name, size in deed.families.items() if name not in FADING)


def _at_load(
    together: dict[str, float], alone: dict[str, float], fixed: dict[str, float], shared: float
) -> dict[str, float]:
    """Return the shares of a core that deeds take, in the process that they share.

    The deeds cost ``together`` µs a second if the process is busy, and ``alone`` if each of them wakes it up. In
    between the cost falls in a straight line with the share of time in which the core works, for the process or, as
    ``shared`` says, for other programs.
    """
    least = (sum(together.values()) + sum(fixed.values())) / 1e6
    more = sum(max(0.0, alone[name] - us) for name, us in together.items()) / 1e6
    idle = max(0.0, 1 - (least + more) / (1 + more) - shared)
    shares = {name: (us + max(0.0, alone[name] - us) * idle) / 1e6 for name, us in together.items()}
    return shares | _microseconds(fixed)


def _microseconds(costs: dict[str, float]) -> dict[str, float]:
    return {name: us / 1e6 for name, us in costs.items()}


def _cpu(name: str, shares: dict[str, float], advice: str) -> Part:
    return Part(name, sum(shares.values()), 1.0, "cores", shares, advice)


def _network(name: str, shares: dict[str, float], gigabits: float, advice: str) -> Part:
    made = {cause: size * BITS for cause, size in shares.items()}
    return Part(name, sum(made.values()), gigabits, "Gb/s", made, advice)
