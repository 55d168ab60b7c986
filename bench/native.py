"""Compiles the benchmark's programs in C."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent


class Programs(NamedTuple):
    """Paths of the compiled programs."""

    floor: str
    load: str


def compiled(folder: Path) -> Programs:
    """Compile ``floor.c`` and ``load.c`` into the folder. Raises RuntimeError if that is not possible."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("the benchmark needs a C compiler, and there is none on PATH")
    for name in Programs._fields:
        command = [compiler, "-O2", "-o", str(folder / name), str(SOURCES / f"{name}.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{compiler} failed: {done.stderr.strip()[-500:]}")
    return Programs(*(str(folder / name) for name in Programs._fields))
