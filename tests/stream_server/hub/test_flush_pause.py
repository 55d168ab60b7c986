"""The rule of the pause between flushes, with clocks that the tests set."""

import pytest

from stream_server.hub.flush_pause import (
    MAX_TICK_SECONDS,
    NO_PAUSE_PRESSURE,
    TICK_FLUSHES,
    WHOLE_PAUSE_PRESSURE,
    WINDOW_SECONDS,
    FlushPause,
    pause_share,
)

STEP_SECONDS = WINDOW_SECONDS / 20


class Clocks:
    """The clock on the wall and that of the CPU, both set by the test."""

    def __init__(self) -> None:
        self.wall = 100.0
        self.cpu = 5.0
        self.pause = FlushPause(lambda: self.wall, lambda: self.cpu)

    def pass_time(self, seconds: float, *, cpu_share: float) -> None:
        self.wall += seconds
        self.cpu += seconds * cpu_share

    def work(self, seconds: float, *, flushing: float, other: float = 0.0, waiting_for_core: float = 0.0) -> None:
        """Let time pass in steps. Each ends with a flush. The parameters are shares of each step."""
        for _ in range(round(seconds / STEP_SECONDS)):
            self.pass_time(STEP_SECONDS * (1 - flushing), cpu_share=other / (1 - flushing) if flushing < 1 else 0.0)
            self.pass_time(STEP_SECONDS * flushing, cpu_share=1 - waiting_for_core)
            self.pause.end_flush(STEP_SECONDS * flushing)

    @property
    def wait(self) -> float:
        return self.pause.next_flush_at - self.wall


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


def test_the_first_flush_and_those_of_an_idle_process_have_no_pause(clocks: Clocks) -> None:
    assert clocks.pause.next_flush_at <= clocks.wall
    clocks.pass_time(60, cpu_share=0.01)
    clocks.pause.end_flush(0.006)
    assert clocks.wait == 0
    assert clocks.pause.flush_share == pytest.approx(0.006 / 60)


@pytest.mark.parametrize(
    ("flushing", "other", "waiting_for_core", "wait"),
    [
        pytest.param(NO_PAUSE_PRESSURE * 0.9, 0.0, 0.0, 0.0, id="slack"),
        pytest.param(0.2, 0.79, 0.0, TICK_FLUSHES * STEP_SECONDS * 0.2, id="other work is pressure too"),
        pytest.param(0.9, 0.0, 0.8, MAX_TICK_SECONDS, id="so is waiting for a core"),
        pytest.param(1.0, 0.0, 0.0, MAX_TICK_SECONDS, id="the tick is bounded"),
        pytest.param(0.001, 0.999, 0.0, TICK_FLUSHES * STEP_SECONDS * 0.001, id="short flushes wait shortly"),
    ],
)
def test_the_pause_follows_from_the_pressure_and_the_length_of_a_flush(
    clocks: Clocks, flushing: float, other: float, waiting_for_core: float, wait: float
) -> None:
    clocks.work(1.0, flushing=flushing, other=other, waiting_for_core=waiting_for_core)
    assert clocks.pause.flush_share == pytest.approx(flushing, abs=0.06)
    assert clocks.wait == pytest.approx(min(MAX_TICK_SECONDS, wait), abs=1e-6)


def test_pressure_that_has_passed_is_forgotten(clocks: Clocks) -> None:
    clocks.work(1.0, flushing=0.5, other=0.5)
    assert clocks.wait > 0
    clocks.work(2 * WINDOW_SECONDS, flushing=0.1)
    assert clocks.wait == 0


def test_the_pause_grows_with_the_pressure() -> None:
    shares = [pause_share(percent / 100) for percent in range(101)]
    assert shares == sorted(shares)
    assert pause_share(NO_PAUSE_PRESSURE) == 0.0
    assert pause_share((NO_PAUSE_PRESSURE + WHOLE_PAUSE_PRESSURE) / 2) == pytest.approx(0.5)
    assert pause_share(WHOLE_PAUSE_PRESSURE) == pause_share(1.5) == 1.0
