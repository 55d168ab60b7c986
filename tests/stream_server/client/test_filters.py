"""The typed arguments of a stream, and what goes over the wire."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from filters.registry import Registry
from stream_server.client.filters import Filters, to_parameters, to_since


def test_every_parameter_of_a_stream_is_an_argument() -> None:
    built_in = {each.name for each in Registry.from_entry_points().all() if each.__module__.startswith("filters")}
    assert Filters.__annotations__.keys() == built_in | {"explain", "more", "subscription", "worker", "summary"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"track": "a b,c"}, {"track": "a b,c"}),
        ({"track": ["a b", "c"], "follow": ("1", "@me")}, {"track": "a b,c", "follow": "1,@me"}),
        ({"locations": [(-122.75, 36.8, 0, 37.8), (0, 1, 2, 3)]}, {"locations": "-122.75,36.8,0,37.8,0,1,2,3"}),
        ({"rule": "tea"}, {"rule": "tea"}),
        ({"rule": ["tea OR\ncoffee", "#x"]}, {"rule": "tea OR coffee\n#x"}),
        ({"rule": {"drinks": "tea", "cats": "#cat"}}, {"rule": "drinks:tea\ncats:#cat"}),
        ({"sample": 1}, {"sample": "1"}),
        ({"sample": 0.1}, {"sample": "0.1"}),
        ({"firehose": True, "partition": (1, 4)}, {"firehose": "true", "partition": "1/4"}),
        ({"track": "x", "explain": True}, {"track": "x", "explain": "true"}),
        ({"firehose": False, "explain": False, "track": None, "kinds": ["post"]}, {"kinds": "post"}),
        ({"more": {"min_length": "40"}, "rules": "saved"}, {"min_length": "40", "rules": "saved"}),
    ],
)  # fmt: skip
def test_arguments_become_parameters(given: Any, expected: dict[str, str]) -> None:
    assert to_parameters(given) == expected


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError, match="trak"):
        to_parameters({"trak": "x"})  # type: ignore[typeddict-unknown-key]  # mypy finds it too


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        ("-15m", "-15m"),
        (timedelta(minutes=15), "-900s"),
        (datetime(2026, 1, 31, 12, tzinfo=UTC), "2026-01-31T12:00:00Z"),
        (datetime(2026, 1, 31, 13, tzinfo=timezone(timedelta(hours=1))), "2026-01-31T12:00:00Z"),
    ],
)
def test_where_to_begin(since: Any, expected: str) -> None:
    assert to_since(since) == expected


@pytest.mark.parametrize("since", [datetime(2026, 1, 31), timedelta(minutes=-15)])  # noqa: DTZ001 - that is what is refused
def test_an_ambiguous_beginning_is_refused(since: Any) -> None:
    with pytest.raises(ValueError, match=r"zone|positive"):
        to_since(since)
