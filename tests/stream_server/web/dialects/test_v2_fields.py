"""Selecting the members of Tweets: names, implied members, and unknown names."""

import pytest

from stream_server.errors import BadRequest
from stream_server.web.dialects import v2_fields
from stream_server.web.dialects.v2_fields import EXPANSIONS, FieldSelection, read_fields


def test_who_asks_for_nothing_gets_the_defaults() -> None:
    """Unknown parameters change nothing."""
    assert read_fields({}) == read_fields({"colour": "blue"}) == FieldSelection()
    assert FieldSelection().tweet == {"id", "text", "edit_history_tweet_ids"}
    assert FieldSelection().user == {"id", "name", "username"}


def test_what_is_asked_for_comes_beside_the_defaults() -> None:
    """Each kind of object has its own parameter."""
    wanted = read_fields(
        {"tweet.fields": "lang,geo", "user.fields": "url", "place.fields": "geo", "media.fields": "width"}
    )
    assert wanted.tweet == FieldSelection().tweet | {"lang", "geo"}
    assert wanted.user == FieldSelection().user | {"url"}
    assert wanted.place == FieldSelection().place | {"geo"}
    assert wanted.media == FieldSelection().media | {"width"}


@pytest.mark.parametrize(("expansion", "member"), EXPANSIONS.items())
def test_an_expansion_brings_the_member_that_names_it(expansion: str, member: str) -> None:
    """Otherwise a client could not relate included objects to the Tweet."""
    wanted = read_fields({"expansions": expansion})
    assert wanted.expansions == {expansion}
    assert wanted.tweet == FieldSelection().tweet | {member}
    assert member in v2_fields.TWEET_FIELDS


def test_equal_askings_are_equal() -> None:
    """The order of names does not matter, so the clients share a framing."""
    first, second = read_fields({"tweet.fields": "lang,geo"}), read_fields({"tweet.fields": "geo,lang,text"})
    assert (first, hash(first)) == (second, hash(second))


@pytest.mark.parametrize(
    "param", ["tweet.fields", "user.fields", "place.fields", "media.fields", "poll.fields", "expansions"]
)
@pytest.mark.parametrize("value", ["", "id,,text", "Text", "text ", "nothing"])
def test_a_name_that_is_none_is_refused(param: str, value: str) -> None:
    """The error names the parameter."""
    with pytest.raises(BadRequest, match=f"`{param}`") as refused:
        read_fields({param: value})
    assert refused.value.param == param
