"""The measured figures by peer and part, and their medians."""

from collections import defaultdict
from statistics import median

Figures = dict[str, float]
"""Values by name."""


class Results:
    """All figures of a run, and the reason why a peer has none."""

    def __init__(self) -> None:
        self._all: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        self.failed: dict[str, str] = {}

    def add(self, peer: str, part: str, figures: Figures) -> None:
        """Add the figures of one part of one round."""
        for name, value in figures.items():
            self._all[peer, part, name].append(value)

    def median(self, peer: str, part: str, name: str) -> float | None:
        """Return the median over the rounds, or None if the figure was not measured."""
        values = self._all.get((peer, part, name))
        return median(values) if values else None

    def everything(self) -> dict[str, dict[str, dict[str, list[float]]]]:
        """Return all figures, by peer, part and name."""
        found: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
        for (peer, part, name), values in self._all.items():
            found[peer][part][name] = values
        return found
