"""`follow` matches the users of an event."""

import pytest

from filters.event import Event
from filters.follow import Follow
from filters.index_keys import user_key
from tests.filters.texts import post

BY_SEVEN = post(user_ids=frozenset({"7"}))
BY_EIGHT = post(user_ids=frozenset({"8", "9"}))


def test_follow_matches_each_named_user() -> None:
    follow = Follow.parse("7, 9")
    assert follow.matches(BY_SEVEN)
    assert follow.matches(BY_EIGHT)
    assert not follow.matches(post(author="7"))


def test_me_matches_no_event_without_a_following_set() -> None:
    follow = Follow.parse("@me")
    assert follow.includes_me
    assert not follow.matches(BY_SEVEN)
    assert follow.candidate_keys() == frozenset()


def test_me_follows_changes_of_the_following_set() -> None:
    following = {"8"}
    follow = Follow.parse("7,@me").with_following(following)
    assert follow.matches(BY_SEVEN)
    assert follow.matches(BY_EIGHT)
    following.clear()
    assert follow.matches(BY_SEVEN)
    assert not follow.matches(BY_EIGHT)
    following.add("5")
    assert follow.candidate_keys() == {user_key("7"), user_key("5")}
    assert not follow.index_terms().exact


def test_a_following_set_changes_nothing_without_me() -> None:
    follow = Follow.parse("7")
    assert follow.with_following({"8"}) is follow


def test_two_following_sets_are_two_filters() -> None:
    assert Follow.parse("@me").with_following({"1"}) != Follow.parse("@me").with_following({"1"})


@pytest.mark.parametrize(
    ("event", "users"),
    [
        (post(author="7", user_ids=frozenset({"7"})), {"7": "author"}),
        (post(author="7", user_ids=frozenset({"7"}), reply_to="7"), {"7": "author"}),
        (post(author="1", user_ids=frozenset({"1", "7"}), reply_to="7"), {"7": "reply"}),
        (post(author="1", user_ids=frozenset({"1", "7"}), reposted_author="7"), {"7": "repost"}),
        (post("@seven yes", author="1", user_ids=frozenset({"1", "7"})), {"7": "mention"}),
        (post(author="9", user_ids=frozenset({"7", "8", "9"}), reply_to="7"), {"7": "reply", "9": "author"}),
        (Event("follow", author="1", user_ids=frozenset({"1", "7"})), {"7": "target"}),
        (Event("like", author="7", user_ids=frozenset({"1", "7"})), {"7": "author"}),
        (post(author="1", user_ids=frozenset({"1"})), {}),
    ],
)
def test_reasons_name_each_user_and_role(event: Event, users: dict[str, str]) -> None:
    reasons = [{"filter": "follow", "user": user, "as": part} for user, part in users.items()]
    assert Follow.parse("7,9").explain(event) == reasons
    assert Follow.parse("@me").with_following({"7", "9"}).explain(event) == reasons
    assert Follow.parse("5,@me").explain(event) == []
