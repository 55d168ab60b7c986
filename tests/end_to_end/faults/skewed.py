"""The real command with a wall clock that is wrong: ``python -m tests.end_to_end.faults.skewed serve …``.

The file that the environment names in ``SKEW_FILE`` says by how many seconds; it is read again at each call, so the
clock jumps when a test writes it. What is changed are ``time.time`` and ``time.time_ns``, which is what the server asks
for the time of day; monotonic time goes on, and so do Redis' clock and that of the kernel.
"""

import os
import sys
import time
from functools import partial
from pathlib import Path
from unittest.mock import patch

MODULE = "tests.end_to_end.faults.skewed"
SKEW_FILE = "SKEW_FILE"


def skew(file: Path, seconds: float) -> None:
    """Put the clock of the servers that look at ``file`` forward by so much, or back; in one step."""
    new = file.with_suffix(".new")
    new.write_text(f"{seconds}")
    new.replace(file)


def main() -> None:
    """Make the clock wrong, then be the command; workers are started the same way."""
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
