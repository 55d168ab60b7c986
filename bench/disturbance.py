"""How much other programs worked during a run, which makes its figures doubtful."""

import time

from bench.process import busy_seconds, own_seconds

DISTURBED = 0.1
"""Share of a core of other work from which on the figures are doubtful."""


class Disturbance:
    """The processor time of other programs since the start. It is known when all processes of the run have ended."""

    def __init__(self) -> None:
        self._start, self._before = time.monotonic(), busy_seconds() - own_seconds()

    def share(self) -> float:
        """Return the processor time as a share of a core."""
        share = (busy_seconds() - own_seconds() - self._before) / (time.monotonic() - self._start)
        return max(0.0, share)

    def note(self) -> str:
        """Return a sentence for below the table."""
        share = self.share()
        doubt = ": the figures are doubtful" if share > DISTURBED else ""
        return f"other programs used {100 * share:.0f} % of a core during the run{doubt}"
