"""A filter as a plug-in could add it, for tests that change one of its methods."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role


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
