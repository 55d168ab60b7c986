"""The index and plug-in filters that raise, change their answers, or give invalid terms."""

import operator
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from filters.base import FilterFailure, Role
from filters.error import ParameterError
from filters.event import Event
from filters.follow import Follow
from filters.index_keys import IndexTerms, Key, user_key
from filters.registry import Registry
from filters.rules.rule import Rule
from filters.subscription import Subscription, parse_subscription
from filters.subscription_index import SubscriptionIndex
from filters.track import Track
from tests.filters.plugin import Plugin, install
from tests.filters.texts import post

CROWD = [post("tea"), post("milk"), post("", point=(0.5, 0.5)), post("", point=(2.5, 0.5)), post("", box=(0, 0, 3, 1))]
"""Events that the answers below match."""


class Odd(Plugin):
    """A filter that returns the next of ``answers`` as its index terms or keys, and raises exceptions among them."""

    name: ClassVar[str] = "odd"
    answers: ClassVar[list[Any]] = []

    def matches(self, event: Event) -> bool:
        return event.text == "tea"

    @classmethod
    def answer(cls) -> Any:
        """The last answer is repeated."""
        answer = cls.answers.pop(0) if len(cls.answers) > 1 else cls.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def with_terms(*answers: Any) -> type[Odd]:
    return type("Leading", (Odd,), {"answers": list(answers), "index_terms": lambda one: one.answer()})


def with_keys(*answers: Any) -> type[Odd]:
    return type("Keyed", (Odd,), {"answers": list(answers), "candidate_keys": lambda one: one.answer()})


def parsed(registry: Registry, odd: type[Odd], **more: str) -> Subscription:
    install(registry, odd)
    return parse_subscription({"odd": "1", **more}, registry)


TEA, MILK = frozenset({"tea"}), frozenset({"milk"})


@pytest.mark.parametrize(
    ("make", "first", "later"),
    [
        (with_terms, IndexTerms((), [TEA]), ValueError()),
        (with_terms, IndexTerms((), [TEA]), IndexTerms((), [MILK])),
        (with_terms, IndexTerms([TEA]), ValueError()),
        (with_terms, IndexTerms([TEA]), IndexTerms([MILK])),
        (with_terms, IndexTerms((), boxes=[(0, 0, 1, 1)]), ValueError()),
        (with_terms, IndexTerms((), boxes=[(0, 0, 1, 1)]), IndexTerms((), boxes=[(2, 0, 3, 1)])),
        (with_terms, None, IndexTerms((), [TEA])),
        (with_terms, IndexTerms([TEA]), None),
        (with_terms, IndexTerms([TEA], [MILK], {"tea"}), IndexTerms([TEA], [MILK], frozenset({"tea"}))),
        (with_keys, TEA, ValueError()),
        (with_keys, TEA, MILK),
    ],
)
def test_a_filter_with_changing_answers_is_removed_completely(
    registry: Registry, make: Callable[[Any], type[Odd]], first: Any, later: Any
) -> None:
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


def test_the_index_terms_of_a_plugin_are_read_once() -> None:
    subscription = Subscription([with_terms(IndexTerms([TEA]), IndexTerms([MILK]))()])
    assert [terms and terms.exact for terms in (*subscription.index_terms(), *subscription.index_terms())] == [
        [TEA],
        [TEA],
    ]


def test_a_changed_subscription_keeps_the_terms_of_its_plugins(registry: Registry) -> None:
    subscription = parsed(registry, with_terms(IndexTerms([TEA]), ValueError("gone")), follow="@me", track="milk")
    index: SubscriptionIndex[str] = SubscriptionIndex()
    changed = subscription.with_following({"7"}).replace_base(Track.parse("water"))
    index.add("odd", changed.without_failed(FilterFailure(changed.bases[1], ValueError())))
    assert [index.match(event) for event in (*CROWD[:2], post("water"))] == [["odd"], [], ["odd"]]


def test_a_key_stays_if_a_filter_raises_on_its_removal(registry: Registry) -> None:
    following = {"7", "8"}
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add(
        "odd", parsed(registry, with_keys(TEA, OSError("the list is gone")), follow="@me").with_following(following)
    )
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

INVALID_TERMS: list[tuple[Any, str]] = [
    (7, "must return a filters.index_keys.IndexTerms"),
    (((TEA,), ()), "must return a filters.index_keys.IndexTerms"),
    (ValueError("no luck"), "no luck"),
    (IndexTerms(5), "not iterable"),  # type: ignore[arg-type]  # invalid
    (IndexTerms(["tea"]), "keys must be a set of strings"),  # type: ignore[list-item]  # invalid
    (IndexTerms((), [frozenset({"tea", 2})]), "keys must be a set of strings"),  # type: ignore[arg-type]  # invalid
    (IndexTerms((), (), {"tea", 2}), "keys must be a set of strings"),  # type: ignore[arg-type]  # invalid
    (IndexTerms((), (), ["tea"]), "keys must be a set of strings"),
    (IndexTerms((), boxes=[(0, 0, 1)]), "unpack"),  # type: ignore[list-item]  # invalid
    (IndexTerms((), boxes=[(0, 0, 1, "1")]), "bad operand"),  # type: ignore[list-item]  # invalid
    *(
        (IndexTerms([TEA], boxes=[(0, 0, 1, 1), box]), "a box must be west")
        for box in ((NAN, 0, 1, 1), (0, 0, 1, NAN), (-181, 0, 1, 1), (0, 0, 1e999, 1), (0, -91, 1, 1), (0, 0, 1, 91))
    ),
]
"""Index terms that no index can hold, and the message."""


@pytest.mark.parametrize(("terms", "message"), INVALID_TERMS)
@pytest.mark.parametrize("role", ["combinable", "standalone"])
def test_invalid_index_terms_are_refused(registry: Registry, role: Role, terms: Any, message: str) -> None:
    odd = with_terms(terms)
    odd.role = role
    with pytest.raises(ParameterError, match=r"^the filter odd raised \w+$") as refusal:
        parsed(registry, odd)
    assert refusal.value.param == "odd"
    assert message in str(refusal.value.__cause__), "the text of the exception is for the operator"


@pytest.mark.parametrize("keys", [frozenset({1}), frozenset({"tea", 2}), 7, ValueError()])
def test_invalid_keys_are_refused(registry: Registry, keys: Any) -> None:
    with pytest.raises(ParameterError, match="the filter odd raised"):
        parsed(registry, with_keys(keys))
    with pytest.raises(ParameterError, match=r"odd raised .*column 9: expected another value of odd"):
        Rule.parse("tea odd:1", registry)


def test_invalid_keys_and_terms_of_an_operator_are_refused(registry: Registry) -> None:
    one, other = with_keys(frozenset({1})), with_terms(7)
    other.name = "other"
    install(registry, one)
    install(registry, other)
    for text in ("tea odd:1", "tea other:1"):
        with pytest.raises(ParameterError, match="raised TypeError"):
            Rule.parse(text, registry)


def test_a_failed_addition_leaves_nothing() -> None:
    index: SubscriptionIndex[str] = SubscriptionIndex()
    with pytest.raises(FilterFailure, match="odd raised ValueError"):
        index.add("odd", Subscription([Track.parse("tea"), with_terms(ValueError())()], [Track.parse("tea")]))
    assert (len(index), index.match(post("tea")), index._groups) == (0, [], {})


def test_the_index_copies_the_terms() -> None:
    clauses = [set(TEA)]
    box = [0.0, 0.0, 1.0, 1.0]
    terms = IndexTerms((frozenset(one) for one in [MILK]), clauses, boxes=[box])  # type: ignore[arg-type, list-item]  # invalid
    index: SubscriptionIndex[str] = SubscriptionIndex()
    index.add("odd", Subscription([with_terms(terms)()]))
    clauses[0].clear()
    clauses.clear()
    box[2] = 3.0
    assert [index.match(event) for event in CROWD[:4]] == [["odd"], ["odd"], ["odd"], []]
    index.remove("odd")
    assert [index.match(event) for event in CROWD] == [[], [], [], [], []]


def test_terms_of_built_in_filters_are_not_cached() -> None:
    subscription = Subscription([Follow.parse("7,8,9"), Track.parse("tea,milk"), with_terms(None)()])
    assert subscription.index_terms()[0] is not subscription.index_terms()[0]
    assert [base.name for base, _ in subscription._plugin_index_terms] == ["odd"]


@pytest.mark.parametrize(
    ("terms", "keys"),
    [
        (None, None),
        (IndexTerms([frozenset({"tea", "samovar"})], [MILK]), {"samovar", "milk"}),
        (IndexTerms([TEA, frozenset()]), None),
        (IndexTerms((), boxes=[(-180, -90, 180, 90), (0, 0, 0.5, 0.5)]), {"\x1em", "\x1em!", "\x1em1:0:0"}),
        (IndexTerms([], (), {"tea"}), {"tea"}),
    ],
)
def test_an_operator_with_terms_only_has_their_keys(
    registry: Registry, terms: IndexTerms | None, keys: set[Key] | None
) -> None:
    install(registry, with_terms(terms))
    found = Rule.parse("odd:1", registry).keys()
    assert found is None if keys is None else found is not None and keys <= found


class Area(Odd):
    """A filter with boxes only: one over the date line, and one without a whole square."""

    boxes: ClassVar[list[tuple[float, float, float, float]]] = [(177, -19, -178, -16), (13.1, 52.3, 13.8, 52.7)]

    def index_terms(self) -> IndexTerms:
        return IndexTerms((), boxes=self.boxes)

    def matches(self, event: Event) -> bool:
        return event.point is not None and (abs(event.point[0]) > 177 or 13.1 <= event.point[0] <= 13.8)


def test_boxes_index_a_rule_like_a_parameter(registry: Registry) -> None:
    install(registry, Area)
    index: SubscriptionIndex[str] = SubscriptionIndex()
    for name in ("odd", "rule"):
        index.add(name, parse_subscription({name: "odd:1"}, registry))
    assert index.scanned_count == 0
    points = [(179.5, -17.0), (-179.0, -17.0), (13.4, 52.5)]
    assert [sorted(index.match(post(point=point))) for point in points] == [["odd", "rule"]] * 3
    assert index.match(post("tea", point=(20.0, 52.5))) == []
    assert not any(map(operator.attrgetter("unindexed_bases"), index._subscriptions.values()))
