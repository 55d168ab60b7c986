"""How far back the log reaches: by age and by size, besides the number of entries, which each write keeps to itself.

Only the front is ever taken off, in slices of some milliseconds, and never the newest entry. Redis drops whole nodes of
its own (100 entries, or 4 KiB), so the log keeps up to a node more than it was asked to.
"""

from typing import NamedTuple

from stream_server.errors import Unavailable
from stream_server.store import keys
from stream_server.store.link import Link
from stream_server.store.scripts import Scripts

SLICE = 10_000
"""Entries taken at once: about a millisecond of Redis' time."""

NODE = 100
"""Entries of a node, at most, as Redis is set by default: the first step by weight, and each other is twice as long."""

STEPS = 40
"""Steps by weight in one turn; what is still too much then has to wait for the next."""

WEIGHED = 100_000
"""Nodes that Redis looks at to weigh the log, the oldest: all of one of 400 MB; 5 to 10 ms. In a larger one these speak
for all, which is the trade for not holding Redis longer."""

WEIGHED_MS = 5000
"""So long a weighing holds, for all processes together."""


class Bounds(NamedTuple):
    """What the log may keep; 0 is no bound."""

    max_seconds: float
    max_bytes: int


class Extent(NamedTuple):
    """How much log there is: its first entry was written ``age_seconds`` ago by Redis' clock.

    ``bytes`` is what Redis said when it was weighed last; ``taken`` are the entries that this turn took off.
    """

    entries: int = 0
    bytes: int = 0
    age_seconds: float = 0.0
    taken: int = 0


class Retention:
    """The far end of one store's log."""

    def __init__(self, link: Link, scripts: Scripts) -> None:
        self._link = link
        self._scripts = scripts

    async def turn(self, bounds: Bounds) -> Extent:
        """Take off what is out of ``bounds``; any number of processes may do it at once. Raises Unavailable."""
        found = taken = await self._take(bounds.max_seconds, 0)
        while taken.taken:
            taken = await self._take(bounds.max_seconds, 0)
            found = taken._replace(taken=found.taken + taken.taken)
        known = await self._known()
        if known is not None:
            return found._replace(bytes=known)
        found = await self._fit(bounds.max_bytes, found._replace(bytes=await self._weigh()))
        await self._remember(found.bytes)
        return found

    async def _fit(self, max_bytes: int, found: Extent) -> Extent:
        """Take off what is too much by weight, weighed anew after each step: what goes may be heavier than the rest."""
        step = NODE
        for _ in range(STEPS if max_bytes else 0):
            if found.bytes <= max_bytes:
                break
            fitting = max(1, found.entries * max_bytes // found.bytes)
            taken = await self._take(0, max(fitting, found.entries - step))
            if taken.taken:
                found = taken._replace(taken=found.taken + taken.taken, bytes=await self._weigh())
            elif step >= found.entries - fitting:
                break  # the rest shares a node with what stays
            step *= 2
        return found

    async def _take(self, max_seconds: float, keep: int) -> Extent:
        """One slice of what is too old, and of what is more than ``keep`` entries."""
        max_ms = max(1, round(max_seconds * 1000)) if max_seconds else 0
        taken, entries, age_ms = await self._scripts.read("trim", keys.LOG, max_ms, keep, SLICE)
        return Extent(entries, age_seconds=max(0, age_ms) / 1000, taken=taken)

    async def _weigh(self) -> int:
        (weight,) = await self._link.ask(("MEMORY", "USAGE", keys.LOG, "SAMPLES", WEIGHED))
        return int(weight or 0)

    async def _known(self) -> int | None:
        """What somebody has weighed a moment ago."""
        (known,) = await self._link.ask(("GET", keys.named("weight")))
        return None if known is None else int(known)

    async def _remember(self, weight: int) -> None:
        """A full Redis takes no note of it: then each process weighs for itself, and memory gets free all the same."""
        try:
            await self._link.ask(("SET", keys.named("weight"), weight, "PX", WEIGHED_MS))
        except Unavailable:
            return
