"""The interpreter that xdist starts as a worker: has the worker forked, and ends with its exit code."""

import os
import signal
import sys
from pathlib import Path

from tests.preloaded.launcher import Launcher


def main() -> int:
    """Take the address of the parent, and the arguments of an interpreter, of which the last one is code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the worker too, whose end this awaits
    address, *arguments = sys.argv[1:]
    return Launcher(address).start(arguments, os.environ, (0, 1, 2), Path.cwd()).wait()


if __name__ == "__main__":
    sys.exit(main())
