"""The measured parts of a round."""

from dataclasses import dataclass
from typing import Literal

TOPICS = 10
"""Number of topics. Each event has one topic, so a client of one topic receives 10 % of the events."""

Part = Literal["firehose", "topic", "own"]
"""The events that clients receive: all, one topic of ten, or those that match a filter of each client's own."""

PARTS: tuple[Part | Literal["idle"], ...] = ("firehose", "topic", "own", "idle")
"""The parts of a round, in order. Idle connections have no events."""


@dataclass(frozen=True)
class Work:
    """One measured part: which events clients receive, the rate in events a second, and the share that is due."""

    part: Part
    rate: float
    share: float


@dataclass(frozen=True)
class Plan:
    """The sizes of a run. Times are in seconds, rates in events a second."""

    rounds: int
    conns: int
    idle_conns: int
    rate: float
    topic_rate: float
    seconds: float
    warmup: float
    settle: float

    def work(self, part: Part) -> Work:
        """Return what a part asks for."""
        return Work(part, self.rate, 1.0) if part == "firehose" else Work(part, self.topic_rate, 1 / TOPICS)


def channel_of(part: Part, number: int) -> str:
    """Return the channel of event or client ``number`` for peers that have channels."""
    return "all" if part == "firehose" else f"topic{number % TOPICS}"
