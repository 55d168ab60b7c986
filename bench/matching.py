"""``python -m bench.matching``: what matching an event costs, by the number of clients, beside other methods."""

import argparse
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import cycle
from statistics import median
from time import process_time
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench.matching_rivals import Matcher, automaton, by_index, grid, inverted_dictionary, one_by_one
from bench.matching_world import COMMUNITY, Facts, World, subscribed
from filters.base import Filter
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex

ROUNDS = 3
"""Number of measurements of each method; the table shows the median."""

SEED = 4
"""Seed of all random data."""

EVENTS = 2_000
"""Number of events that each scene draws."""

COMPARED = 10
"""Number of events that every method matches before the measurement. All methods must find the same clients."""

SLOW = 10_000
"""From this many clients on, the method that tests each filter in turn gets only one event at a time."""

KINDS: dict[str, Callable[[World, int], list[Filter]]] = {
    "follow (20 ids)": World.follows,
    "track (10 phrases)": World.tracks,
    "locations (1 box)": World.boxes,
    "rule": World.rules,
}
"""The kinds of filters whose cost of adding and removing is measured."""


class Scene(NamedTuple):
    """One block of the table.

    Attributes:
        name: Title of the block.
        ways: Returns the methods to compare, for a number of clients.
        events: Returns the events to match, for a number of clients.
        least: Smallest number of clients to measure.
    """

    name: str
    ways: Callable[[int], dict[str, Matcher]]
    events: Callable[[int], list[Facts]]
    least: int = 0


def keywords(*, common: bool) -> Scene:
    """Build the scene of clients that each track ten phrases."""
    world = World(SEED, common=common)

    def ways(clients: int) -> dict[str, Matcher]:
        filters, phrases = world.tracks(clients), world.phrases(clients)
        return {
            "index": by_index(filters),
            "dictionary or grid": inverted_dictionary(world, phrases),
            "pyahocorasick": automaton(world, phrases),
            "one by one": one_by_one(filters),
        }

    name = "10 phrases" if common else "10 phrases, common words excluded"
    return Scene(name, ways, lambda _: world.events(EVENTS, located=0))


def boxes() -> Scene:
    """Build the scene of clients that each watch one box."""
    world = World(SEED)

    def ways(clients: int) -> dict[str, Matcher]:
        filters = world.boxes(clients)
        return {"index": by_index(filters), "dictionary or grid": grid(filters), "one by one": one_by_one(filters)}

    return Scene("1 box", ways, lambda _: world.events(EVENTS, located=1, silent=True))


def mixture() -> Scene:
    """Build the scene of clients with all kinds of filters."""
    world = World(SEED)

    def ways(clients: int) -> dict[str, Matcher]:
        filters = world.mix(clients)
        return {"index": by_index(filters), "one by one": one_by_one(filters)}

    return Scene("30 % follow, 40 % track, 10 % boxes, 20 % rules", ways, lambda _: world.events(EVENTS))


def equal_matches() -> Scene:
    """Build the mixed scene divided into communities, so that the number of matches stays equal as clients grow."""

    def world(clients: int) -> World:
        return World(SEED, communities=clients // COMMUNITY)

    return Scene(
        "the same mix, equal matches",
        lambda clients: {"index": by_index(world(clients).mix(clients))},
        lambda clients: world(clients).events(EVENTS),
        least=COMMUNITY,
    )


def measure(scene: Scene, clients: int, seconds: float) -> tuple[float, dict[str, float]]:
    """Return the average number of matches of an event, and the median CPU time in microseconds by method."""
    events, ways = scene.events(clients), scene.ways(clients)
    gc.collect()
    for facts in events[:COMPARED]:
        expected = sorted(ways["index"](facts))
        for name, match in ways.items():
            if sorted(match(facts)) != expected:
                raise AssertionError(f"{scene.name}, {clients} clients: {name} and the index disagree about {facts}")
    hits = sum(len(ways["index"](facts)) for facts in events[:200]) / 200
    turns: dict[str, list[float]] = {name: [] for name in ways}
    feeds = {name: cycle(events) for name in ways}
    for _ in range(ROUNDS):
        for name, match in ways.items():
            at_once = 1 if name == "one by one" and clients >= SLOW else 20
            turns[name].append(_cost(match, feeds[name], at_once, seconds))
    return hits, {name: median(taken) for name, taken in turns.items()}


def _cost(match: Matcher, feed: Iterator[Facts], at_once: int, seconds: float) -> float:
    """Return the CPU microseconds for one event. CPU time of this process excludes most effects of other processes."""
    count, begun = 0, process_time()
    while (taken := process_time() - begun) < seconds:
        for _ in range(at_once):
            match(next(feed))
        count += at_once
    return taken / count * 1e6


def costs(make: Callable[[World, int], list[Filter]], clients: int) -> tuple[float, float, float, float]:
    """Return microseconds to add and to remove a subscription, its bytes in the index, and its filter's bytes."""
    world = World(SEED)
    make(world, 10)  # what the process loads once must not count for each subscription
    tracemalloc.start()
    subscriptions = subscribed(make(world, clients))
    filters = tracemalloc.get_traced_memory()[0]
    index = _filled(subscriptions)
    indexed = tracemalloc.get_traced_memory()[0] - filters
    tracemalloc.stop()
    for client in range(clients):
        index.remove(client)
    begun = process_time()
    index = _filled(subscriptions)
    added = process_time()
    for client in range(clients):
        index.remove(client)
    removed = process_time()
    return (added - begun) / clients * 1e6, (removed - added) / clients * 1e6, indexed / clients, filters / clients


def _filled(subscriptions: list[Subscription]) -> SubscriptionIndex[int]:
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for client, subscription in enumerate(subscriptions):
        index.add(client, subscription)
    return index


def main() -> None:
    """Measure and print the tables. Progress goes to stderr."""
    parser = argparse.ArgumentParser(prog="python -m bench.matching", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer clients and less time, to see that it works")
    quick = parser.parse_args().quick
    sizes = (100, 1_000) if quick else (100, 1_000, 10_000, 100_000)
    scenes = (keywords(common=False), keywords(common=True), boxes(), mixture(), equal_matches())
    matching = Table(title="an event: µs of CPU (events/s)", title_justify="left")
    for column in ("clients", "matches", "index", "dictionary or grid", "pyahocorasick", "one by one"):
        matching.add_column(column, justify="right")
    kinds = Table(title="one subscription", title_justify="left")
    for column in ("kind", "add µs", "remove µs", "index bytes", "filter bytes"):
        kinds.add_column(column, justify="right")
    with Progress(console=Console(file=sys.stderr)) as progress:
        steps = sum(size >= scene.least for scene in scenes for size in sizes) + len(KINDS)
        work = progress.add_task("", total=steps)
        for scene in scenes:
            matching.add_row(scene.name, end_section=False)
            for clients in (size for size in sizes if size >= scene.least):
                progress.update(work, description=f"{scene.name}: {clients:,}")
                matching.add_row(*_row(clients, *measure(scene, clients, 0.1 if quick else 0.5)))
                progress.advance(work)
            matching.add_section()
        for name, make in KINDS.items():
            progress.update(work, description=name)
            kinds.add_row(name, *(f"{cost:,.1f}" for cost in costs(make, 1_000 if quick else 10_000)))
            progress.advance(work)
    console = Console(width=None if Console().is_terminal else 120)
    console.print(matching, kinds)


def _row(clients: int, hits: float, taken: dict[str, float]) -> Iterator[str]:
    yield f"{clients:,}"
    yield f"{hits:,.1f}"
    for name in ("index", "dictionary or grid", "pyahocorasick", "one by one"):
        yield f"{taken[name]:,.1f} ({1e6 / taken[name]:,.0f})" if name in taken else ""


if __name__ == "__main__":
    main()
