"""The filter ``firehose``: all public events."""

from collections.abc import Hashable
from typing import ClassVar, Self

from filters.base import Filter, Role
from filters.error import ParameterError
from filters.event import Event


class Firehose(Filter):
    """The filter ``firehose``: all public events. It cannot be combined with filters such as ``track``."""

    __slots__ = ()

    name: ClassVar[str] = "firehose"
    role: ClassVar[Role] = "standalone"
    help: ClassVar[str] = "`true`: all public events; the token needs the scope `firehose`."
    scopes: ClassVar[frozenset[str]] = frozenset({"firehose"})

    @classmethod
    def parse(cls, value: str) -> Self:
        if value != "true":
            raise ParameterError("firehose must be `true` or absent", param="firehose")
        return cls()

    @property
    def canonical_form(self) -> Hashable:
        return True

    def matches(self, event: Event) -> bool:
        return event.is_public
