"""What counts as a contradiction matches nothing: a warning must never be wrong."""

import pytest
from hypothesis import event as note
from hypothesis import strategies as st

from filters.event import Event
from filters.narrowing import Language
from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription
from filters.tables import whole_language
from tests.property.laws import Holds
from tests.property.rules import operators, rules, standalone
from tests.property.statuses import posted
from tests.property.strategies import LANGUAGES, subscriptions

pytestmark = pytest.mark.timeout(3600)  # for the long form

REGISTRY = Registry.from_entry_points()


def _long_rules() -> st.SearchStrategy[str]:
    """Rules of many operators beside each other, of which some exclude each other."""
    beside = st.lists(operators(), min_size=1, max_size=4).map(" ".join)
    return st.one_of(rules(), st.tuples(standalone(), beside).map(" ".join))


def _may_match(text: str, language: str, event: Event) -> None:
    rule = Rule.parse(text, REGISTRY)
    note("matched" if rule.matches(event) else "none" if not rule.kinds else "not matched")
    if rule.matches(event):
        assert event.kind in rule.kinds
        spoken = Language([language])
        codes = frozenset(map(whole_language, spoken.languages))
        assert rule.may_match(frozenset({event.kind}), codes) or not spoken.matches(event)


def test_a_rule_that_matches_has_no_contradiction(holds: Holds) -> None:
    events = posted().map(lambda one: one.event)
    holds(_may_match, _long_rules(), st.sampled_from(LANGUAGES), events, cases=400)


def _told_only_what_is_so(subscription: Subscription, event: Event) -> None:
    told = {found.filter: found.terms for found in subscription.doubts}
    note(f"{len(told)} told")
    for base in subscription.bases:
        if told.get(base.name) == ():
            assert not (base.matches(event) and subscription.passes_narrowing(event))


def test_a_filter_that_matches_is_not_told_to_match_nothing(holds: Holds) -> None:
    holds(_told_only_what_is_so, subscriptions(), posted().map(lambda one: one.event), cases=300)
