"""Run the real command with a wrong wall clock: ``python -m tests.end_to_end.faults.skewed_clock serve …``.

The environment variable ``SKEW_FILE`` names a file with the error in seconds. Each call reads the file again, so the
clock jumps when a test writes the file. Only ``time.time`` and ``time.time_ns`` are wrong. The monotonic clock, Redis'
clock and the kernel's clock stay right.
"""

import os
import time
from datetime import datetime
from pathlib import Path
from unittest.mock import patch

from tests.end_to_end.consumer import Consumer

MODULE = "tests.end_to_end.faults.skewed_clock"
SKEW_FILE = "SKEW_FILE"


def skew(file: Path, seconds: float) -> None:
    """Set the clock of the servers that read ``file`` forward or back, in one step."""
    new = file.with_suffix(".new")
    new.write_text(f"{seconds}")
    new.replace(file)


def ahead(moment: str) -> float:
    """Return the seconds by which a time is ahead of the true time."""
    return datetime.fromisoformat(moment).timestamp() - time.time()


def jumped(seconds: float, stream: Consumer) -> bool:
    """Whether a server whose clock is this many seconds ahead wrote the last message."""
    return abs(ahead(stream.messages[-1]["at"]) - seconds) < 300


def main() -> None:
    """Run the command with a wrong clock. Workers of a supervisor would have the true one."""
    file = Path(os.environ[SKEW_FILE])
    true_time, true_time_ns = time.time, time.time_ns

    def offset() -> float:
        return float(file.read_text())

    with (
        patch.object(time, "time", lambda: true_time() + offset()),
        patch.object(time, "time_ns", lambda: true_time_ns() + int(offset() * 1e9)),
    ):
        # Imported here: a module that was imported earlier could keep the true clock.
        from stream_server import cli  # noqa: PLC0415 - see above

        cli.main()


if __name__ == "__main__":
    main()
