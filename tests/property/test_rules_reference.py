"""Rules match as by the reference, and both refuse the same texts."""

import pytest
from hypothesis import assume
from hypothesis import event as note

from filters.registry import Registry
from filters.rule import Rules
from filters.rules.condition import RuleError
from filters.rules.rule import Rule
from filters.testing import check_match
from tests import reference_rules
from tests.property.laws import Holds
from tests.property.rules import near_rules, rules
from tests.property.statuses import Posted, posted

pytestmark = pytest.mark.timeout(3600)  # for the long form

REGISTRY = Registry.from_entry_points()


def _as_the_reference(text: str, one: Posted) -> None:
    # The documents do not say which characters the path of a link may contain.
    assume("://" not in str([url["display_url"] for url in one.status["entities"]["urls"]]))
    expected = reference_rules.matches(text, one.status, one.facts)
    note("matched" if expected else "not matched")
    assert Rule.parse(text, REGISTRY).matches(one.event) is expected
    check_match(Rules.parse(text), one.event)


def test_a_rule_matches_as_the_reference(holds: Holds) -> None:
    holds(_as_the_reference, rules(), posted(), cases=250)


def _is_rule(text: str) -> bool:
    try:
        Rule.parse(text, REGISTRY)
    except RuleError:
        return False
    return True


def _is_reference_rule(text: str) -> bool:
    try:
        reference_rules.parsed(text)
    except reference_rules.NoRule:
        return False
    return True


def _refused_alike(text: str) -> None:
    taken = _is_reference_rule(text)
    note("taken" if taken else "refused")
    assert _is_rule(text) is taken


def test_the_reference_refuses_the_same_texts(holds: Holds) -> None:
    holds(_refused_alike, near_rules(), cases=250)
