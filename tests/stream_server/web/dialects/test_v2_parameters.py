"""The fields of v2 that a request selects: defaults, requested fields, expansions, and unknown names."""

import pytest

from stream_server.errors import BadRequest
from stream_server.web.dialects import v2_parameters
from stream_server.web.dialects.v2_parameters import EXPANSIONS, FieldSelection, read_fields


def test_without_parameters_the_default_fields_are_selected() -> None:
    assert read_fields({}) == read_fields({"colour": "blue"}) == FieldSelection()
    assert FieldSelection().tweet == {"id", "text", "edit_history_tweet_ids"}
    assert FieldSelection().user == {"id", "name", "username"}


def test_requested_fields_are_added_to_the_defaults() -> None:
    asked = {"tweet.fields": "lang,geo", "user.fields": "url", "place.fields": "geo", "media.fields": "width"}
    wanted = read_fields(asked)
    assert wanted.tweet == FieldSelection().tweet | {"lang", "geo"}
    assert wanted.user == FieldSelection().user | {"url"}
    assert wanted.place == FieldSelection().place | {"geo"}
    assert wanted.media == FieldSelection().media | {"width"}


@pytest.mark.parametrize(("expansion", "member"), EXPANSIONS.items())
def test_an_expansion_adds_the_field_that_refers_to_it(expansion: str, member: str) -> None:
    wanted = read_fields({"expansions": expansion})
    assert wanted.expansions == {expansion}
    assert wanted.tweet == FieldSelection().tweet | {member}
    assert member in v2_parameters.TWEET_FIELDS


def test_equal_selections_are_equal_in_any_order() -> None:
    first, second = read_fields({"tweet.fields": "lang,geo"}), read_fields({"tweet.fields": "geo,lang,text"})
    assert (first, hash(first)) == (second, hash(second))


@pytest.mark.parametrize(
    "param", ["tweet.fields", "user.fields", "place.fields", "media.fields", "poll.fields", "expansions"]
)
@pytest.mark.parametrize("value", ["", "id,,text", "Text", "text ", "nothing"])
def test_an_unknown_field_is_refused(param: str, value: str) -> None:
    with pytest.raises(BadRequest, match=f"`{param}`") as refused:
        read_fields({param: value})
    assert refused.value.param == param
