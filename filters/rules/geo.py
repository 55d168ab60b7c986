"""Operators for the location of a status.

A repost has no location, and a quote does not have the location of its original.
"""

import re
from abc import abstractmethod
from decimal import Decimal
from math import asin, cos, degrees, radians, sin, sqrt

from filters import index_keys
from filters.event import Event
from filters.index_keys import Box, IndexTerms, box_contains, box_in_range, filter_box_keys, longitude_spans
from filters.rules.condition import Condition, KeyCondition, OperatorValue, format_value
from filters.tokens import fold

MAX_MILES = 25  # upper limit (exclusive) of a radius and of the sides of a box, in miles
KM_PER_MILE = 1.609344
EARTH_RADIUS_KM = 6371.0088  # mean radius of the Earth in kilometres (IUGG)

_NUMBER = r"-?[0-9]{1,3}(?:\.[0-9]{1,15})?"
_BOX = re.compile(rf"\[\s*({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s+({_NUMBER})\s*\]")
_CIRCLE = re.compile(
    rf"\[\s*({_NUMBER})\s+({_NUMBER})\s+([0-9]{{1,3}}(?:\.[0-9]{{1,15}})?)\s*(km|mi)\s*\]", re.IGNORECASE
)


class AreaCondition(Condition):
    """Base class of operators for an area. The area must contain the event's point or, without one, its whole place."""

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

    def index_terms(self) -> IndexTerms:
        return IndexTerms((), [frozenset((key,)) for key in set(filter_box_keys(self.box))])

    def describe(self, event: Event) -> str:
        verb = "is" if self.matches(event) else "is not"
        if event.point is not None:
            return f"the point {event.point[0]:g} {event.point[1]:g} {verb} inside"
        if event.box is not None:
            return f"the whole of the place {verb} inside"
        return "it has no location"

    def _contains_box(self, place: Box) -> bool:
        """Whether the box around the area contains the place, and the area its corners."""
        west, south, east, north = place
        if not (self.box[1] <= south and north <= self.box[3]):
            return False
        around = longitude_spans(self.box[0], self.box[2])
        for first, last in longitude_spans(west, east):
            if not any(left <= first and last <= right for left, right in around):
                return False
        return all(self.contains(lon, lat) for lon in (west, east) for lat in (south, north))


class BoxCondition(AreaCondition):
    """The rule operator ``bounding_box:``: the status was posted in a box on the map."""

    __slots__ = ()

    def contains(self, lon: float, lat: float) -> bool:
        return box_contains(self.box, lon, lat)


class RadiusCondition(AreaCondition):
    """The rule operator ``point_radius:``: the status was posted in a circle on the map."""

    __slots__ = ("_lat", "_lon", "_radius_km")

    def __init__(self, text: str, lon: float, lat: float, radius_km: float) -> None:
        super().__init__(text, _bounding_box(lon, lat, radius_km))
        self._lon = lon
        self._lat = lat
        self._radius_km = radius_km

    def contains(self, lon: float, lat: float) -> bool:
        # The distance between two points on a sphere, by the haversine formula.
        east, north = radians(lon - self._lon) / 2, radians(lat - self._lat) / 2
        chord = sin(north) ** 2 + cos(radians(self._lat)) * cos(radians(lat)) * sin(east) ** 2
        return 2 * EARTH_RADIUS_KM * asin(min(1.0, sqrt(chord))) <= self._radius_km


def parse_place(value: OperatorValue) -> Condition:
    """Return the condition of ``place:``, whose value is a place's full name. Raises RuleError if the name is empty."""
    name = " ".join(fold(value.text).split())
    if not name:
        raise value.refusal("place: has no name", "the name of a place")
    key = index_keys.PLACE + name
    return KeyCondition(f"place:{format_value(name)}", (key,), lambda event: _describe_place(event.place_name, name))


def parse_country(value: OperatorValue) -> Condition:
    """Return the condition of ``place_country:``. Raises RuleError unless the value has two letters (ISO 3166-1)."""
    if len(value.text) != 2 or not (value.text.isascii() and value.text.isalpha()):
        raise value.refusal(f"{value.text[:40]!r} is not a country code", "two letters such as GB")
    code = value.text.lower()
    key = index_keys.COUNTRY + code
    return KeyCondition(f"place_country:{code}", (key,), lambda event: _describe_place(event.place_country, code))


def parse_box(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``bounding_box:``. Raises RuleError if it is invalid or too large."""
    found = _BOX.fullmatch(value.text)
    if found is None:
        raise value.refusal("not a box", "[west south east north] in degrees")
    west, south, east, north = [float(number) for number in found.groups()]
    if not box_in_range(west, south, east, north):
        raise value.refusal("a coordinate of the box is out of range", "longitudes to ±180, latitudes to ±90")
    if south >= north or west == east:
        raise value.refusal("the box is empty", "south below north, west apart from east")
    width = sum(right - left for left, right in longitude_spans(west, east))
    widest = 0.0 if south <= 0 <= north else min(abs(south), abs(north))  # the latitude nearest to the equator
    height_km = radians(north - south) * EARTH_RADIUS_KM
    width_km = radians(width) * EARTH_RADIUS_KM * cos(radians(widest))
    if max(height_km, width_km) >= MAX_MILES * KM_PER_MILE:
        raise value.refusal("the box is too large", f"sides shorter than {MAX_MILES} miles")
    shown = " ".join(map(_format_number, found.groups()))
    return BoxCondition(f"bounding_box:[{shown}]", (west, south, east, north))


def parse_radius(value: OperatorValue) -> Condition:
    """Return the condition of the rule operator ``point_radius:``. Raises RuleError if it is invalid or too large."""
    found = _CIRCLE.fullmatch(value.text)
    if found is None:
        raise value.refusal("not a circle", "[longitude latitude radius] such as [2.35 48.86 10km]")
    lon, lat, size, unit = float(found[1]), float(found[2]), float(found[3]), found[4].lower()
    if abs(lon) > 180 or abs(lat) > 90:
        raise value.refusal("a coordinate of the centre is out of range", "longitudes to ±180, latitudes to ±90")
    radius_km = size if unit == "km" else size * KM_PER_MILE
    if not 0 < radius_km < MAX_MILES * KM_PER_MILE:
        raise value.refusal(f"the radius {found[3]}{unit} is out of range", f"above 0, below {MAX_MILES}mi")
    shown = " ".join(map(_format_number, found.groups()[:3]))
    return RadiusCondition(f"point_radius:[{shown}{unit}]", lon, lat, radius_km)


def _describe_place(found: str | None, wanted: str) -> tuple[str, str]:
    """Return two explanations, for a match and for no match, of a status from the place ``found`` (None: no place)."""
    shown = f"it was posted in {found}"
    return shown, "it has no place" if found is None else f"{shown}, not in {wanted}"


def _format_number(number: str) -> str:
    """Return a decimal number in its shortest form without an exponent."""
    shown = f"{Decimal(number).normalize():f}"
    return "0" if shown == "-0" else shown


def _bounding_box(lon: float, lat: float, radius_km: float) -> Box:
    """Return a box in degrees around a circle of ``radius_km``, a little larger. Near a pole it has all longitudes."""
    height = degrees(radius_km / EARTH_RADIUS_KM) * 1.001
    south, north = max(-90.0, lat - height), min(90.0, lat + height)
    reach = sin(radians(height)) / max(cos(radians(lat)), 1e-12)
    if reach >= 1:
        return -180.0, south, 180.0, north
    width = degrees(asin(reach))
    return _wrap_longitude(lon - width), south, _wrap_longitude(lon + width), north


def _wrap_longitude(lon: float) -> float:
    return lon - 360 if lon > 180 else lon + 360 if lon < -180 else lon
