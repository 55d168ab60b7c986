"""The index of subscriptions finds all matches, and keeps nothing of removed ones."""

from collections.abc import Iterator
from typing import ClassVar

import pytest

from filters.base import Filter
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import FLAG, LANGUAGE, LOWEST_COMMON_KEY, LOWEST_TEXT_KEY, Key, rarest_key, user_key
from filters.inverted_lists import CompactSet, Trie
from filters.location import Location
from filters.narrowing import Kinds, Language
from filters.registry import Registry
from filters.rule import Rules
from filters.sample import Firehose, Sample
from filters.subscription import Subscription
from filters.subscription_index import MAX_NARROWING_GROUPS, SubscriptionIndex
from filters.testing import example_events
from filters.track import Track
from tests.filters.plugin import Plugin
from tests.filters.texts import post

POSTS = Kinds.parse("post,delete")


class Broken(Plugin):
    """A filter that fails on some texts."""

    name: ClassVar[str] = "broken"

    def matches(self, event: Event) -> bool:
        if "bang" in event.text:
            raise RuntimeError("bang")
        return True


class Listed(Plugin):
    """A filter with index keys of its own."""

    name: ClassVar[str] = "listed"

    def candidate_keys(self) -> frozenset[Key]:
        return frozenset({"green", user_key("8")})

    def matches(self, event: Event) -> bool:
        return True


def filled() -> SubscriptionIndex[str]:
    """An index with a subscription of every kind."""
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("tea", Subscription([Track.parse("tea,green leaf")], [POSTS]))
    index.add("seven", Subscription([Follow.parse("7")], [POSTS]))
    index.add("york", Subscription([Location.parse("-74,40,-73,41"), Track.parse("tea")], [POSTS]))
    index.add("all", Subscription([Firehose()], [POSTS]))
    index.add("likes", Subscription([Firehose()], [Kinds.parse("like")]))
    index.add("whole", Subscription([Sample.parse("100")], [POSTS, Language.parse("de")]))
    return index


def test_items_are_counted() -> None:
    index = filled()
    assert (len(index), index.scanned_count) == (6, 3)
    assert "tea" in index
    assert "milk" not in index


def test_an_item_cannot_be_added_twice() -> None:
    index = filled()
    with pytest.raises(ValueError, match="'tea' is in the index already"):
        index.add("tea", Subscription([Firehose()]))
    with pytest.raises(KeyError):
        index.remove("milk")


def test_keys_that_only_rules_use_and_those_of_texts_sort_apart() -> None:
    """By this the index knows whether an event must compute them."""
    rule_keys, text_keys, user_keys = set[str](), set[str](), set[str]()
    for event in example_events():
        text_keys |= event.common_keys - event.user_keys
        user_keys |= event.user_keys
        rule_keys |= event.index_keys - event.common_keys
    assert rule_keys
    assert max(rule_keys) < LOWEST_COMMON_KEY <= min(user_keys)
    assert max(user_keys) < LOWEST_TEXT_KEY <= min(text_keys)


def test_an_empty_posting_list_is_removed() -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("one", Subscription([Track.parse("a b,c,d,e f"), Location.parse("0,0,1,1"), Follow.parse("1,@me")]))
    index.add("two", Subscription([Track.parse("a b,c")]))
    index.remove("one")
    (room,) = index._groups.values()
    assert not room.postings._dynamic_keys
    assert not room.postings._matches
    assert not room.postings._boxes.crossed_squares
    assert _leaves(room.postings._clauses) == {("b", "a"): ("two",), ("c",): ("two",)}


def _leaves(node: Trie[str], path: tuple[str, ...] = ()) -> dict[tuple[str, ...], CompactSet[str]]:
    """The exact items of a trie by path. An empty branch shows as empty."""
    held = {} if node.children and not node.exact_items else {path: node.exact_items}
    for step, branch in node.children.items():
        held |= _leaves(branch, (*path, step)) if isinstance(branch, Trie) else {(*path, step): branch}
    return held


def test_keys_follow_changes_of_the_following_set() -> None:
    following = {"8"}
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("me", Subscription([Follow.parse("7,@me").with_following(following)], [POSTS]))
    seven, eight, nine = (post(user_ids=frozenset({name})) for name in "789")
    following.add("9")
    index.add_key("me", user_key("9"))
    assert [index.match(event) for event in (seven, eight, nine)] == [["me"]] * 3
    following.clear()
    for name in "789":
        index.remove_key("me", user_key(name))
    assert [index.match(event) for event in (seven, eight, nine)] == [["me"], [], []]
    index.remove("me")
    assert index.match(seven) == []


def test_a_raising_filter_fails_alone() -> None:
    index = filled()
    index.add("broken", Subscription([Broken()], [POSTS]))
    assert "broken" in index.match(post("tea"))
    assert set(index.match(post("tea bang"))) == {"tea", "york", "all"}
    ((item, failed),) = index.failures
    assert (item, repr(failed.error), failed.rule_id) == ("broken", "RuntimeError('bang')", None)
    assert isinstance(failed.filter, Broken)


def test_more_narrowing_groups_than_the_maximum_match_the_same() -> None:
    index: SubscriptionIndex[int] = SubscriptionIndex()
    for n in range(MAX_NARROWING_GROUPS * 2):
        index.add(n, Subscription([Track.parse("tea")], [Language.parse(f"x{chr(97 + n // 26)}{chr(97 + n % 26)}")]))
    assert index.match(post("tea", lang="xab")) == [1]
    assert index.match(post("tea", lang="xex")) == [MAX_NARROWING_GROUPS * 2 - 1]
    assert index.match(post("milk", lang="xex")) == []
    for n in range(MAX_NARROWING_GROUPS * 2):
        index.remove(n)
    assert index.match(post("tea", lang="xex")) == []
    assert not index._mixed_group.postings._clauses.children


def test_extra_keys_are_computed_only_while_a_rule_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Event] = []
    plain = Event._make_rule_keys

    def noted(event: Event) -> Iterator[str]:
        made.append(event)
        return plain(event)

    monkeypatch.setattr(Event, "_make_rule_keys", noted)
    index = filled()
    index.match(post("tea"))
    assert not made
    index.add("bio", Subscription([Rules.parse("bio:tea")], [POSTS]))
    assert "bio" in index.match(post("milk", bio="I drink tea"))
    assert len(made) == 1
    index.remove("bio")
    index.match(post("tea", bio="I drink tea"))
    assert len(made) == 1


@pytest.mark.parametrize(
    "needing", [Track.parse("tea"), Rules.parse("tea meta.n:1"), Rules.parse("from:1 lang:de"), Listed()], ids=str
)
def test_texts_are_searched_for_terms_only_while_a_filter_needs_them(needing: Filter) -> None:
    def event() -> Event:
        return post("green tea", lang="de", user_ids=frozenset({"1", "7"}), meta=b'{"n":1}')

    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("seven", Subscription([Follow.parse("7")], [POSTS]))
    index.add("one", Subscription([Rules.parse("meta.n:1")], [POSTS]))
    for _ in range(2):
        assert set(index.match(first := event())) == {"seven", "one"}
        assert first._common_keys is None
        index.add("needing", Subscription([needing], [POSTS]))
        assert set(index.match(second := event())) == {"seven", "one", "needing"}
        assert second._common_keys is not None
        index.remove("needing")


def test_only_filters_without_keys_see_every_event(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Filter] = []

    def noted(cls: type[Filter]) -> None:
        plain = cls.matches

        def matches(one: Filter, event: Event) -> bool:
            asked.append(one)
            return plain(one, event)

        monkeypatch.setattr(cls, "matches", matches)

    noted(Location)
    noted(Rules)
    index: SubscriptionIndex[str] = SubscriptionIndex()
    rule = Rules.parse_with("bounding_box:[3.2 2.3 3.5 2.6]", Registry.from_entry_points())
    index.add("box", Subscription([Location.parse("0.5,0.5,3.5,3.5")], [POSTS]))
    index.add("rule", Subscription([rule], [POSTS]))
    assert index.match(post("", point=(9.5, 9.5))) == []
    assert not asked
    assert set(index.match(post("", point=(3.4, 2.5)))) == {"box", "rule"}
    assert index.match(post("", point=(3.6, 2.5))) == []
    assert asked == [rule, rule]
    assert index.scanned_count == 0


@pytest.mark.parametrize(
    ("rarer", "commoner"),
    [
        ("#a", "airport"),
        (user_key("7"), "airport"),
        ("airport", "tea"),
        ("a", LANGUAGE + "en-gb"),
        ("a", FLAG + "has:x"),
    ],
)
def test_names_are_rarer_than_words_and_languages_are_common(rarer: str, commoner: str) -> None:
    assert rarest_key({commoner, rarer}) == rarer


def test_an_exact_phrase_is_not_checked_beside_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Track, "matches", lambda track, event: event.text == "東京タワー")
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("both", Subscription([Track.parse("tea,東京タワー")], [POSTS]))
    assert index.match(post("tea")) == ["both"]
    assert index.match(post("東京タワー")) == ["both"]
    assert index.match(post("東京タワ ワー")) == []
    index.remove("both")
    assert not index._groups
