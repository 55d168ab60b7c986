"""Runs the command line: ``python -m stream_server`` and the ``stream-server`` command."""

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

ENDED_BY_SIGTERM = 128 + signal.SIGTERM
ENDED_BY_SIGINT = 128 + signal.SIGINT
"""The exit codes that shells and supervisors know."""

MISSING_SERVER = 'stream-server: commands need the libraries of the server: pip install "social-stream-server[server]"'


FOREIGN_FILTERS = (
    "stream-server: Python finds another package named filters before the server's own: {}. Start from another folder, "
    "take its folder off PYTHONPATH, or install stream-server into an environment of its own"
)


def main() -> None:
    """Run the command ``stream-server``. Without the libraries of the server, print how to install them.

    The kernel drops a SIGTERM to the first process of a container, if it has no handler. So a container that is stopped
    while its server is imported would wait for SIGKILL.
    """
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(ENDED_BY_SIGTERM))
    if foreign := _find_foreign_filters():
        sys.exit(FOREIGN_FILTERS.format(foreign))
    try:
        from stream_server import cli  # noqa: PLC0415 - the client alone is installed without these libraries

        cli.main()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"stream_server", "filters"}:
            raise
        sys.exit(f"{MISSING_SERVER} ({error.name} is missing)")
    except KeyboardInterrupt:  # while it is imported: later the command line handles it
        sys.exit(ENDED_BY_SIGINT)


def _find_foreign_filters() -> str:
    """Return the path of another package named ``filters``; empty if Python finds that of the server."""
    own, found = Path(__file__).resolve().parents[1] / "filters", find_spec("filters")
    if found is None:
        return ""
    places = found.submodule_search_locations or [found.origin or ""]
    return "" if any(Path(place).resolve() == own for place in places) else next(iter(places))


if __name__ == "__main__":
    main()
