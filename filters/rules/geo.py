"""Operators for the location of a status.

A repost has no location, and a quote does not have the location of its original.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator
from decimal import Decimal
from math import asin, cos, degrees, radians, sin, sqrt

from filters import index_keys
from filters.event import Event
from filters.grid import Box, box_contains, box_in_range, filter_box_keys, longitude_spans
from filters.index_keys import Key
from filters.rules.attributes import KeyCondition
from filters.rules.condition import Condition, OperatorValue, format_value
from filters.rules.error import RuleError
from filters.tokens import fold

MAX_MILES = 25
"""Upper limit (exclusive) of a radius and of the sides of a box, in miles."""

KM_PER_MILE = 1.609344

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth in kilometres (IUGG)."""

_NUMBER = r"-?[0-9]{1,3}(?:\.[0-9]{1,15})?"
_BOX = re.compile(rf"\[\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*\]")
_RADIUS = r"[0-9]{1,3}(?:\.[0-9]{1,15})?"
_CIRCLE = re.compile(rf"\[\s*({_NUMBER})\s+({_NUMBER})\s+({_RADIUS})\s*(km|mi)\s*\]", re.IGNORECASE)
_COUNTRY = re.compile(r"[A-Za-z]{2}")


class PlaceCondition(KeyCondition):
    """The operator ``place:``. The full name of the place."""

    __slots__ = ()

    def __init__(self, name: str) -> None:
        super().__init__(f"place:{format_value(name)}", index_keys.place_key(name), name)

    def describe(self, event: Event) -> str:
        return _describe_place(event.place_name, self.noun, matched=self.matches(event))


class CountryCondition(KeyCondition):
    """The operator ``place_country:``. The country of the place, by ISO 3166-1 alpha-2 code."""

    __slots__ = ()

    def __init__(self, code: str) -> None:
        super().__init__(f"place_country:{code}", index_keys.country_key(code), code)

    def describe(self, event: Event) -> str:
        return _describe_place(event.place_country, self.noun, matched=self.matches(event))


class AreaCondition(Condition):
    """The base class of conditions on an area of the map.

    If the status has a point, the point alone decides. Otherwise its place must lie wholly inside the area.
    """

    __slots__ = ("box",)

    def __init__(self, text: str, box: Box) -> None:
        super().__init__(text)
        self.box = box
        """A box around the whole area."""

    @abstractmethod
    def contains(self, lon: float, lat: float) -> bool:
        """Whether a point is in the area, edges included."""

    def matches(self, event: Event) -> bool:
        if event.point is not None:
            return self.contains(*event.point)
        return event.box is not None and self._contains_box(event.box)

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset(filter_box_keys(self.box))

    def describe(self, event: Event) -> str:
        verb = "is" if self.matches(event) else "is not"
        if event.point is not None:
            return f"the point {event.point[0]:g} {event.point[1]:g} {verb} inside"
        if event.box is not None:
            return f"the whole of the place {verb} inside"
        return "it has no location"

    def _contains_box(self, place: Box) -> bool:
        west, south, east, north = place
        corners = ((lon, lat) for lon in (west, east) for lat in (south, north))
        return _box_within(place, self.box) and all(self.contains(lon, lat) for lon, lat in corners)


class BoxCondition(AreaCondition):
    """The operator ``bounding_box:``."""

    __slots__ = ()

    def contains(self, lon: float, lat: float) -> bool:
        return box_contains(self.box, lon, lat)


class RadiusCondition(AreaCondition):
    """The operator ``point_radius:``."""

    __slots__ = ("_lat", "_lon", "_radius_km")

    def __init__(self, text: str, lon: float, lat: float, radius_km: float) -> None:
        super().__init__(text, _bounding_box(lon, lat, radius_km))
        self._lon = lon
        self._lat = lat
        self._radius_km = radius_km

    def contains(self, lon: float, lat: float) -> bool:
        return _distance_km(self._lon, self._lat, lon, lat) <= self._radius_km


def parse_place(value: OperatorValue) -> Condition:
    """Parse the value of ``place:``. Raises RuleError."""
    name = " ".join(fold(value.text).split())
    if not name:
        raise RuleError("place: has no name", column=value.column, expected="the name of a place")
    return PlaceCondition(name)


def parse_country(value: OperatorValue) -> Condition:
    """Parse the value of ``place_country:``. Raises RuleError."""
    if not _COUNTRY.fullmatch(value.text):
        raise RuleError(
            f"{value.text[:40]!r} is not a country code", column=value.column, expected="two letters such as GB"
        )
    return CountryCondition(value.text.lower())


def parse_box(value: OperatorValue) -> Condition:
    """Parse the value of ``bounding_box:``. Raises RuleError."""
    found = _BOX.fullmatch(value.text)
    if found is None:
        raise RuleError("not a box", column=value.column, expected="[west south east north] in degrees")
    west, south, east, north = box = [float(number) for number in found.groups()]
    if not box_in_range(west, south, east, north):
        raise RuleError(
            "a coordinate of the box is out of range",
            column=value.column,
            expected="longitudes to ±180, latitudes to ±90",
        )
    if south >= north or west == east:
        raise RuleError("the box is empty", column=value.column, expected="south below north, west apart from east")
    if max(_sides_km(*box)) >= MAX_MILES * KM_PER_MILE:
        raise RuleError("the box is too large", column=value.column, expected=f"sides shorter than {MAX_MILES} miles")
    shown = " ".join(map(_format_number, found.groups()))
    return BoxCondition(f"bounding_box:[{shown}]", (west, south, east, north))


def parse_radius(value: OperatorValue) -> Condition:
    """Parse the value of ``point_radius:``. Raises RuleError."""
    found = _CIRCLE.fullmatch(value.text)
    if found is None:
        raise RuleError(
            "not a circle", column=value.column, expected="[longitude latitude radius] such as [2.35 48.86 10km]"
        )
    lon, lat, size, unit = float(found[1]), float(found[2]), float(found[3]), found[4].lower()
    if abs(lon) > 180 or abs(lat) > 90:
        raise RuleError(
            "a coordinate of the centre is out of range",
            column=value.column,
            expected="longitudes to ±180, latitudes to ±90",
        )
    radius_km = size if unit == "km" else size * KM_PER_MILE
    if not 0 < radius_km < MAX_MILES * KM_PER_MILE:
        raise RuleError(
            f"the radius {found[3]}{unit} is out of range",
            column=value.column,
            expected=f"above 0, below {MAX_MILES}mi",
        )
    return RadiusCondition(
        f"point_radius:[{_format_number(found[1])} {_format_number(found[2])} {_format_number(found[3])}{unit}]",
        lon,
        lat,
        radius_km,
    )


def _describe_place(found: str | None, wanted: str, *, matched: bool) -> str:
    if found is None:
        return "it has no place"
    return f"it was posted in {found}" + ("" if matched else f", not in {wanted}")


def _format_number(number: str) -> str:
    """Return the shortest form of a number without an exponent."""
    shown = f"{Decimal(number).normalize():f}"
    return "0" if shown == "-0" else shown


def _distance_km(lon: float, lat: float, other_lon: float, other_lat: float) -> float:
    """Return the distance in kilometres between two points on a sphere (haversine formula)."""
    east, north = radians(other_lon - lon) / 2, radians(other_lat - lat) / 2
    chord = sin(north) ** 2 + cos(radians(lat)) * cos(radians(other_lat)) * sin(east) ** 2
    return 2 * EARTH_RADIUS_KM * asin(min(1.0, sqrt(chord)))


def _sides_km(west: float, south: float, east: float, north: float) -> Iterator[float]:
    """Return the height and the width of a box in kilometres.

    The width is measured where the box is widest: at the edge nearest to the equator, or at the equator if the box
    crosses it.
    """
    width = sum(right - left for left, right in longitude_spans(west, east))
    yield radians(north - south) * EARTH_RADIUS_KM
    widest = 0.0 if south <= 0 <= north else min(abs(south), abs(north))
    yield radians(width) * EARTH_RADIUS_KM * cos(radians(widest))


def _bounding_box(lon: float, lat: float, radius_km: float) -> Box:
    """Return a box around a circle, slightly larger than necessary. Near a pole it covers all longitudes."""
    height = degrees(radius_km / EARTH_RADIUS_KM) * 1.001
    south, north = max(-90.0, lat - height), min(90.0, lat + height)
    reach = sin(radians(height)) / max(cos(radians(lat)), 1e-12)
    if reach >= 1:
        return -180.0, south, 180.0, north
    width = degrees(asin(reach))
    return _wrap_longitude(lon - width), south, _wrap_longitude(lon + width), north


def _wrap_longitude(lon: float) -> float:
    return lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon


def _box_within(inner: Box, outer: Box) -> bool:
    """Whether the box ``inner`` lies wholly in the box ``outer``."""
    if not (outer[1] <= inner[1] and inner[3] <= outer[3]):
        return False
    around = longitude_spans(outer[0], outer[2])
    return all(
        any(left <= west and east <= right for left, right in around)
        for west, east in longitude_spans(inner[0], inner[2])
    )
