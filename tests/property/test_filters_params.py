"""Whatever a client writes is a subscription or a refusal, never an exception of another kind."""

import pytest
from hypothesis import strategies as st

from filters.error import ParameterError
from filters.event import Event
from filters.params import parse_subscription
from filters.registry import Registry
from filters.sample import Sample
from tests.filters.conftest import built_in
from tests.property.laws import holds

pytestmark = pytest.mark.timeout(900)  # for the long form

REGISTRY = Registry(built_in())
NAMES = [*REGISTRY.names(), "nonsense", ""]
SCRAPS = [
    "1",
    "0",
    "-1",
    ".",
    ",",
    " ",
    "/",
    "-",
    "+",
    "e",
    "nan",
    "inf",
    "true",
    "@me",
    "en",
    "post",
    "#",
    "é",
    "😍",
    "%",
]
# Text as it may come out of JSON: any code point, lone surrogates too.
VALUES = st.one_of(st.text(st.characters(), max_size=80), st.lists(st.sampled_from(SCRAPS), max_size=12).map("".join))
CODES = {"invalid_parameter", "missing_parameter", "conflicting_parameters", "unknown_parameter", "too_many"}


def _parses_or_refuses(params: dict[str, str]) -> None:
    try:
        subscription = parse_subscription(params, REGISTRY)
    except ParameterError as refusal:
        assert (refusal.code in CODES, refusal.message != "") == (True, True)  # noqa: PT017 - either outcome is right
        return
    assert subscription == parse_subscription(dict(reversed(params.items())), REGISTRY)
    assert subscription.matches(Event("post", text="1 é 😍", user_ids=frozenset("1"), author="1")) in {True, False}


def test_no_parameter_breaks_the_parser(full: bool) -> None:  # noqa: FBT001 - a fixture
    """Any names with any values, several at once."""
    holds(_parses_or_refuses, st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3), full=full, cases=300)


@pytest.mark.parametrize("name", REGISTRY.names())
def test_no_value_breaks_a_filter(full: bool, name: str) -> None:  # noqa: FBT001 - a fixture
    """Each filter alone, with values made for it and not."""

    def law(value: str) -> None:
        try:
            parsed = REGISTRY.get(name).parse(value)
        except ParameterError as refusal:
            assert refusal.param == name  # noqa: PT017 - either outcome is right
        else:
            assert parsed == REGISTRY.get(name).parse(value)

    holds(law, VALUES, full=full)


def _nested(one: int, other: int, status_id: int) -> None:
    small, large = (Sample.parse(f"{n // 10**6}.{n % 10**6:06d}") for n in sorted((one, other)))
    event = Event("post", status_id=str(status_id))
    assert not small.matches(event) or large.matches(event)


def test_samples_are_nested(full: bool) -> None:  # noqa: FBT001 - a fixture
    """What is in a sample is in every larger one."""
    percent = st.integers(1, 100 * 10**6)
    holds(_nested, percent, percent, st.integers(1, 2**53), full=full, cases=300)
