"""Any parameters are a subscription or a refusal, and raise no other error."""

import pytest
from hypothesis import strategies as st

from filters.error import ParameterError
from filters.event import Event
from filters.registry import Registry
from filters.sample import Sample
from filters.subscription import parse_subscription
from tests.filters.conftest import built_in
from tests.property.laws import Holds

pytestmark = pytest.mark.timeout(900)  # for the long form

REGISTRY = Registry(built_in())
NAMES = [*REGISTRY.names(), "nonsense", ""]
SCRAPS = [
    "1", "0", "-1", ".", ",", " ", "/", "-", "+", "e", "nan", "inf", "true", "@me", "en", "post", "#", "é", "😍", "%",
]  # fmt: skip
# Any text that JSON can hold: all code points, also lone surrogates.
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


def test_no_parameter_breaks_the_parser(holds: Holds) -> None:
    holds(_parses_or_refuses, st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3), cases=300)


@pytest.mark.parametrize("name", REGISTRY.names())
def test_no_value_breaks_a_filter(holds: Holds, name: str) -> None:

    def law(value: str) -> None:
        try:
            parsed = REGISTRY.get(name).parse(value)
        except ParameterError as refusal:
            assert refusal.param == name  # noqa: PT017 - either outcome is right
        else:
            assert parsed == REGISTRY.get(name).parse(value)

    holds(law, VALUES)


def _nested(one: int, other: int, status_id: int) -> None:
    small, large = (Sample.parse(f"{n // 10**6}.{n % 10**6:06d}") for n in sorted((one, other)))
    event = Event("post", status_id=str(status_id))
    assert not small.matches(event) or large.matches(event)


def test_samples_are_nested(holds: Holds) -> None:
    percent = st.integers(1, 100 * 10**6)
    holds(_nested, percent, percent, st.integers(1, 2**53), cases=300)
