"""The bounds of a hub, and what it has counted."""

from dataclasses import dataclass

PREVIEWS = 2
"""So many previews of rules run at once, the others wait: each takes a slice of every turn of the loop."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a hub; ``buffer_bytes`` are the unsent bytes of one live client."""

    buffer_bytes: int
    heartbeat_seconds: float
    write_timeout_seconds: float
    goodbye_seconds: float
    ring_bytes: int
    ring_seconds: float


@dataclass(slots=True)
class Counts:
    """What happened since the start; the metrics read them."""

    published: int = 0
    malformed: int = 0
    refused: int = 0
    failed: int = 0
