"""``follow`` looks at the people concerned."""

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import user_key
from tests.filters.texts import post

BY_SEVEN = post(user_ids=frozenset({"7"}))
BY_EIGHT = post(user_ids=frozenset({"8", "9"}))


def test_follow_matches_whom_it_names() -> None:
    """One of the people of an event suffices; the author as such is not looked at."""
    follow = Follow.parse("7, 9")
    assert follow.matches(BY_SEVEN)
    assert follow.matches(BY_EIGHT)
    assert not follow.matches(post(author="7"))


def test_me_matches_nobody_until_it_is_known_whom_that_means() -> None:
    """Without a following ``@me`` is silent, and says that it is there."""
    follow = Follow.parse("@me")
    assert follow.includes_me
    assert not follow.matches(BY_SEVEN)
    assert follow.candidate_keys() == frozenset()


def test_me_follows_a_living_set() -> None:
    """What the owner of the set changes takes effect at once, beside the ids that are named."""
    following = {"8"}
    follow = Follow.parse("7,@me").with_following(following)
    assert follow.matches(BY_SEVEN)
    assert follow.matches(BY_EIGHT)
    following.clear()
    assert follow.matches(BY_SEVEN)
    assert not follow.matches(BY_EIGHT)
    following.add("5")
    assert follow.candidate_keys() == {user_key("7"), user_key("5")}
    assert follow.exact_clauses() is None


def test_a_following_changes_nothing_where_nobody_asked_for_it() -> None:
    """Ids alone are the same filter with and without a following."""
    follow = Follow.parse("7")
    assert follow.with_following({"8"}) is follow


def test_two_followings_are_two_filters() -> None:
    """The streams of two users must not share one group."""
    assert Follow.parse("@me").with_following({"1"}) != Follow.parse("@me").with_following({"1"})


@pytest.mark.parametrize("value", ["", "x", "1,", "01", "-1", "1.0", "1" * 21, "\u0661", "@you", "1 2", "@me1"])
def test_ids_are_canonical_decimals(value: str) -> None:
    """Anything but 1 to 20 ASCII digits without a leading zero is refused."""
    with pytest.raises(ParameterError) as refusal:
        Follow.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "follow")


def test_5000_ids_are_taken_and_5001_are_too_many() -> None:
    """The cap is inside its bound."""
    assert len(Follow.parse(",".join(map(str, range(5_000)))).ids) == 5_000
    with pytest.raises(ParameterError) as refusal:
        Follow.parse(",".join(map(str, range(5_001))))
    assert refusal.value.code == "too_many"


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
def test_it_says_of_whom_and_as_what(event: Event, users: dict[str, str]) -> None:
    """One reason for each user who is asked for, named or followed."""
    reasons = [{"filter": "follow", "user": user, "as": part} for user, part in users.items()]
    assert Follow.parse("7,9").explain(event) == reasons
    assert Follow.parse("@me").with_following({"7", "9"}).explain(event) == reasons
    assert Follow.parse("5,@me").explain(event) == []
