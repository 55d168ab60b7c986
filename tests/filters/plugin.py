"""A filter as a plug-in could add it, for tests that change one of its methods."""

from collections.abc import Hashable
from importlib.metadata import EntryPoint
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.registry import ENTRY_POINT_GROUP, Registry


class Plugin(Filter):
    """A combinable filter without keys. All its instances are equal."""

    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Only for tests."

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls()

    @property
    def canonical_form(self) -> Hashable:
        return True


def install(registry: Registry, filter_class: type[Filter]) -> None:
    """Put a class of a test into a registry, as if it were installed and imported."""
    name = filter_class.name
    registry._points[name] = EntryPoint(name, f"tests:{filter_class.__name__}", ENTRY_POINT_GROUP)
    registry._loaded[name] = filter_class
