"""The program that has collected the tests. Each worker of xdist is a fork of it (see ``stub``).

The collection in a worker then finds each module imported, which else takes the worker seconds of processor time.
"""

import gc
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path

import pytest

from tests.preloaded.launcher import ROOT
from tests.preloaded.parent import become, fork_for_requests


class BackwardImports:
    """A plugin that imports the test modules from the last one to the first before pytest collects them."""

    def pytest_collection(self) -> None:
        for path in sorted((ROOT / "tests").rglob("test_*.py"), reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # reported where the tests are collected
                import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


class ForgetFailed:
    """A plugin that forgets a module whose import has failed.

    pytest leaves such a module in `sys.modules`, half made. A worker would find it there, and collect no test of it
    without a word.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.failed:
            for name, module in list(sys.modules.items()):
                if getattr(module, "__file__", None) == str(collector.path):
                    del sys.modules[name]
        return report


def collect(arguments: Sequence[str]) -> None:
    """Collect the tests of a run with these arguments. What that prints is left to the run itself."""
    helper = None if _compiled() else _collect_backwards(arguments)
    _collect(arguments)
    import_module("hypothesis.strategies").text().validate()  # makes its tables, for seconds on a fresh checkout
    if helper is not None:
        os.kill(helper, signal.SIGKILL)
        os.waitpid(helper, 0)


def _compiled() -> bool:
    """Whether there is bytecode of test modules. To make it takes longer than to collect."""
    return any((ROOT / "tests" / "__pycache__").glob("test_*-pytest-*.pyc"))


def _collect_backwards(arguments: Sequence[str]) -> int:
    """Start a process that makes the bytecode in the other order, and return its pid."""
    pid = os.fork()
    if pid == 0:
        _collect(arguments, BackwardImports())
        os._exit(0)
    return pid


def _collect(arguments: Sequence[str], *plugins: object) -> None:
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing), suppress(Exception):
        pytest.main([*arguments, "-n0", "--collect-only"], plugins=[ForgetFailed(), *plugins])


def main() -> None:
    """Collect, and in each forked process run the code that its request has."""
    first, listener, *arguments = sys.argv[1:]
    collect(arguments)
    gc.collect()
    gc.freeze()
    request = fork_for_requests(first, listener)
    if request is not None:
        become(request)
        exec(request.arguments[-1], {"__name__": "__main__"})


if __name__ == "__main__":
    main()
