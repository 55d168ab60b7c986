"""The index finds what matches, and forgets what left."""

from collections.abc import Hashable
from typing import ClassVar, Self

import pytest

from filters.base import Filter, Role
from filters.combine import Subscription
from filters.event import Event
from filters.firehose import Firehose
from filters.follow import Follow
from filters.index import ROOMS, Index
from filters.key import person
from filters.kind import Kinds
from filters.language import Language
from filters.location import Location
from filters.sample import Sample
from filters.track import Track
from filters.trie import Trie
from tests.filters.texts import post

POSTS = Kinds.parse("post,delete")


class Broken(Filter):
    """A filter that fails on some texts."""

    name: ClassVar[str] = "broken"
    role: ClassVar[Role] = "any"
    help: ClassVar[str] = "Fails."

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls()

    @property
    def key(self) -> Hashable:
        return True

    def matches(self, event: Event) -> bool:
        if "bang" in event.text:
            raise RuntimeError("bang")
        return True


def filled() -> Index[str]:
    """An index with one of every kind."""
    index: Index[str] = Index()
    index.add("tea", Subscription([Track.parse("tea,green leaf")], [POSTS]))
    index.add("seven", Subscription([Follow.parse("7")], [POSTS]))
    index.add("york", Subscription([Location.parse("-74,40,-73,41"), Track.parse("tea")], [POSTS]))
    index.add("all", Subscription([Firehose()], [POSTS]))
    index.add("likes", Subscription([Firehose()], [Kinds.parse("like")]))
    index.add("whole", Subscription([Sample.parse("100")], [POSTS, Language.parse("de")]))
    return index


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (post("tea"), {"tea", "york", "all"}),
        (post("a leaf, green"), {"tea", "all"}),
        (post("a leaf"), {"all"}),
        (post("", people=frozenset({"7", "8"})), {"seven", "all"}),
        (post("tea", point=(-73.5, 40.5), lang="de"), {"tea", "york", "all", "whole"}),
        (post("", box=(-73.1, 40.9, -50.0, 60.0)), {"york", "all"}),
        (Event("like", text="tea", people=frozenset({"7"})), {"likes"}),
        (Event("protect", public=False, sampled=False), set()),
    ],
)
def test_each_item_is_found_once(event: Event, expected: set[str]) -> None:
    """What several filters or keys find comes once."""
    found = filled().match(event)
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_items_are_counted() -> None:
    """How many there are, and how many are asked about everything."""
    index = filled()
    assert (len(index), index.scanned) == (6, 3)
    assert "tea" in index
    assert "milk" not in index


def test_an_item_is_in_here_once() -> None:
    """Adding it again would leave half of it behind at its removal."""
    index = filled()
    with pytest.raises(ValueError, match="'tea' is in the index already"):
        index.add("tea", Subscription([Firehose()]))
    with pytest.raises(KeyError):
        index.remove("milk")


def test_what_leaves_leaves_no_trace() -> None:
    """After everyone left nothing is found, and nothing is kept: churn must not fill the memory."""
    index = filled()
    for item in ("tea", "seven", "york", "all", "likes", "whole"):
        index.remove(item)
        assert item not in index
    assert index.match(post("tea", people=frozenset({"7"}), point=(-73.5, 40.5))) == []
    assert len(index) == index.scanned == 0
    assert not index._rooms
    assert not index._room_of


def test_an_empty_posting_list_is_taken_away() -> None:
    """Of two who share words the rest of one stays, and only that."""
    index: Index[str] = Index()
    index.add("one", Subscription([Track.parse("a b,c,d,e f"), Location.parse("0,0,1,1"), Follow.parse("1,@me")]))
    index.add("two", Subscription([Track.parse("a b,c")]))
    index.remove("one")
    (room,) = index._rooms.values()
    assert (room.postings._open, room.postings._open_keys) == ({}, {})
    assert _leaves(room.postings._clauses) == {("b", "a"): {"two"}, ("c",): {"two"}}


def _leaves(node: Trie[str], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], set[str]]:
    """What a trie holds; an empty branch shows as an empty set."""
    held = {} if node.branches and not node.items else {path: node.items or set()}
    for key, branch in (node.branches or {}).items():
        held |= _leaves(branch, (*path, key))
    return held


def test_a_living_set_is_followed_by_keys() -> None:
    """The owner of an @me adds a key for whom it follows by now, and removes that of whom it does not."""
    following = {"8"}
    index: Index[str] = Index()
    index.add("me", Subscription([Follow.parse("7,@me").with_following(following)], [POSTS]))
    seven, eight, nine = (post(people=frozenset({name})) for name in "789")
    following.add("9")
    index.add_key("me", person("9"))
    assert [index.match(event) for event in (seven, eight, nine)] == [["me"]] * 3
    following.clear()
    for name in "789":
        index.remove_key("me", person(name))
    assert [index.match(event) for event in (seven, eight, nine)] == [["me"], [], []]
    index.remove("me")
    assert index.match(seven) == []


def test_a_filter_that_raises_harms_itself_only() -> None:
    """Its item does not match that event, the others do, and the failure is counted and kept."""
    index = filled()
    index.add("broken", Subscription([Broken()], [POSTS]))
    assert "broken" in index.match(post("tea"))
    assert set(index.match(post("tea bang"))) == {"tea", "york", "all"}
    assert (index.failures, repr(index.last_failure)) == (1, "RuntimeError('bang')")


def test_what_narrows_may_raise_too() -> None:
    """The items that narrow by it do not match, the others do."""
    index = filled()
    index.add("broken", Subscription([Firehose()], [Broken()]))
    assert set(index.match(post("tea bang"))) == {"tea", "york", "all"}
    assert index.failures == 1


def test_many_narrowings_are_matched_like_few() -> None:
    """Beyond the rooms that are looked at once an event, items are asked one by one, with the same result."""
    index: Index[int] = Index()
    for n in range(ROOMS * 2):
        index.add(n, Subscription([Track.parse("tea")], [Language.parse(f"x{chr(97 + n // 26)}{chr(97 + n % 26)}")]))
    assert index.match(post("tea", lang="xab")) == [1]
    assert index.match(post("tea", lang="xex")) == [ROOMS * 2 - 1]
    assert index.match(post("milk", lang="xex")) == []
    for n in range(ROOMS * 2):
        index.remove(n)
    assert index.match(post("tea", lang="xex")) == []
    assert not index._mixed.postings._clauses
