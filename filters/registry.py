"""The plugin door: which filters there are, by the name of their parameter."""

from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points

from filters.base import Filter

GROUP = "stream_server.filters"
"""The entry-point group in which a distribution names its filters: ``parameter = "module:Class"``."""


class PluginError(Exception):
    """An installed filter cannot be used; the message says which, of which distribution, and why."""


class Registry:
    """Filters by name. What comes from entry points is imported when it is first asked for."""

    def __init__(self, points: Iterable[EntryPoint] = ()) -> None:
        self._loaded: dict[str, type[Filter]] = {}
        self._points: dict[str, EntryPoint] = {}
        for point in points:
            known = self._points.setdefault(point.name, point)
            if known.value != point.value:
                raise PluginError(f"two filters are called {point.name}: {known.value} and {point.value}")

    @classmethod
    def from_entry_points(cls) -> "Registry":
        """All that is installed, built-in or not; raises PluginError where two claim one name."""
        return cls(entry_points(group=GROUP))

    def register(self, filter_class: type[Filter]) -> None:
        """Add a filter that is not installed, for a test or an embedding program."""
        if filter_class.name in self.names():
            raise PluginError(f"there is a filter called {filter_class.name} already")
        self._loaded[filter_class.name] = filter_class

    def names(self) -> list[str]:
        """The names of all filters, in alphabetical order."""
        return sorted({*self._points, *self._loaded})

    def get(self, name: str) -> type[Filter]:
        """The filter called ``name``; KeyError if there is none, PluginError if it cannot be used."""
        if name not in self._loaded:
            self._loaded[name] = _load(self._points[name])
        return self._loaded[name]

    def all(self) -> list[type[Filter]]:
        """Every filter, in the order of :meth:`names`; imports them all."""
        return [self.get(name) for name in self.names()]


@lru_cache(maxsize=1)
def installed() -> Registry:
    """All that is installed, looked for once a process; raises PluginError."""
    return Registry.from_entry_points()


def _load(point: EntryPoint) -> type[Filter]:
    origin = f"filter {point.name} ({point.value}, of {point.dist.name if point.dist else 'no distribution'})"
    try:
        loaded = point.load()
    except Exception as error:
        raise PluginError(f"{origin} cannot be imported: {error!r}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Filter)):
        raise PluginError(f"{origin} is no class derived from filters.base.Filter")
    if getattr(loaded, "name", None) != point.name:
        raise PluginError(f"{origin} calls itself {getattr(loaded, 'name', None)}")
    return loaded
