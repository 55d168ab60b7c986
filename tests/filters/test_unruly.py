"""What the index makes of third parties' filters that raise, change their minds, or say what it cannot hold."""

import operator
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Self

import pytest

from filters.base import Filter, FilterFailure, Role
from filters.error import ParameterError
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import IndexTerms, Key, user_key
from filters.params import parse_subscription
from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from filters.track import Track
from tests.filters.texts import post

CROWD = [post("tea"), post("milk"), post("", point=(0.5, 0.5)), post("", point=(2.5, 0.5)), post("", box=(0, 0, 3, 1))]
"""Events that one of the answers below asks for."""


class Odd(Filter):
    """Asked for its leads, or its keys, it gives the next of ``answers``, raising what is an exception."""

    name: ClassVar[str] = "odd"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Odd."
    answers: ClassVar[list[Any]] = []

    @classmethod
    def parse(cls, value: str) -> Self:
        return cls()

    @property
    def canonical_form(self) -> Hashable:
        return True

    def matches(self, event: Event) -> bool:
        return event.text == "tea"

    @classmethod
    def answer(cls) -> Any:
        """The last one stays."""
        answer = cls.answers.pop(0) if len(cls.answers) > 1 else cls.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def leading(*answers: Any) -> type[Odd]:
    """One that gives these as its leads."""
    return type("Leading", (Odd,), {"answers": list(answers), "index_terms": lambda one: one.answer()})


def keyed(*answers: Any) -> type[Odd]:
    """One that gives these as its keys."""
    return type("Keyed", (Odd,), {"answers": list(answers), "candidate_keys": lambda one: one.answer()})


def clausal(*answers: Any) -> type[Odd]:
    """One that gives these as its clauses."""
    return type("Clausal", (Odd,), {"answers": list(answers), "exact_clauses": lambda one: one.answer()})


def parsed(registry: Registry, odd: type[Odd], **more: str) -> Subscription:
    """A stream that asks for it."""
    registry.register(odd)
    return parse_subscription({"odd": "1", **more}, registry)


TEA, MILK = frozenset({"tea"}), frozenset({"milk"})


@pytest.mark.parametrize(
    ("make", "first", "later"),
    [
        (leading, IndexTerms((), [TEA]), ValueError()),
        (leading, IndexTerms((), [TEA]), IndexTerms((), [MILK])),
        (leading, IndexTerms([TEA]), ValueError()),
        (leading, IndexTerms([TEA]), IndexTerms([MILK])),
        (leading, IndexTerms((), boxes=[(0, 0, 1, 1)]), ValueError()),
        (leading, IndexTerms((), boxes=[(0, 0, 1, 1)]), IndexTerms((), boxes=[(2, 0, 3, 1)])),
        (leading, None, IndexTerms((), [TEA])),
        (leading, IndexTerms([TEA]), None),
        (leading, IndexTerms([TEA], [MILK], dynamic=True), IndexTerms([TEA], [MILK], dynamic=True)),
        (keyed, TEA, ValueError()),
        (keyed, TEA, MILK),
        (clausal, [TEA], [MILK]),
        (clausal, [TEA], ValueError()),
    ],
)
def test_who_says_something_else_later_leaves_no_trace(
    registry: Registry, make: Callable[[Any], type[Odd]], first: Any, later: Any
) -> None:
    """It is taken from where it was put; the others go on being found."""
    odd = make(first)
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("good", parse_subscription({"track": "tea"}, registry))
    index.add("odd", parsed(registry, odd))
    odd.answers = [later]
    for event in CROWD:
        index.match(event)
    index.remove("odd")
    assert [index.match(event) for event in CROWD] == [["good"], [], [], [], []]
    assert not index.failures
    index.remove("good")
    assert (len(index), index.scanned_count, index._groups) == (0, 0, {})


def test_a_third_party_is_asked_once() -> None:
    """What it says then holds for as long as the stream does."""
    subscription = Subscription([leading(IndexTerms([TEA]), IndexTerms([MILK]))()])
    assert [leads and leads.exact for leads in (*subscription.index_terms(), *subscription.index_terms())] == [
        [TEA],
        [TEA],
    ]


def test_a_changed_subscription_asks_its_filters_no_more(registry: Registry) -> None:
    """Whom one follows is said after the parameters were read, when nothing can be refused any more."""
    subscription = parsed(registry, leading(IndexTerms([TEA]), ValueError("gone")), follow="@me", track="milk")
    index: SubscriptionIndex[str] = SubscriptionIndex()
    changed = subscription.with_following({"7"}).replace_base(Track.parse("water"))
    index.add("odd", changed.without_failed(FilterFailure(changed.bases[1], ValueError())))
    assert [index.match(event) for event in (*CROWD[:2], post("water"))] == [["odd"], [], ["odd"]]


def test_a_key_is_left_where_a_filter_does_not_say_whether_it_needs_it(registry: Registry) -> None:
    """One key too many costs time; a failure would be taken for one of whoever tells of the change."""
    following = {"7", "8"}
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("odd", parsed(registry, keyed(TEA, OSError("the list is gone")), follow="@me").with_following(following))
    following.discard("7")
    index.remove_key("odd", user_key("7"))
    index.remove_key("odd", user_key("7"))
    seven, eight = (post(user_ids=frozenset({uid})) for uid in "78")
    assert [index.match(event) for event in (post("tea"), seven, eight)] == [["odd"], [], ["odd"]]
    index.remove("odd")
    assert [index.match(event) for event in (post("tea"), seven, eight)] == [[], [], []]
    with pytest.raises(KeyError):
        index.remove_key("odd", user_key("7"))


NAN = float("nan")

LEADS: list[tuple[Any, str]] = [
    (7, "must return a filters.index_keys.IndexTerms"),
    (((TEA,), ()), "must return a filters.index_keys.IndexTerms"),
    (ValueError("no luck"), "no luck"),
    (IndexTerms(5), "not iterable"),  # type: ignore[arg-type]  # unruly
    (IndexTerms(["tea"]), "keys must be a set of strings"),  # type: ignore[list-item]  # unruly
    (IndexTerms((), [frozenset({"tea", 2})]), "keys must be a set of strings"),  # type: ignore[arg-type]  # unruly
    (IndexTerms((), [frozenset({"tea", "milk"})], dynamic=True), "must have exactly one key"),
    (IndexTerms((), [frozenset()], dynamic=True), "must have exactly one key"),
    (IndexTerms((), boxes=[(0, 0, 1)]), "unpack"),  # type: ignore[list-item]  # unruly
    (IndexTerms((), boxes=[(0, 0, 1, "1")]), "bad operand"),  # type: ignore[list-item]  # unruly
    *(
        (IndexTerms([TEA], boxes=[(0, 0, 1, 1), box]), "a box must be west")
        for box in ((NAN, 0, 1, 1), (0, 0, 1, NAN), (-181, 0, 1, 1), (0, 0, 1e999, 1), (0, -91, 1, 1), (0, 0, 1, 91))
    ),
]
"""What no index can hold, and what is said of it."""


@pytest.mark.parametrize(("leads", "told"), LEADS)
@pytest.mark.parametrize("role", ["combinable", "standalone"])
def test_leads_that_cannot_be_held_are_a_refusal(registry: Registry, role: Role, leads: Any, told: str) -> None:
    """Of the parameter, before anybody has been let in."""
    odd = leading(leads)
    odd.role = role
    with pytest.raises(ParameterError, match=f"the filter odd raised .*{told}") as refusal:
        parsed(registry, odd)
    assert refusal.value.param == "odd"


@pytest.mark.parametrize("keys", [frozenset({1}), frozenset({"tea", 2}), 7, ValueError()])
def test_keys_that_cannot_be_held_are_a_refusal(registry: Registry, keys: Any) -> None:
    """As a parameter and in a rule; a rule tells where."""
    with pytest.raises(ParameterError, match="the filter odd raised"):
        parsed(registry, keyed(keys))
    with pytest.raises(ParameterError, match=r"odd raised .*column 9: expected another value of odd"):
        Rule.parse("tea odd:1", registry)


def test_clauses_and_leads_of_an_operator_are_looked_at_too(registry: Registry) -> None:
    """A rule is said by its clauses, and found by leads where there are no keys."""
    one, other = clausal([frozenset({1})]), leading(7)
    one.candidate_keys = lambda _: TEA  # type: ignore[method-assign, assignment]  # unruly
    other.name = "other"
    registry.register(one)
    registry.register(other)
    for text in ("tea odd:1", "tea other:1"):
        with pytest.raises(ParameterError, match="raised TypeError"):
            Rule.parse(text, registry)


def test_who_cannot_be_added_has_not_been_added() -> None:
    """Neither it, nor its other filters, nor a room for it."""
    index: SubscriptionIndex[str] = SubscriptionIndex()
    with pytest.raises(FilterFailure, match="odd raised ValueError"):
        index.add("odd", Subscription([Track.parse("tea"), leading(ValueError())()], [Track.parse("tea")]))
    assert (len(index), index.match(post("tea")), index._groups) == (0, [], {})


def test_what_was_given_may_change_afterwards() -> None:
    """The index has its own; a generator is read once."""
    clauses = [set(TEA)]
    box = [0.0, 0.0, 1.0, 1.0]
    leads = IndexTerms((frozenset(one) for one in [MILK]), clauses, boxes=[box])  # type: ignore[arg-type, list-item]  # unruly
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("odd", Subscription([leading(leads)()]))
    clauses[0].clear()
    clauses.clear()
    box[2] = 3.0
    assert [index.match(event) for event in CROWD[:4]] == [["odd"], ["odd"], ["odd"], []]
    index.remove("odd")
    assert [index.match(event) for event in CROWD] == [[], [], [], [], []]


def test_what_is_our_own_is_not_kept_twice() -> None:
    """Thousands of ids would be: they are asked for again where they are needed."""
    subscription = Subscription([Follow.parse("7,8,9"), Track.parse("tea,milk"), leading(None)()])
    assert subscription.index_terms()[0] is not subscription.index_terms()[0]
    assert [base.name for base, _ in subscription._plugin_index_terms] == ["odd"]


@pytest.mark.parametrize(
    ("leads", "keys"),
    [
        (None, None),
        (IndexTerms([frozenset({"tea", "samovar"})], [MILK]), {"samovar", "milk"}),
        (IndexTerms([TEA, frozenset()]), None),
        (IndexTerms((), boxes=[(-180, -90, 180, 90), (0, 0, 0.5, 0.5)]), {"\x1em", "\x1em!", "\x1em1:0:0"}),
        (IndexTerms([], dynamic=True), set()),
    ],
)
def test_an_operator_with_leads_alone_has_their_keys(
    registry: Registry, leads: IndexTerms | None, keys: set[Key] | None
) -> None:
    """So a rule may rest on it without being asked about every event."""
    registry.register(leading(leads))
    found = Rule.parse("odd:1", registry).candidate_keys()
    assert found is None if keys is None else found is not None and keys <= found


class Area(Odd):
    """Boxes alone: one over the date line, and one that holds no whole square."""

    boxes: ClassVar[list[tuple[float, float, float, float]]] = [(177, -19, -178, -16), (13.1, 52.3, 13.8, 52.7)]

    def index_terms(self) -> IndexTerms:
        return IndexTerms((), boxes=self.boxes)

    def matches(self, event: Event) -> bool:
        return event.point is not None and (abs(event.point[0]) > 177 or 13.1 <= event.point[0] <= 13.8)


def test_boxes_find_a_rule_as_they_find_a_parameter(registry: Registry) -> None:
    """By the same points, and nobody is asked about the rest."""
    registry.register(Area)
    index: SubscriptionIndex[str] = SubscriptionIndex()
    for name in ("odd", "rule"):
        index.add(name, parse_subscription({name: "odd:1"}, registry))
    assert index.scanned_count == 0
    points = [(179.5, -17.0), (-179.0, -17.0), (13.4, 52.5)]
    assert [sorted(index.match(post(point=point))) for point in points] == [["odd", "rule"]] * 3
    assert index.match(post("tea", point=(20.0, 52.5))) == []
    assert list(map(operator.attrgetter("unindexed_bases"), index._subscriptions.values())) == [[], []]
