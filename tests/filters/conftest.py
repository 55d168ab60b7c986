"""The registry of the built-in filters, from the entry points of the project."""

import tomllib
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from filters.registry import ENTRY_POINT_GROUP, Registry

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


@cache
def built_in() -> tuple[EntryPoint, ...]:
    """The entry points that ``pyproject.toml`` names."""
    named = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][ENTRY_POINT_GROUP]
    return tuple(EntryPoint(name, value, ENTRY_POINT_GROUP) for name, value in named.items())


@pytest.fixture
def registry() -> Registry:
    return Registry(built_in())
