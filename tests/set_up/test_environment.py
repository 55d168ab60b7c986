"""What `make run` and `make test` install, and that neither removes what the other has installed."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.program import ROOT

RUN, ALL = 1, 2
"""What `make run` and `make test` ask for: the packages of so many lock files."""


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[ModuleType]:
    """The module of the set-up with a `.venv` in a folder of the test, which stays empty but for its stamp."""
    monkeypatch.syspath_prepend(ROOT / ".ci")
    module = importlib.import_module("environment")
    monkeypatch.setattr(module, "VENV", tmp_path)
    for name, path in {"STAMP": ".stamp", "PYTHON": "python"}.items():
        monkeypatch.setattr(module, name, tmp_path / path)
    (tmp_path / "python").touch()
    monkeypatch.setattr(module, "prepare", lambda **_: None)
    monkeypatch.setattr(module, "fetched_uv", lambda: True)
    yield module
    for name in ("environment", "package_index", "pinned_wheel", "uv_wheel"):
        sys.modules.pop(name, None)


@pytest.fixture
def done(environment: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the set-up lets uv do: the command, and the lock file or the folder of the project."""
    found: list[str] = []

    def uv(_: str, command: str, *arguments: Any, **__: Any) -> None:
        found.append(f"{command} {Path(arguments[-1]).name}")

    monkeypatch.setattr(environment, "uv", uv)
    return found


def test_the_server_runs_without_what_tests_need_and_they_add_it(environment: ModuleType, done: list[str]) -> None:
    environment.provide(RUN)
    assert done == ["sync requirements.lock", f"install {ROOT.name}"]
    done.clear()
    environment.provide(RUN)
    assert done == []
    environment.provide(ALL)
    assert done == ["install requirements-dev.lock"], "a server that runs keeps what it runs with"
    done.clear()
    environment.provide(ALL)
    environment.provide(RUN)
    assert done == []


def test_all_can_be_installed_at_once(environment: ModuleType, done: list[str]) -> None:
    environment.provide(ALL)
    assert done == ["sync requirements-dev.lock", f"install {ROOT.name}"]


def test_a_change_updates_what_is_there(
    environment: ModuleType, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment.provide(ALL)
    done.clear()
    monkeypatch.setattr(environment, "inputs", lambda locked: f"another {locked.name}")
    environment.provide(RUN)
    assert done == ["sync requirements-dev.lock", f"install {ROOT.name}"], "what the tests need stays"


def test_the_lock_files_agree(environment: ModuleType) -> None:
    """So what tests need can be added to what the server runs with."""
    runtime, dev = (
        dict(line.split()[0].split("==") for line in lock.read_text().splitlines() if line and line[0].isalnum())
        for lock in environment.LOCKS
    )
    assert len(runtime) > 20
    assert runtime.items() <= dev.items()
