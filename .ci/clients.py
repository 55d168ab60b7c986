"""``python .ci/clients.py NAME`` makes ``.venv/clients/NAME``: one client of others, in an environment of its own.

Old clients want old packages, and two of them are modules of the same name, so none can be in ``.venv``.
What is in one says ``tests/clients/locks/NAME.in``; the lock beside it is written by ``make lock``.
"""

import hashlib
import sys
import venv
from pathlib import Path

import environment

FOLDER = environment.VENV / "clients"


def main() -> int:
    """Make the environment unless it is the one that would be made now; the exit code."""
    (name,) = sys.argv[1:]
    try:
        with environment.alone():
            ensure(FOLDER / name, environment.CLIENT_LOCKS / f"{name}.txt")
    except environment.Failed as error:
        environment.say(f"stream-server: {error}")
        return 1
    return 0


def ensure(folder: Path, locked: Path) -> None:
    """The environment in ``folder`` holds what ``locked`` names; raises :class:`environment.Failed`."""
    stamp = folder / ".stamp"
    made_from = f"{environment.identity()}\n{hashlib.sha256(locked.read_bytes()).hexdigest()}\n"
    if stamp.exists() and stamp.read_text(encoding="utf-8") == made_from:
        return
    venv.create(folder, clear=True, symlinks=True, with_pip=False)
    environment.sync(folder / "bin" / "python", locked, with_uv=environment.fetched_uv())
    stamp.write_text(made_from, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
