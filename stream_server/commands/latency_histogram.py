"""Counts latencies in bounded memory, however many there are."""

import math
from collections import Counter

GROWTH = 1.02
"""Ratio of the bounds of a bucket, so that a quantile is exact to one percent."""

MIN_SECONDS = 1e-6


class LatencyHistogram:
    """Latencies in buckets that are two percent wide. An hour and a microsecond are 1,100 buckets apart."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.count = 0

    def add(self, seconds: float) -> None:
        """Count a latency; one below a microsecond counts as one."""
        self._buckets[math.floor(math.log(max(seconds, MIN_SECONDS), GROWTH))] += 1
        self.count += 1

    def quantile_ms(self, share: float) -> float | None:
        """Return the latency in milliseconds below which ``share`` (0 to 1) of them lie; None if there are none."""
        rank, seen = share * self.count, 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            if seen >= rank:
                return round(math.pow(GROWTH, bucket + 0.5) * 1000, 3)
        return None

    def summary(self) -> dict[str, float | None]:
        """Return the median and the 99th percentile, in milliseconds, for ``--json``."""
        return {"p50_ms": self.quantile_ms(0.5), "p99_ms": self.quantile_ms(0.99)}
