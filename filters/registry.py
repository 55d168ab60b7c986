"""The plugin door: which filters there are, by the name of their parameter."""

from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import get_args

from filters.base import Filter, Role

ENTRY_POINT_GROUP = "stream_server.filters"
"""The entry-point group in which a distribution names its filters: ``parameter = "module:Class"``."""


ROLES = get_args(Role)

RESERVED_OPERATORS = frozenset(
    {
        *("from", "to", "retweets_of", "reposts_of", "retweets_of_user", "url", "conversation_id", "bio", "place"),
        *("place_country", "point_radius", "bounding_box", "is", "has", "lang", "followers_count", "following_count"),
        *("tweets_count", "posts_count"),
    }
)
"""Operators of the rule language, which would be read in the place of a filter of that name."""

RESERVED_PARAMETERS = frozenset({"since", "explain", "cursor", "wait", "limit", "ticket", "token", "access_token"})
"""Parameters of streams that are no filters, and are taken away before those are read."""

RESERVED_NAMES = RESERVED_OPERATORS | RESERVED_PARAMETERS


class PluginError(Exception):
    """An installed filter cannot be used; the message says which, of which distribution, and why."""


class Registry:
    """Filters by name. What comes from entry points is imported when it is first asked for."""

    def __init__(self, points: Iterable[EntryPoint] = ()) -> None:
        self._loaded: dict[str, type[Filter]] = {}
        self._points: dict[str, EntryPoint] = {}
        for point in points:
            _check_name(point.name, _describe_origin(point))
            known = self._points.setdefault(point.name, point)
            if known.value != point.value:
                raise PluginError(f"two filters are called {point.name}: {known.value} and {point.value}")

    @classmethod
    def from_entry_points(cls) -> "Registry":
        """All that is installed, built-in or not; raises PluginError where two claim one name, or one a taken one."""
        return cls(entry_points(group=ENTRY_POINT_GROUP))

    def register(self, filter_class: type[Filter]) -> None:
        """Add a filter that is not installed, for a test or an embedding program."""
        if filter_class.name in self.names():
            raise PluginError(f"there is a filter called {filter_class.name} already")
        origin = f"filter {filter_class.name}"
        _check_name(filter_class.name, origin)
        _check_role(filter_class, origin)
        self._loaded[filter_class.name] = filter_class

    def names(self) -> list[str]:
        """The names of all filters, in alphabetical order."""
        return sorted({*self._points, *self._loaded})

    def get(self, name: str) -> type[Filter]:
        """The filter called ``name``; KeyError if there is none, PluginError if it cannot be used."""
        if name not in self._loaded:
            self._loaded[name] = _load_entry_point(self._points[name])
        return self._loaded[name]

    def all(self) -> list[type[Filter]]:
        """Every filter, in the order of :meth:`names`; imports them all."""
        return [self.get(name) for name in self.names()]

    def summary(self) -> str:
        """Return the names of all filters in one line. The name of a plug-in's filter is followed by its package."""
        return ", ".join(name + _describe_package(self._points.get(name)) for name in self.names())


@lru_cache(maxsize=1)
def installed_registry() -> Registry:
    """All that is installed, looked for once a process; raises PluginError."""
    return Registry.from_entry_points()


def _load_entry_point(point: EntryPoint) -> type[Filter]:
    origin = _describe_origin(point)
    try:
        loaded = point.load()
    except Exception as error:
        raise PluginError(f"{origin} cannot be imported: {error!r}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Filter)):
        raise PluginError(f"{origin} is no class derived from filters.base.Filter")
    if getattr(loaded, "name", None) != point.name:
        raise PluginError(f"{origin} calls itself {getattr(loaded, 'name', None)}")
    _check_role(loaded, origin)
    return loaded


def _describe_origin(point: EntryPoint) -> str:
    return f"filter {point.name} ({point.value}, of {point.dist.name if point.dist else 'no distribution'})"


def _describe_package(point: EntryPoint | None) -> str:
    """Return the package of a plug-in's filter in parentheses; empty for the filters of this repository."""
    if point is None or point.dist is None or point.value.startswith("filters."):
        return ""
    return f" ({point.dist.name})"


def _check_name(name: str, origin: str) -> None:
    if name in RESERVED_NAMES:
        taken = "an operator of rules" if name in RESERVED_OPERATORS else "a parameter of streams"
        raise PluginError(f"{origin} would never be reached: {name} is {taken} already")


def _check_role(filter_class: type[Filter], origin: str) -> None:
    role = getattr(filter_class, "role", None)
    if role not in ROLES:
        raise PluginError(f"{origin} has the role {role!r}, not one of {', '.join(ROLES)}")
