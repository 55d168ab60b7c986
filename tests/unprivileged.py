"""Programs and code that may not open what a file's mode forbids, also in tests that run as root."""

import ctypes
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.waiting import PATIENCE

PR_CAPBSET_DROP = 24
CAPABILITY_VERSION_3 = 0x20080522
FORBIDDEN = (1, 2, 3)
"""CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER of capabilities(7): to open and change files of others."""


def run(command: Sequence[str], env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, without root's rights on files."""
    return subprocess.run(
        command, env=env, capture_output=True, text=True, check=False, timeout=PATIENCE,
        stdin=subprocess.DEVNULL, preexec_fn=_give_up if os.geteuid() == 0 else None,
    )  # fmt: skip


def _give_up() -> None:
    libc = ctypes.CDLL(None)
    for capability in FORBIDDEN:
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0):
            os._exit(77)


@contextmanager
def without_rights() -> Iterator[None]:
    """Run the block without root's rights on files: this thread only, and no program that it starts."""
    if os.geteuid() != 0:
        yield
        return
    libc, header = ctypes.CDLL(None, use_errno=True), (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    rights = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, and each again for numbers above 31
    assert libc.capget(header, rights) == 0
    fewer = (ctypes.c_uint32 * 6)(*rights)
    fewer[0] &= ~sum(1 << capability for capability in FORBIDDEN)
    assert libc.capset(header, fewer) == 0
    try:
        yield
    finally:
        assert libc.capset(header, rights) == 0
