"""`locations` matches points in boxes, and places that overlap boxes."""

import pytest

from filters.event import Event
from filters.index_keys import Box
from filters.location import Location
from filters.testing import check_match
from tests.filters.texts import post

NEW_YORK = "-74,40,-73,41"
FIJI = "177,-20,-170,-10"


def at(lon: float, lat: float) -> Event:
    return post(point=(lon, lat))


@pytest.mark.parametrize(
    ("boxes", "lon", "lat", "matches"),
    [
        (NEW_YORK, -73.5, 40.5, True),
        (NEW_YORK, -74.0, 40.0, True),
        (NEW_YORK, -73.0, 41.0, True),
        (NEW_YORK, -74.0001, 40.5, False),
        (NEW_YORK, -72.9999, 40.5, False),
        (NEW_YORK, -73.5, 39.9999, False),
        (NEW_YORK, -73.5, 41.0001, False),
        (NEW_YORK, 40.5, -73.5, False),
        (f"-122.75,36.8,-121.75,37.8,{NEW_YORK}", -122.0, 37.0, True),
        (f"-122.75,36.8,-121.75,37.8,{NEW_YORK}", -73.5, 40.5, True),
        ("-180,-90,180,90", 180.0, 90.0, True),
        (FIJI, 179.0, -15.0, True),
        (FIJI, 180.0, -15.0, True),
        (FIJI, -180.0, -15.0, True),
        (FIJI, -170.0, -15.0, True),
        (FIJI, 176.9, -15.0, False),
        (FIJI, -169.9, -15.0, False),
        (FIJI, 0.0, -15.0, False),
    ],
)
def test_points(boxes: str, lon: float, lat: float, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Location.parse(boxes).matches(at(lon, lat)) is matches
    check_match(Location.parse(boxes), at(lon, lat))


@pytest.mark.parametrize(
    ("boxes", "place", "matches"),
    [
        (NEW_YORK, (-73.2, 40.8, -70.0, 42.0), True),
        (NEW_YORK, (-73.0, 41.0, -72.0, 42.0), True),
        (NEW_YORK, (-180.0, -90.0, 180.0, 90.0), True),
        (NEW_YORK, (-73.6, 40.4, -73.5, 40.5), True),
        (NEW_YORK, (-72.9, 40.0, -72.0, 41.0), False),
        (NEW_YORK, (-74.0, 41.1, -73.0, 42.0), False),
        (FIJI, (178.0, -18.0, 179.0, -17.0), True),
        (FIJI, (-175.0, -18.0, -174.0, -17.0), True),
        (FIJI, (175.0, -18.0, -179.0, -17.0), True),
        (FIJI, (-160.0, -18.0, 170.0, -17.0), False),
        ("-175,-20,-174,-10", (179.0, -18.0, -174.5, -17.0), True),
        ("10,-20,20,-10", (179.0, -18.0, -174.5, -17.0), False),
    ],
)
def test_places(boxes: str, place: Box, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Location.parse(boxes).matches(post(box=place)) is matches
    check_match(Location.parse(boxes), post(box=place))


@pytest.mark.parametrize(
    ("boxes", "lon", "lat"),
    [("0.5,0,3,3", 0.2, 1.5), ("0,0.5,3,3", 1.5, 0.2), ("0,0,2.5,3", 2.7, 1.5), ("0,0,3,2.5", 1.5, 2.7)],
)
def test_a_square_partly_in_a_box_is_no_proof(boxes: str, lon: float, lat: float) -> None:
    location = Location.parse(boxes)
    assert not location.matches(at(lon, lat))
    check_match(location, at(lon, lat))


def test_a_point_outranks_a_place() -> None:
    location = Location.parse(NEW_YORK)
    assert not location.matches(post(point=(0.0, 0.0), box=(-74.0, 40.0, -73.0, 41.0)))
    assert not location.matches(post())


def test_equal_numbers_in_any_notation_are_equal_boxes() -> None:
    assert Location.parse(" +1.0, -.5 ,1e1,10.") == Location.parse("1,-0.5,10,10")


@pytest.mark.parametrize("place", [(-180.0, -90.0, 180.0, 90.0), (-120.0, 20.0, -60.0, 60.0), (1.0, 1.0, 2.0, 2.0)])
def test_no_box_has_many_keys(place: Box) -> None:
    assert len(post(box=place).index_keys) <= 400
    assert len(Location([place]).index_terms().keys() or ()) <= 400


def test_reasons_name_each_box_and_point_or_place() -> None:
    asked = Location.parse(f"{NEW_YORK},{FIJI},-73.75,40.25,-70,50")
    inside = {"filter": "locations", "box": "-73.75,40.25,-70,50", "by": "point"}
    assert asked.explain(at(-73.5, 40.5)) == [{"filter": "locations", "box": NEW_YORK, "by": "point"}, inside]
    fiji = {"filter": "locations", "box": FIJI, "by": "place"}
    assert asked.explain(post(box=(179.0, -18.0, -179.0, -17.0))) == [fiji]
    assert asked.explain(at(0.0, 0.0)) == []
