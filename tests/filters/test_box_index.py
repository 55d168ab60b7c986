"""The box index finds what the `locations` filters match, and keeps nothing of a removed item."""

import random
from collections.abc import Iterator

import pytest

from filters.event import Event
from filters.index_keys import Box, event_box_keys
from filters.inverted_lists import MAX_TUPLE_ITEMS, BoxIndex
from filters.location import Location
from filters.narrowing import Language
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from tests.filters.texts import post


def found(boxes: BoxIndex[int], event: Event) -> set[int]:
    items: set[int] = set()
    boxes.find(event, items)
    return items


def drawn(source: random.Random) -> Box:
    """A box of any size, often with edges on whole degrees, often over the date line."""
    size = source.choice([0.3, 3, 15, 150])
    west, south = source.uniform(-180, 180), source.uniform(-90, 89)
    east, north = west + source.uniform(0.01, size), min(90.0, south + source.uniform(0.01, size))
    if source.random() < 0.5:
        west, east, south, north = float(round(west)), round(west) + 2.0, float(round(south)), round(south) + 1.0
    return west, south, east - 360 if east > 180 else east, min(north, 90.0)


def happened(source: random.Random, boxes: list[Box]) -> Event:
    """An event at a point or in a place, often at a corner of one of the boxes."""
    west, south, east, north = source.choice(boxes)
    point = source.choice([
        (west, south), (east, north), (west, north), (source.uniform(-180, 180), source.uniform(-90, 90)),
        ((west + east) / 2, (south + north) / 2),
    ])  # fmt: skip
    return post(point=point) if source.random() < 0.7 else post(box=drawn(source))


@pytest.mark.parametrize("seed", range(8))
def test_the_index_finds_what_the_filters_match(seed: int) -> None:
    """Items come and go. A removed one is found by no box, and leaves nothing behind."""
    source = random.Random(seed)
    boxes = {item: [drawn(source) for _ in range(source.choice([1, 1, 3]))] for item in range(100)}
    every = [box for some in boxes.values() for box in some]
    index: SubscriptionIndex[int] = SubscriptionIndex()
    here: dict[int, Location] = {}
    hits = 0
    for item in [*boxes, *source.choices(range(100), k=100)]:
        if item in here:
            index.remove(item)
            del here[item]
        else:
            here[item] = Location(boxes[item])
            index.add(item, Subscription([here[item]]))
        for event in (happened(source, every) for _ in range(10)):
            expected = {one for one, location in here.items() if location.matches(event)}
            assert set(index.match(event)) == expected
            hits += len(expected)
    assert hits > 0
    (group,) = index._groups.values()
    for item in here:
        index.remove(item)
    assert (group.postings._boxes._covered_squares, group.postings._boxes.crossed_squares) == ({}, {})


def test_a_box_without_a_whole_square_is_found() -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("small", Subscription([Location.parse("13.1,52.3,13.8,52.7")]))
    assert index.match(post(point=(13.4, 52.5))) == ["small"]
    assert index.match(post(point=(13.9, 52.5))) == []


def test_many_items_with_one_box() -> None:
    box, inside = (10.5, 10.5, 13.5, 13.5), [post(point=(12.0, 12.0)), post(point=(10.6, 13.5))]
    held: BoxIndex[int] = BoxIndex()
    for item in range(MAX_TUPLE_ITEMS * 3):
        held.add(item, [box, box])
    for event in inside:
        assert found(held, event) == set(range(MAX_TUPLE_ITEMS * 3))
    for item in range(1, MAX_TUPLE_ITEMS * 3):
        held.remove(item, [box])
    for event in inside:
        assert found(held, event) == {0}
    held.remove(1, [box])  # which is not there
    assert held.crossed_squares


def test_the_largest_negative_number_is_below_zero() -> None:
    """A division would round it up to zero."""
    world = [(0.0, -40.0, 78.0, 30.0), (-78.0, 0.0, 78.0, 30.0)]
    held: BoxIndex[int] = BoxIndex()
    for item, box in enumerate(world):
        held.add(item, [box])
    assert found(held, post(point=(-5e-324, -23.0))) == set()
    assert found(held, post(point=(5.0, -5e-324))) == {0}
    assert found(held, post(box=(-60.0, -60.0, -5e-324, -5e-324))) == set()
    assert found(held, post(point=(0.0, 0.0))) == {0, 1}


def test_squares_of_an_event_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Box] = []

    def counted(box: Box) -> Iterator[str]:
        made.append(box)
        return event_box_keys(box)

    monkeypatch.setattr("filters.event.event_box_keys", counted)
    country = (5.9, 47.3, 15.0, 55.1)
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for item, lang in enumerate(("en", "de", "fr")):
        index.add(item, Subscription([Location([country])], [Language([lang, "und"])]))
    event = post(box=country)
    assert set(index.match(event)) == {0, 1, 2}
    assert event.index_keys > set(event_box_keys(country))
    assert made == [country]
