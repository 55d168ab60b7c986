"""What other processes see of a fork: the arguments that `/proc` shows."""

import ctypes
import sys
from collections.abc import Sequence
from pathlib import Path

HELPER = "preloaded-helper"
"""The only argument of a process that forks workers for a supervisor and is no part of it."""

ROOM = " " * 4096
"""An argument of the parent of all forks. It makes room for their arguments, which are written over its own."""


def set_arguments(arguments: Sequence[str]) -> None:
    """Show these arguments in ``/proc/self/cmdline``, as many bytes as there is room for."""
    numbers = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(numbers[45]), int(numbers[46])  # `arg_start` and `arg_end` of proc(5)
    shown = "".join(f"{argument}\0" for argument in arguments).encode()
    ctypes.memmove(begin, shown.ljust(end - begin, b"\0")[: end - begin], end - begin)


def set_module(arguments: Sequence[str]) -> None:
    """Show the arguments of an interpreter that runs the module ``arguments[0]`` with the others."""
    set_arguments([sys.executable, "-m", *arguments])
