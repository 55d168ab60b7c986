"""The values of each filter: invalid ones are refused by the name of the parameter, and lists have a maximum."""

import pytest

from filters.base import Filter
from filters.error import ParameterError
from filters.follow import Follow
from filters.location import Location
from filters.narrowing import Kinds, Language, Partition
from filters.sample import Firehose, Sample
from filters.track import Track

INVALID: dict[type[Filter], list[str]] = {
    Firehose: ["", "false", "True", "1", "true,true"],
    Partition: ["", "0/3", "4/3", "1/65", "1/0", "01/3", "1/3/4", "a/b", "1", "-1/3", "1/3,2/3"],
    Follow: ["", "x", "1,", "01", "-1", "1.0", "1" * 21, "\u0661", "@you", "1 2", "@me1"],
    Kinds: ["", "post,", "hello", "heartbeat", "message", "Post", "posts"],
    Language: ["", "e", "en,", "*", "en_GB", "en-", "en GB", "1", "abcdefghi", "\u00e9n", "english", "eng", "jp"],
    Location: [
        *("", "1", "1,2,3", "1,2,3,4,5", "a,b,c,d", "1,2,3,", "1_0,2,30,4", "\u0661,\u0662,\u0663,\u0664"),
        *("nan,0,1,1", "0,nan,1,1", "0,0,inf,1", "-inf,0,1,1", "0,0,1,1e999"),
        *("-180.1,0,1,1", "0,0,180.1,1", "0,-90.1,1,1", "0,0,1,90.1"),
        *("0,1,1,0", "0,1,1,1", "5,0,5,1", "0,0,1,1,0,1,1,0"),
    ],
    Sample: [
        *("", "0", "0.0", "101", "100.000001", "-1", "1e1", "nan", "inf", "0.0000001", "1,2", " 1", "5%", "\u0661")
    ],
    Track: ["", " ", ",", "a,", "a,,b", "x" * 61, "é" * 31, "a\x00", "\x7f", "a \ud800"],
}

LISTS: dict[type[Filter], list[str]] = {
    Follow: [str(number) for number in range(5_000)],
    Language: ["en"] * 100,
    Location: ["-74,40,-73,41"] * 25,
    Track: [f"w{number}" for number in range(400)],
}
"""The longest list of each filter."""


@pytest.mark.parametrize(("filter_class", "value"), [(key, one) for key, values in INVALID.items() for one in values])
def test_an_invalid_value_is_refused(filter_class: type[Filter], value: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        filter_class.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", filter_class.name)


@pytest.mark.parametrize("filter_class", LISTS)
def test_one_item_more_than_the_maximum_is_too_many(filter_class: type[Filter]) -> None:
    longest = LISTS[filter_class]
    filter_class.parse(",".join(longest))
    with pytest.raises(ParameterError) as refusal:
        filter_class.parse(",".join([*longest, longest[0]]))
    assert (refusal.value.code, refusal.value.param) == ("too_many", filter_class.name)


def test_the_number_of_phrases_is_checked_before_the_phrases() -> None:
    with pytest.raises(ParameterError) as refusal:
        Track.parse("," * 400)
    assert (refusal.value.code, refusal.value.param) == ("too_many", "track")
