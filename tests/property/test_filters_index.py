"""The index finds exactly what asking everyone finds."""

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
from tests.property.laws import holds
from tests.property.statuses import Posted, posted
from tests.property.worlds import events, subscriptions

pytestmark = pytest.mark.timeout(3600)  # for the long form

ITEMS = st.integers(0, 2)
"""So few that who leaves was there, and comes again with another subscription."""

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
    """Clients come and go while events pass; after each step the index equals the plain dictionary.

    Whenever one has left, all of the events pass: what it leaves behind would be found by one of them.
    """
    index: SubscriptionIndex[int] = SubscriptionIndex()
    plain: dict[int, Subscription] = {}
    events_of_all = [what for verb, _, what in steps if verb == "match"]
    for verb, item, what in steps:
        if verb == "add" and item not in plain:
            index.add(item, what)
            plain[item] = what
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


@pytest.mark.parametrize("rooms", [0, 1, sys.maxsize])
def test_the_index_equals_asking_everyone(full: bool, monkeypatch: pytest.MonkeyPatch, rooms: int) -> None:  # noqa: FBT001 - a fixture
    """Under any churn, with narrowings looked at together, one by one, or some so and some so."""
    monkeypatch.setattr(index_module, "MAX_NARROWING_GROUPS", rooms)
    holds(_churn, STEPS, full=full, cases=170)  # a third of the five hundred


def _known(one: Posted) -> None:
    event = one.event
    assert {event.author, event.reply_to, event.reposted_author} - {None} <= event.user_ids


def test_whose_event_it_is_stands_among_its_people(full: bool) -> None:  # noqa: FBT001 - a fixture
    """Rules find authors, the answered and the reposted by the keys of people: the view of an entry has them there."""
    holds(_known, posted(), full=full)


def _sound(subscription: Subscription, event: Event) -> None:
    keys = subscription.candidate_keys()
    if subscription.matches(event) and keys is not None:
        assert keys & event.index_keys
    for part in (*subscription.bases, *subscription.narrowing):
        check_match(part, event)


def test_what_matches_shares_a_key(full: bool) -> None:  # noqa: FBT001 - a fixture
    """Keys may only rule out what surely does not match, and clauses say exactly what does."""
    holds(_sound, subscriptions(), events(), full=full, cases=300)


def _canonical(subscription: Subscription, event: Event) -> None:
    turned = Subscription(subscription.bases[::-1], subscription.narrowing[::-1])
    assert turned == subscription
    assert turned.matches(event) is subscription.matches(event)
    assert subscription.matches(event) is (
        any(base.matches(event) for base in subscription.bases)
        and all(narrow.matches(event) for narrow in subscription.narrowing)
    )


def test_order_does_not_matter(full: bool) -> None:  # noqa: FBT001 - a fixture
    """The same filters in another order are the same subscription."""
    holds(_canonical, subscriptions(), events(), full=full)
