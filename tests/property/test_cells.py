"""The design of cells: nodes publish one order and lose nothing, with wrong clocks, lost messages and dead cells."""

import random
from collections import deque
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.property.cells.cells import COUNTS, MOST_CELLS, Cell, Entry, Node

STEPS = 150
GIVEN_UP_AFTER = 25
"""Steps for which a cell may be dead before the nodes go on without it."""


class Outcome(NamedTuple):
    """What a run gave. ``late`` has for each node the ids that it told as a gap; ``faults`` counts what happened."""

    nodes: list[Node]
    cells: list[Cell]
    late: list[set[int]]
    faults: dict[str, int]


class Run:
    """One random schedule over some cells and two nodes."""

    def __init__(self, seed: int, cells: int, *, waits: bool) -> None:
        self._chance = random.Random(seed)
        self.cells = [Cell(number) for number in range(cells)]
        self.nodes = [Node(self.cells, waits=waits) for _ in range(2)]
        self.late: list[set[int]] = [set() for _ in self.nodes]
        self.faults = dict.fromkeys(("skewed", "back", "lost", "killed", "given up"), 0)
        self._wires: list[list[deque[Entry]]] = [[deque() for _ in self.cells] for _ in self.nodes]
        self._dead_since: dict[int, int] = {}
        self._given_up: set[int] = set()
        self._skew = [self._chance.randint(-40, 40) for _ in self.cells]

    def go(self) -> Outcome:
        """Do all steps, let every cell return, and let everything arrive."""
        for step in range(STEPS):
            self._tick(step)
            deeds = (self._post, self._post, self._deliver, self._deliver, self._kill, self._return)
            deeds[self._chance.randrange(len(deeds))](step)
            self._lose_patience(step)
        for number in list(self._dead_since):
            self._bring_back(number)
        for cell in self.cells:
            cell.clock_ms = 10 * STEPS + 1000
            self._send(cell, cell.append(is_heartbeat=True), loses=False)
        for node, wires in zip(self.nodes, self._wires, strict=True):
            for number, wire in enumerate(wires):
                while wire:
                    node.hear(number, wire.popleft())
        return Outcome(self.nodes, self.cells, self.late, self.faults)

    def _tick(self, step: int) -> None:
        for cell, skew in zip(self.cells, self._skew, strict=True):
            cell.clock_ms = 10 * step + skew
            self.faults["skewed"] += skew != self._skew[0]
        if self._chance.random() < 0.03:
            self._skew[self._chance.randrange(len(self.cells))] -= 30
            self.faults["back"] += 1

    def _post(self, _: int) -> None:
        for cell in self.cells:
            if cell.alive:
                is_heartbeat = self._chance.random() < 0.5
                self._send(cell, cell.append(is_heartbeat=is_heartbeat))

    def _send(self, cell: Cell, entry: Entry, *, loses: bool = True) -> None:
        for wires in self._wires:
            if loses and self._chance.random() < 0.1:
                self.faults["lost"] += 1
            else:
                wires[cell.number].append(entry)

    def _deliver(self, _: int) -> None:
        node = self._chance.randrange(len(self.nodes))
        for number, wire in enumerate(self._wires[node]):
            for _ in range(self._chance.randint(0, len(wire))):
                self.nodes[node].hear(number, wire.popleft())

    def _kill(self, step: int) -> None:
        cell = self._chance.choice(self.cells)
        if cell.alive and len(self._dead_since) < len(self.cells) - 1:
            cell.alive = False
            self._dead_since[cell.number] = step
            self.faults["killed"] += 1

    def _return(self, _: int) -> None:
        if self._dead_since and self._chance.random() < 0.3:
            self._bring_back(self._chance.choice(list(self._dead_since)))

    def _bring_back(self, number: int) -> None:
        del self._dead_since[number]
        cell = self.cells[number]
        if number in self._given_up:
            self._given_up.discard(number)
            cell.raise_to(max(node.watermark for node in self.nodes))
            for node, late in zip(self.nodes, self.late, strict=True):
                late.update(node.take_back(number))
        cell.alive = True
        self._send(cell, cell.append(is_heartbeat=True), loses=False)

    def _lose_patience(self, step: int) -> None:
        for number, since in self._dead_since.items():
            if step - since > GIVEN_UP_AFTER and number not in self._given_up:
                self._given_up.add(number)
                self.faults["given up"] += 1
                for node in self.nodes:
                    node.give_up(number)


def problems(outcome: Outcome) -> list[str]:
    """Return what is wrong, from the cells' logs alone: order, doubles, losses, and nodes that differ."""
    due = {one.id for cell in outcome.cells for one in cell.log if not one.is_heartbeat}
    found = []
    for node, late in zip(outcome.nodes, outcome.late, strict=True):
        if node.published != sorted(set(node.published)):
            found.append("order")
        if set(node.published) | late != due:
            found.append("lost")
        if set(node.published) & late:
            found.append("twice")
    told = set.union(*outcome.late)
    views = {tuple(one for one in node.published if one not in told) for node in outcome.nodes}
    return found + (["nodes differ"] if len(views) > 1 else [])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5))
def test_all_nodes_publish_one_order_and_lose_nothing(seed: int, cells: int) -> None:
    """Each entry is published once, in the order of ids, or told as late because its cell was given up."""
    assert problems(Run(seed, cells, waits=True).go()) == []


def test_the_schedules_have_every_fault() -> None:
    """Otherwise the test above would show little."""
    runs = [Run(seed, 4, waits=True).go() for seed in range(10)]
    assert all(sum(run.faults[name] for run in runs) > 0 for name in runs[0].faults)


def test_without_a_watermark_the_order_breaks() -> None:
    """The control: a node that publishes at once what it hears."""
    assert any("order" in problems(Run(seed, 3, waits=False).go()) for seed in range(5))


@pytest.mark.parametrize("number", [0, 7, MOST_CELLS - 1])
def test_ids_of_a_cell_rise_and_name_it(number: int) -> None:
    """With a full millisecond and a clock that goes back, ids are unique, rising and below 2^53."""
    cell = Cell(number)
    cell.clock_ms = (1 << 41) - 1000
    ids = [cell.append().id for _ in range(COUNTS + 5)]
    cell.clock_ms -= 500
    ids += [cell.append().id for _ in range(5)]
    assert ids == sorted(set(ids))
    assert {one % MOST_CELLS for one in ids} == {number}
    assert ids[-1] < 2**53
