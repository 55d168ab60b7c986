"""Clocks that stand still unless a test moves them, and the processor time that is counted by them."""

from collections.abc import Callable

from stream_server.web.limits.processor_time import ProcessorTime


class Clocks:
    """The time, and the processor time of the work of a test, in seconds."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cpu = 0.0

    def processor_time(self, is_on: Callable[[], bool] = lambda: True) -> ProcessorTime:
        return ProcessorTime(is_on, lambda: self.now, lambda: self.cpu)

    def work(self, seconds: float) -> None:
        """Take processor time."""
        self.cpu += seconds
