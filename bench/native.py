"""Compiles the benchmark's programs in C, if the machine has a compiler."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

SOURCES = Path(__file__).parent


class Programs(NamedTuple):
    """Paths of the compiled programs. Both are empty if they could not be compiled, and ``missing`` says why."""

    floor: str
    load: str
    missing: str


def compiled(folder: Path) -> Programs:
    """Compile ``floor.c`` and ``load.c`` into the folder."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return Programs("", "", "no C compiler on PATH")
    programs = {}
    for name in ("floor", "load"):
        programs[name] = str(folder / name)
        command = [compiler, "-O2", "-o", programs[name], str(SOURCES / f"{name}.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return Programs("", "", f"{compiler} failed: {done.stderr.strip()[-500:]}")
    return Programs(**programs, missing="")
