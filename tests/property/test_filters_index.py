"""The index finds exactly the subscriptions that match."""

import sys
from typing import Any

import pytest
from hypothesis import event as note
from hypothesis import strategies as st

import filters.subscription_index as index_module
from filters.event import Event
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from filters.testing import check_match
from tests.property.laws import Holds
from tests.property.statuses import Posted, posted
from tests.property.strategies import events, subscriptions

pytestmark = pytest.mark.timeout(3600)  # for the long form

ITEMS = st.integers(0, 2)
"""Few items, so that a removed one often returns with another subscription."""

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), ITEMS, subscriptions()),
        st.tuples(st.just("add"), ITEMS, subscriptions()),
        st.tuples(st.just("remove"), ITEMS, st.none()),
        st.tuples(st.just("match"), st.none(), events()),
        st.tuples(st.just("match"), st.none(), events()),
    ),
    max_size=40,
)


def _churn(steps: list[tuple[str, int, Any]]) -> None:
    """Add, remove and match. After each step the index equals a dictionary of subscriptions.

    After each removal all events are matched, so one of them finds anything left behind.
    """
    index: SubscriptionIndex[int] = SubscriptionIndex()
    plain: dict[int, Subscription] = {}
    events_of_all = [what for verb, _, what in steps if verb == "match"]
    groups = {index._mixed_group}
    for verb, item, what in steps:
        if verb == "add" and item not in plain:
            index.add(item, what)
            plain[item] = what
            groups.update(index._groups.values())
        elif verb == "remove" and item in plain:
            index.remove(item)
            del plain[item]
        for event in events_of_all if verb == "remove" else [what] if verb == "match" else []:
            found = index.match(event)
            note("found some" if found else "found none")
            assert sorted(found) == sorted(one for one, asked in plain.items() if asked.matches(event))
        assert len(index) == len(plain)
    for item in plain:
        index.remove(item)
    assert index.scanned_count == 0
    assert not index._groups
    assert not any(count for group in groups for count in group.postings._use_counts.values())


@pytest.mark.parametrize("rooms", [0, 1, sys.maxsize])
def test_the_index_equals_asking_everyone(holds: Holds, monkeypatch: pytest.MonkeyPatch, rooms: int) -> None:
    monkeypatch.setattr(index_module, "MAX_NARROWING_GROUPS", rooms)
    holds(_churn, STEPS, cases=170)  # a third of the cases of the longest law


def _known(one: Posted) -> None:
    event = one.event
    assert {event.author, event.reply_to, event.reposted_author} - {None} <= event.user_ids


def test_the_users_of_an_event_include_its_authors(holds: Holds) -> None:
    """Rules are indexed by the users of an event: the author, the author of the parent, and the reposted author."""
    holds(_known, posted())


def _sound(subscription: Subscription, event: Event) -> None:
    keys = subscription.candidate_keys()
    if subscription.matches(event) and keys is not None:
        assert keys & event.index_keys
    for part in (*subscription.bases, *subscription.narrowing):
        check_match(part, event)


def test_a_match_shares_a_key_and_equals_its_clauses(holds: Holds) -> None:
    holds(_sound, subscriptions(), events(), cases=300)


def _canonical(subscription: Subscription, event: Event) -> None:
    turned = Subscription(subscription.bases[::-1], subscription.narrowing[::-1])
    assert turned == subscription
    assert turned.matches(event) is subscription.matches(event)
    assert subscription.matches(event) is (
        any(base.matches(event) for base in subscription.bases)
        and all(narrow.matches(event) for narrow in subscription.narrowing)
    )


def test_the_order_of_filters_does_not_matter(holds: Holds) -> None:
    holds(_canonical, subscriptions(), events())
