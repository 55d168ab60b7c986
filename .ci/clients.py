"""Creates ``.venv/clients/NAME``, an environment for one foreign client (``python .ci/clients.py NAME``).

Old clients need old packages, and two of them have modules of the same name, so none can be in ``.venv``.
``tests/clients/locks/NAME.in`` lists the packages of one; ``make lock`` writes the lock file beside it. A second
argument names another lock file, such as that of an older version of this server.
"""

import hashlib
import sys
import venv
from pathlib import Path

import environment

FOLDER = environment.VENV / "clients"
"""Folder of all these environments."""


def main() -> int:
    """Create the environment named on the command line unless it is up to date; return the exit code."""
    name, *locked = sys.argv[1:]
    try:
        with environment.alone():
            ensure(FOLDER / name, Path(*locked) if locked else environment.CLIENT_LOCKS / f"{name}.txt")
    except environment.Failed as error:
        environment.say(f"stream-server: {error}")
        return 1
    return 0


def ensure(folder: Path, locked: Path) -> None:
    """Make the environment in ``folder`` contain what ``locked`` lists; raises :class:`environment.Failed`."""
    stamp = folder / ".stamp"
    made_from = f"{environment.identity()}\n{hashlib.sha256(locked.read_bytes()).hexdigest()}\n"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from:
        return
    venv.create(folder, clear=True, symlinks=True, with_pip=False)
    environment.sync(folder / "bin" / "python", locked, with_uv=environment.fetched_uv())
    stamp.write_text(made_from, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
