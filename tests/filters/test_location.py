"""``locations`` matches points in boxes, and places that overlap them."""

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.grid import Box
from filters.location import Location
from filters.testing import check_match
from tests.filters.texts import post

NEW_YORK = "-74,40,-73,41"
FIJI = "177,-20,-170,-10"


def at(lon: float, lat: float) -> Event:
    """A post at a point."""
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
    """A point on the edge is inside; longitude comes first; a box may cross the date line."""
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
    """Any overlap counts, a touching edge too, and either box may cross the date line."""
    assert Location.parse(boxes).matches(post(box=place)) is matches
    check_match(Location.parse(boxes), post(box=place))


@pytest.mark.parametrize(
    ("boxes", "lon", "lat"),
    [("0.5,0,3,3", 0.2, 1.5), ("0,0.5,3,3", 1.5, 0.2), ("0,0,2.5,3", 2.7, 1.5), ("0,0,3,2.5", 1.5, 2.7)],
)
def test_a_square_that_is_half_in_a_box_proves_nothing(boxes: str, lon: float, lat: float) -> None:
    """Beside the west, the south, the east and the north of a box: the index has to compare its corners there."""
    location = Location.parse(boxes)
    assert not location.matches(at(lon, lat))
    check_match(location, at(lon, lat))


def test_a_point_decides_alone() -> None:
    """A place is not looked at where there is a point, and what has neither is nowhere."""
    location = Location.parse(NEW_YORK)
    assert not location.matches(post(point=(0.0, 0.0), box=(-74.0, 40.0, -73.0, 41.0)))
    assert not location.matches(post())


@pytest.mark.parametrize(
    "value",
    [
        *("", "1", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1,2,3,", "1_0,2,30,4", "\u0661,\u0662,\u0663,\u0664"),
        *("nan,0,1,1", "0,nan,1,1", "0,0,inf,1", "-inf,0,1,1", "0,0,1,1e999"),
        *("-180.1,0,1,1", "0,0,180.1,1", "0,-90.1,1,1", "0,0,1,90.1"),
        *("0,1,1,0", "0,1,1,1", "5,0,5,1", "0,0,1,1,0,1,1,0"),
    ],
)
def test_boxes_that_are_none(value: str) -> None:
    """Not four finite numbers a box, off the map, upside down or empty: refused."""
    with pytest.raises(ParameterError) as refusal:
        Location.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "locations")


def test_25_boxes_are_taken_and_26_are_too_many() -> None:
    """The cap counts boxes."""
    assert Location.parse(",".join([NEW_YORK] * 25)).boxes == {(-74.0, 40.0, -73.0, 41.0)}
    with pytest.raises(ParameterError) as refusal:
        Location.parse(",".join([NEW_YORK] * 26))
    assert refusal.value.code == "too_many"


def test_numbers_may_be_written_as_clients_write_them() -> None:
    """Signs, blanks, exponents and missing zeros are all the same box."""
    assert Location.parse(" +1.0, -.5 ,1e1,10.") == Location.parse("1,-0.5,10,10")


@pytest.mark.parametrize("place", [(-180.0, -90.0, 180.0, 90.0), (-120.0, 20.0, -60.0, 60.0), (1.0, 1.0, 2.0, 2.0)])
def test_no_box_has_many_keys(place: Box) -> None:
    """Neither a filter nor an event can make the other pay for the size of its box."""
    assert len(post(box=place).index_keys) <= 400
    assert len(Location([place]).candidate_keys()) <= 400


def test_it_says_which_boxes_and_by_what() -> None:
    """Each box that matched, as it was asked for, by the point if there is one."""
    asked = Location.parse(f"{NEW_YORK},{FIJI},-73.75,40.25,-70,50")
    inside = {"filter": "locations", "box": "-73.75,40.25,-70,50", "by": "point"}
    assert asked.explain(at(-73.5, 40.5)) == [{"filter": "locations", "box": NEW_YORK, "by": "point"}, inside]
    fiji = {"filter": "locations", "box": FIJI, "by": "place"}
    assert asked.explain(post(box=(179.0, -18.0, -179.0, -17.0))) == [fiji]
    assert asked.explain(at(0.0, 0.0)) == []
