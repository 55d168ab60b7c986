"""`locations` with boxes of any size and place, compared with counting whole degrees."""

import pytest
from hypothesis import strategies as st

from filters.location import Location
from filters.testing import check_match
from tests.filters.texts import post
from tests.property.laws import Holds

pytestmark = pytest.mark.timeout(900)  # for the long form

LONGITUDES = st.one_of(st.integers(-180, 180), st.sampled_from([-180, -179, -1, 0, 1, 179, 180]))
LATITUDES = st.one_of(st.integers(-90, 90), st.sampled_from([-90, -89, -1, 0, 1, 89, 90]))
BOXES = st.tuples(LONGITUDES, LATITUDES, LONGITUDES, LATITUDES).filter(lambda b: b[0] != b[2] and b[1] < b[3])
POINTS = st.tuples(LONGITUDES, LATITUDES)

WholeBox = tuple[int, int, int, int]


def _columns(box: WholeBox) -> set[int]:
    """The meridians of a box, from west to east."""
    met, at = {box[0]}, box[0]
    while at != box[2]:
        at = -180 if at == 180 else at + 1
        met.add(at)
    return met


def _rows(box: WholeBox) -> set[int]:
    return set(range(box[1], box[3] + 1))


def _asked(boxes: list[WholeBox]) -> Location:
    return Location.parse(",".join(str(number) for box in boxes for number in box))


def _placed(boxes: list[WholeBox], place: WholeBox) -> None:
    # Closed boxes with whole degrees as edges share a point if, and only if, they share a point of whole degrees.
    common = any(_columns(box) & _columns(place) and _rows(box) & _rows(place) for box in boxes)
    event = post(box=tuple(map(float, place)))
    assert _asked(boxes).matches(event) is common
    check_match(_asked(boxes), event)
    assert bool(_asked(boxes).explain(event)) is common


def test_a_place_matches_where_it_has_a_point_in_common_with_a_box(holds: Holds) -> None:
    holds(_placed, st.lists(BOXES, min_size=1, max_size=3), BOXES, cases=250)


def _pointed(boxes: list[WholeBox], point: tuple[int, int], place: WholeBox) -> None:
    inside = any(point[0] in _columns(box) and point[1] in _rows(box) for box in boxes)
    event = post(point=tuple(map(float, point)), box=tuple(map(float, place)))
    assert _asked(boxes).matches(event) is inside
    check_match(_asked(boxes), event)


def test_a_point_decides_beside_any_place(holds: Holds) -> None:
    holds(_pointed, st.lists(BOXES, min_size=1, max_size=3), POINTS, BOXES, cases=250)
