"""What not every machine has. Without it a test is skipped, and fails where a variable says that it must be there.

``.ci/run`` sets the variables to 1.
"""

import os
import runpy
from functools import cache
from typing import NoReturn

import pytest

from tests.program import ROOT

BROWSER = "BROWSER_REQUIRED"
"""Chromium, Node and npm."""

IMAGE = "IMAGE_REQUIRED"
"""What builds and runs the image: the programs, and the rights of root."""

INDEX = "INDEX_REQUIRED"
"""The package index, the registry of npm, and Debian."""


def missing(what: str, required: str) -> NoReturn:
    """Skip the running test with the reason ``what``, or fail it if the variable ``required`` is 1."""
    (pytest.fail if os.environ.get(required) == "1" else pytest.skip)(what)


def need_index() -> None:
    """Skip the running test if the package index of this machine does not answer."""
    if reason := _no_answer():
        missing(reason, INDEX)


@cache
def _no_answer() -> str:
    index = runpy.run_path(str(ROOT / ".ci" / "package_index.py"))
    try:
        index["link"](index["configured"](os.environ) or index["PUBLIC"], "msgspec", "")
    except index["Unreachable"] as error:
        return str(error)
    return ""
