"""The rule of the pause between flushes, with clocks that the tests set."""

import pytest

from stream_server.hub.flusher import (
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


def test_a_process_with_slack_flushes_at_once(clocks: Clocks) -> None:
    clocks.work(1.0, flushing=NO_PAUSE_PRESSURE * 0.9)
    assert clocks.wait == 0
    assert clocks.pause.flush_share == pytest.approx(NO_PAUSE_PRESSURE * 0.9, rel=0.1)


def test_a_flood_waits_for_the_whole_tick_although_its_flushes_are_few(clocks: Clocks) -> None:
    """The CPU time that goes to other work, as reading the flood, is pressure too."""
    clocks.work(1.0, flushing=0.2, other=0.79)
    assert clocks.pause.flush_share == pytest.approx(0.2, abs=0.02)
    assert clocks.wait == pytest.approx(min(MAX_TICK_SECONDS, TICK_FLUSHES * STEP_SECONDS * 0.2))


def test_the_tick_is_bounded(clocks: Clocks) -> None:
    clocks.work(1.0, flushing=1.0)
    clocks.pass_time(1.0, cpu_share=1.0)
    clocks.pause.end_flush(1.0)
    assert clocks.wait == pytest.approx(MAX_TICK_SECONDS)


def test_a_busy_process_with_short_flushes_waits_shortly(clocks: Clocks) -> None:
    clocks.work(1.0, flushing=0.0, other=1.0)
    clocks.pause.end_flush(0.00001)
    assert clocks.wait == pytest.approx(TICK_FLUSHES * 0.00001)


def test_flushes_that_wait_for_a_shared_core_are_pressure(clocks: Clocks) -> None:
    clocks.work(1.0, flushing=0.9, waiting_for_core=0.8)
    assert clocks.pause.pressure == pytest.approx(0.9, rel=0.1)
    assert clocks.wait > 0


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
