"""The program that has collected the tests. Each worker of xdist is a fork of it (see ``stub``).

The collection in a worker then finds each module imported, which else takes the worker seconds of processor time.
"""

import gc
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path

import pytest

from tests.preloaded.parent import become, fork_for_requests


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
    with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing), suppress(Exception):
        pytest.main([*arguments, "-n0", "--collect-only"], plugins=[ForgetFailed()])
    import_module("hypothesis.strategies").text().validate()  # makes its tables, for seconds on a fresh checkout


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
