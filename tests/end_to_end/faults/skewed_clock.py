"""The real command with a wall clock that is wrong: ``python -m tests.end_to_end.faults.skewed_clock serve …``.

The file that the environment names in ``SKEW_FILE`` says by how many seconds; it is read again at each call, so the
clock jumps when a test writes it. What is changed are ``time.time`` and ``time.time_ns``, which is what the server asks
for the time of day; monotonic time goes on, and so do Redis' clock and that of the kernel.
"""

import os
import sys
import time
from datetime import datetime
from functools import partial
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
    """Return by how many seconds a time is ahead of the true time."""
    return datetime.fromisoformat(moment).timestamp() - time.time()


def jumped(seconds: float, stream: Consumer) -> bool:
    """Whether the last message was written by a clock that is so many seconds ahead."""
    return abs(ahead(stream.messages[-1]["at"]) - seconds) < 300


def main() -> None:
    """Run the command with a wrong clock. Workers are started in the same way."""
    file = Path(os.environ[SKEW_FILE])
    true_time, true_time_ns = time.time, time.time_ns

    def offset() -> float:
        return float(file.read_text())

    with (
        patch.object(time, "time", lambda: true_time() + offset()),
        patch.object(time, "time_ns", lambda: true_time_ns() + int(offset() * 1e9)),
    ):
        # Here, so that nobody can have taken the true clock along before it was changed.
        from stream_server import cli  # noqa: PLC0415 - see above
        from stream_server.runtime import supervisor  # noqa: PLC0415 - see above

        workers = [sys.executable, "-m", MODULE, "serve"]
        with patch.object(supervisor, "Supervisor", partial(_started_by, supervisor.Supervisor, workers)):
            cli.main()


def _started_by(supervisor: type, workers: list[str], _: list[str], *rest: object, **more: object) -> object:
    return supervisor(workers, *rest, **more)


if __name__ == "__main__":
    main()
