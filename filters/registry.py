"""The registry of filters, by the name of their parameter. Plug-ins enter here."""

from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from filters.base import ROLES, Filter

ENTRY_POINT_GROUP = "stream_server.filters"
"""Entry-point group in which a distribution names its filters: ``parameter = "module:Class"``."""

RESERVED_OPERATORS = frozenset({
    "from", "to", "retweets_of", "reposts_of", "retweets_of_user", "url", "conversation_id", "bio", "place", "is",
    "has", "place_country", "point_radius", "bounding_box", "lang", "followers_count", "following_count",
    "tweets_count", "posts_count",
})  # fmt: skip
"""Operators of the rule language. A filter with such a name could not be used in rules."""
RESERVED_PARAMETERS = frozenset({
    "since", "explain", "cursor", "wait", "limit", "ticket", "token", "access_token", "subscription", "worker",
    "connection", "summary", "before",
})  # fmt: skip
"""Stream parameters that are not filters. The server removes them before it parses the filters."""
RESERVED_NAMES = RESERVED_OPERATORS | RESERVED_PARAMETERS


class PluginError(Exception):
    """An installed filter cannot be used. The message names the filter, its distribution and the reason."""


class Registry:
    """The known filter classes by name. The registry imports an installed filter when the filter is first needed."""

    def __init__(self, points: Iterable[EntryPoint] = ()) -> None:
        self._loaded: dict[str, type[Filter]] = {}
        self._points: dict[str, EntryPoint] = {}
        for point in points:
            if point.name in RESERVED_NAMES:
                taken = "an operator of rules" if point.name in RESERVED_OPERATORS else "a parameter of streams"
                raise PluginError(f"{_describe(point)} cannot be used: {point.name} is the name of {taken}")
            known = self._points.setdefault(point.name, point)
            if known.value != point.value:
                raise PluginError(f"two installed filters are named {point.name}: {known.value} and {point.value}")

    @classmethod
    def from_entry_points(cls) -> "Registry":
        """Return a new registry of all installed filters. Raises PluginError for a duplicate or reserved name."""
        return cls(entry_points(group=ENTRY_POINT_GROUP))

    def names(self) -> list[str]:
        """Return the names of all filters in alphabetical order."""
        return sorted(self._points)

    def get(self, name: str) -> type[Filter]:
        """Return the filter class with this name. Raises KeyError if there is none, PluginError if it is invalid."""
        if name in self._loaded:
            return self._loaded[name]
        point = self._points[name]
        try:
            loaded = point.load()
        except Exception as error:
            raise PluginError(f"{_describe(point)} cannot be imported: {error!r}") from error
        if not (isinstance(loaded, type) and issubclass(loaded, Filter)):
            raise PluginError(f"{_describe(point)} is not a class derived from filters.base.Filter")
        own_name, role = getattr(loaded, "name", None), getattr(loaded, "role", None)
        if own_name != name:
            raise PluginError(f"{_describe(point)} has the name {own_name}")
        if role not in ROLES:
            raise PluginError(f"{_describe(point)} has the role {role!r}; expected one of {', '.join(ROLES)}")
        self._loaded[name] = loaded
        return loaded

    def all(self) -> list[type[Filter]]:
        """Return all filter classes, ordered by name. Raises PluginError if one cannot be imported or is invalid."""
        return [self.get(name) for name in self.names()]

    def summary(self) -> str:
        """Return the names of all filters in one line. The name of a plug-in's filter is followed by its package."""
        points = [self._points[name] for name in self.names()]
        plugins = {
            point.name: point.dist.name for point in points if point.dist and not point.value.startswith("filters.")
        }
        return ", ".join(f"{name} ({plugins[name]})" if name in plugins else name for name in self.names())


@lru_cache(maxsize=1)
def installed_registry() -> Registry:
    """Return the shared registry of all installed filters. Raises PluginError for a duplicate or reserved name."""
    return Registry.from_entry_points()


def _describe(point: EntryPoint) -> str:
    """Return the name of an installed filter with its package. Only errors need it: finding the package is slow."""
    return f"filter {point.name} ({point.value}, of {point.dist.name if point.dist else 'no distribution'})"
