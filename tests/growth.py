"""Whether work grows no faster than its input.

It is judged by the CPU time of the thread, to which other programs do not add, and by its growth, which is the same on
a slow machine.
"""

import time
from collections.abc import Callable
from itertools import pairwise

from tests.tiers import quick

ATTEMPTS = 7

LEAST_SECONDS = 0.005
"""How long short work is repeated in one attempt. The least time counts: other programs disturbed it least."""

TIMES = 2.5
"""What double the input may take. Linear work takes twice as long, quadratic work four times."""


def assert_linear(work: Callable[[int], object], size: int) -> None:
    """Check that ``work`` grows no faster than its size, up to ``size``. The best of some attempts counts.

    The size is doubled twice, and one time has to be no step: where data leave a cache of the processor, linear work
    takes four times as long too. ``work`` makes its input of the given size anew, so that no cache of ours answers.
    The first tier goes up to a quarter of the size.
    """
    size //= 4 if quick() else 1
    best = dict.fromkeys((size // 4, size // 2, size), float("inf"))
    for attempt in range(ATTEMPTS):
        for each in best:
            best[each] = min(best[each], _cpu_seconds(work, each))
        if attempt and any(  # the first one fills caches, which makes the least size look slow
            double <= TIMES * half for half, double in pairwise(best.values())
        ):
            return
    raise AssertionError(f"the CPU seconds by size: {best}")


def _cpu_seconds(work: Callable[[int], object], size: int) -> float:
    """Return the least time of ``work`` in some runs one after the other, so that short ones find a warm cache."""
    times: list[float] = []
    while sum(times) < LEAST_SECONDS:
        began = time.thread_time()
        work(size)
        times.append(time.thread_time() - began)
    return min(times)
