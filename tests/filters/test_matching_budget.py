"""The processor time that the rules of one filter may take, with clocks that the test moves."""

import pytest

from filters.rule import ALLOWANCE_SECONDS, FREE_SECONDS, MAX_EVENT_SECONDS, MatchingBudget, TooCostly


class Clocks:
    """Processor time and real time in seconds."""

    def __init__(self) -> None:
        self.cpu = self.real = 100.0
        self.budget = MatchingBudget(lambda: self.cpu, lambda: self.real)

    def work(self, seconds: float) -> None:
        self.cpu += seconds
        self.real += seconds

    def match(self, seconds: float) -> None:
        """Match one event with a rule that takes this time, and a second rule."""
        self.budget.start()
        self.budget.check()
        self.work(seconds)
        self.budget.check()
        self.budget.finish()


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_events_within_the_free_time_never_use_up_the_allowance(clocks: Clocks) -> None:
    for _ in range(1000):
        clocks.match(FREE_SECONDS * 0.99)


def test_an_event_over_its_own_limit_fails_at_once(clocks: Clocks) -> None:
    with pytest.raises(TooCostly):
        clocks.match(FREE_SECONDS + MAX_EVENT_SECONDS * 1.01)
    with pytest.raises(TooCostly):
        clocks.budget.start()  # the filter is not tried again at full cost
    clocks.real += 60
    clocks.match(FREE_SECONDS)


def test_many_costly_events_use_the_allowance_up(clocks: Clocks) -> None:
    costly = FREE_SECONDS + MAX_EVENT_SECONDS / 2
    for _ in range(int(ALLOWANCE_SECONDS / (MAX_EVENT_SECONDS / 2))):
        clocks.match(costly)
    clocks.match(FREE_SECONDS)
    with pytest.raises(TooCostly):
        clocks.match(costly)


def test_rare_costly_events_are_paid_by_the_refill(clocks: Clocks) -> None:
    for _ in range(100):
        clocks.match(FREE_SECONDS + MAX_EVENT_SECONDS / 2)
        clocks.real += 60


def test_real_time_on_a_busy_machine_costs_nothing(clocks: Clocks) -> None:
    for _ in range(100):
        clocks.real += 5  # the process did not run
        clocks.budget.start()
        clocks.real += 5
        clocks.budget.check()
        clocks.budget.finish()
