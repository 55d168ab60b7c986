"""Measures what a relay and its workers need to hear a post."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench import unit_costs
from bench.caller import HANDS, Caller, OpenStream, in_turn
from bench.process import cpu_seconds, end, memory_kib
from bench.unit_deeds import Community, Deed
from bench.unit_site import QUIET, UnitSite, hearing
from stream_server.monitoring.worker_sockets import RELAY_SOCKET

STREAMS = 16
"""Streams without deliveries. It is nearly sure that each worker has one of them, so that it decodes the entries."""

MORE_LINKS = 14

IDLE_SECONDS = 2.0

QUIET_SECONDS = 0.3
"""Seconds after the last post in which it was surely heard."""


class NoRelay(Exception):
    """Raised if the measured version has no relay."""


class Spent(NamedTuple):
    """CPU time in µs: of the relay, of a worker on average, and of a server that hears by itself."""

    relay: float
    worker: float
    hearer: float

    def plus(self, other: "Spent", times: float) -> "Spent":
        """Return the sum with ``times`` the other."""
        return Spent(*(mine + times * theirs for mine, theirs in zip(self, other, strict=True)))

    def over(self, number: float) -> "Spent":
        """Return the quotient."""
        return Spent(*(mine / number for mine in self))


class Host(NamedTuple):
    """The processes that hear."""

    relay: int
    workers: list[int]
    hearer: int

    def spent(self) -> Spent:
        """Return the CPU time so far."""
        workers = [cpu_seconds(pid) for pid in self.workers]
        times = cpu_seconds(self.relay), sum(workers) / len(workers), cpu_seconds(self.hearer)
        return Spent(*(1e6 * seconds for seconds in times))


async def relay_costs(site: UnitSite, community: Community, known: unit_costs.Deed) -> unit_costs.Relay:
    """Measure posts of an author without followers, one at a time and many.

    A server that hears by itself is measured at the same time, to compare them at the same speed of the machine. Its
    costs are ``known``. A version without a relay gives :data:`~bench.unit_costs.NO_RELAY`.
    """
    try:
        return await _relay_costs(site, community, known)
    except NoRelay:
        return unit_costs.NO_RELAY


async def _relay_costs(site: UnitSite, community: Community, known: unit_costs.Deed) -> unit_costs.Relay:
    deed = community.posts()[0]
    async with hearing(site) as hearer, _host(site, hearer) as host:
        before = host.spent()
        await asyncio.sleep(IDLE_SECONDS)
        idle = host.spent().plus(before, -1).over(IDLE_SECONDS)
        alone, many = await _both(site, host, deed, idle, known)
        async with _more_links(host.relay):
            more_alone, more_many = await _both(site, host, deed, idle, known)
        memory = 1024.0 * memory_kib(host.relay)
    return unit_costs.Relay(
        relay_us=many.relay, worker_us=many.worker, alone_relay_us=alone.relay, alone_worker_us=alone.worker,
        link_us=max(0.0, (more_many.relay - many.relay) / MORE_LINKS),
        alone_link_us=max(0.0, (more_alone.relay - alone.relay) / MORE_LINKS),
        idle_us=idle.relay, memory=memory,
    )  # fmt: skip


async def _both(site: UnitSite, host: Host, deed: Deed, idle: Spent, known: unit_costs.Deed) -> tuple[Spent, Spent]:
    """Return the CPU time of a post alone and of one among many, at the speed of the machine for ``known``."""
    alone = await _heard(site, host, deed, deed.alone, 1, idle)
    many = await _heard(site, host, deed, deed.times, HANDS, idle)
    return alone.over(alone.hearer / known.alone_hear_us), many.over(many.hearer / known.hear_us)


async def _heard(site: UnitSite, host: Host, deed: Deed, count: int, hands: int, idle: Spent) -> Spent:
    """Return the CPU time of one post."""
    start, before = asyncio.get_running_loop().time(), host.spent()
    await in_turn(site.site.address, count, deed.call, hands)
    await asyncio.sleep(QUIET_SECONDS)
    seconds = asyncio.get_running_loop().time() - start
    return host.spent().plus(before, -1).plus(idle, -seconds).over(count)


@asynccontextmanager
async def _more_links(relay: int) -> AsyncIterator[None]:
    """Open more links to a relay, which read and do nothing."""
    path = _socket_of(relay)
    opened = [await asyncio.open_unix_connection(path) for _ in range(MORE_LINKS)]
    tasks = [asyncio.create_task(_drain(reader)) for reader, _ in opened]
    try:
        yield
    finally:
        for task, (_, writer) in zip(tasks, opened, strict=True):
            task.cancel()
            writer.close()


def _socket_of(relay: int) -> Path:
    words = Path(f"/proc/{relay}/cmdline").read_bytes().split(b"\0")
    return Path(words[words.index(b"--sockets") + 1].decode()) / RELAY_SOCKET


async def _drain(reader: asyncio.StreamReader) -> None:
    while await reader.read(1 << 16):
        pass


@asynccontextmanager
async def _host(site: UnitSite, hearer: int) -> AsyncIterator[Host]:
    flags = ("--job-workers", "0", "--workers", str(unit_costs.RELAY_WORKERS))
    process, address = await asyncio.to_thread(site.serve, "relayed", *flags)
    try:
        token = site.site.token(site.site.admin, "stream")
        streams = [await OpenStream.open(address, token, QUIET) for _ in range(STREAMS)]
        state = await _state(site, address)
        yield Host(state["relay"]["pid"], [worker["pid"] for worker in state["workers"]], hearer)
        for stream in streams:
            stream.close()
    finally:
        await asyncio.to_thread(end, process)


async def _state(site: UnitSite, address: str) -> Any:
    """Return the state of the server as soon as all workers hear the relay. Raises :class:`NoRelay`."""
    token, found = site.site.token(site.site.admin, "admin"), []

    async def ask(caller: Caller, _: int) -> None:
        while not found or found[-1]["relay"]["links"] < unit_costs.RELAY_WORKERS:
            await asyncio.sleep(QUIET_SECONDS)
            found.append(await caller.call(token, "GET", "/v1/admin/operations"))
            if "relay" not in found[-1]:
                raise NoRelay

    async with asyncio.timeout(30):
        await in_turn(address, 1, ask)
    return found[-1]
