"""The index terms of a rule, and plug-in filters as operators."""

from collections.abc import Hashable
from typing import ClassVar, Self

import pytest

from filters.base import Filter, Role
from filters.event import Event
from filters.index_keys import CONVERSATION, FLAG, QUOTED, Clause, Key, user_key
from filters.registry import Registry
from filters.rules.condition import RuleError
from filters.rules.rule import MAX_CLAUSES, Rule
from tests.filters.plugin import install
from tests.filters.texts import post


class Shouts(Filter):
    """Posts in capitals, without keys. ``boom`` raises in ``matches``, ``bang`` in ``parse``."""

    name: ClassVar[str] = "shouts"
    role: ClassVar[Role] = "combinable"
    help: ClassVar[str] = "Posts in capitals."

    def __init__(self, value: str) -> None:
        self.value = value

    @classmethod
    def parse(cls, value: str) -> Self:
        if value == "bang":
            raise KeyError(value)
        return cls(value)

    @property
    def canonical_form(self) -> Hashable:
        return self.value

    def matches(self, event: Event) -> bool:
        if self.value == "boom":
            raise RuntimeError(self.value)
        return event.text.isupper()


class Narrow(Shouts):
    """The same filter with the role narrowing."""

    name: ClassVar[str] = "narrow"
    role: ClassVar[Role] = "narrowing"


class Scoped(Shouts):
    """The same filter with a scope."""

    name: ClassVar[str] = "scoped"
    scopes: ClassVar[frozenset[str]] = frozenset({"firehose"})


class Private(Shouts):
    """The same filter, not usable in rules."""

    name: ClassVar[str] = "private"
    usable_in_rules: ClassVar[bool] = False


@pytest.fixture
def more(registry: Registry) -> Registry:
    for filter_class in (Shouts, Narrow, Scoped, Private):
        install(registry, filter_class)
    return registry


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("tea", {"tea", QUOTED + "tea"}),
        ("tea #tea", {"#tea", QUOTED + "#tea"}),
        ("tea from:7", {user_key("7")}),
        ("tea OR from:7", {"tea", QUOTED + "tea", user_key("7")}),
        ("marmalade (tea OR milk)", {"marmalade", QUOTED + "marmalade"}),
        ("tea -marmalade", {"tea", QUOTED + "tea"}),
        ("tea has:media lang:en", {"tea", QUOTED + "tea"}),
        ('"a marmalade"', {"marmalade", QUOTED + "marmalade"}),
    ],
)
def test_the_rarest_required_key_is_indexed(registry: Registry, text: str, keys: set[Key]) -> None:
    assert Rule.parse(text, registry).keys() == frozenset(keys)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("tea", 2), ("tea milk", 4), ("tea OR milk", 4), ("a b c d", 16), ("a b c d e", None)),
        *(("tea tea tea tea tea tea", 3), ("conversation_id:1 place:paris has:media lang:en", 1)),
        *(
            ("tea -milk", None),
            ('"tea"', None),
            ("from:7", None),
            ("tea sample:50", None),
            ("follow:7 kinds:like", None),
        ),
        *(("follow:7 tea", 2), ("track:tea", 1), ("東京", 2), ("東京タワー", None)),
    ],
)
def test_few_plain_operators_have_exact_clauses(registry: Registry, text: str, count: int | None) -> None:
    assert _exact_count(text, registry) == count
    assert count is None or count <= MAX_CLAUSES


def _exact_count(text: str, registry: Registry) -> int | None:
    """Return the number of exact clauses of a rule, or None if clauses do not decide it."""
    terms = Rule.parse(text, registry).index_terms
    return None if terms is None or terms.candidates else len(terms.exact)


def test_clauses_are_bounded(registry: Registry) -> None:
    threads = [f"conversation_id:{n}" for n in range(MAX_CLAUSES + 1)]
    assert _exact_count(" OR ".join(threads[1:]), registry) == MAX_CLAUSES
    assert _exact_count(" OR ".join(threads), registry) is None


@pytest.mark.parametrize(
    ("text", "candidates"),
    [
        ("tea -milk", [{"tea"}, {QUOTED + "tea"}]),
        ("from:7 conversation_id:8 -milk", [{user_key("7"), CONVERSATION + "8"}]),
        ("from:7 has:media -milk", [{user_key("7"), FLAG + "has:media"}]),
        ("from:7 tea -milk", [{user_key("7"), "tea"}, {user_key("7"), QUOTED + "tea"}]),
        ("from:7 OR conversation_id:8 -milk", [{user_key("7")}, {CONVERSATION + "8"}]),
        ("from:7 (a OR b OR c) -milk", [{user_key("7")}]),
        ("shouts:yes -milk", []),
        ("from:7 OR shouts:yes", []),
    ],
)
def test_candidate_clauses_need_several_keys(more: Registry, text: str, candidates: list[set[Key]]) -> None:
    terms = Rule.parse(text, more).index_terms
    assert set(terms.candidates if terms else ()) == set(map(frozenset, candidates))


def test_clauses_mix_keys_of_text_and_quoted_text(registry: Registry) -> None:
    terms = Rule.parse("tea milk", registry).index_terms
    pairs: set[Clause] = {frozenset((a, b)) for a in ("tea", QUOTED + "tea") for b in ("milk", QUOTED + "milk")}
    assert set(terms.exact if terms else ()) == pairs


def test_an_installed_filter_is_an_operator(more: Registry) -> None:
    alone = Rule.parse("shouts:yes", more)
    assert (alone.matches(post("HELLO")), alone.matches(post("hello")), alone.keys()) == (True, False, None)
    beside = Rule.parse("hello -shouts:yes narrow:yes", more)
    assert beside.matches(post("HELLO")) is False
    assert beside.keys() == frozenset({"hello", QUOTED + "hello"})
    assert Rule.parse("hello OR shouts:yes", more).keys() is None
    assert Rule.parse('hello narrow:"a \\" b"', more).text == 'hello narrow:"a \\" b"'


@pytest.mark.parametrize(
    "text", ["narrow:yes", "scoped:yes", "private:yes", "shouts:bang", "sample:50", "firehose:true"]
)
def test_filters_that_may_not_be_in_rules_are_refused(more: Registry, text: str) -> None:
    with pytest.raises(RuleError):
        Rule.parse(text, more)


def test_an_error_of_a_filter_is_raised(more: Registry) -> None:
    with pytest.raises(RuntimeError, match="boom"):
        Rule.parse("hello shouts:boom", more).matches(post("hello"))


def test_an_explanation_shows_an_error_of_its_part(more: Registry) -> None:
    explained = Rule.parse("hello shouts:boom OR milk", more).explain(post("hello milk"))
    hello, boom = explained.parts[0].parts
    assert (hello.matched, boom.matched, boom.why) == (True, False, "it raised RuntimeError")
    assert (explained.matched, isinstance(explained.error, RuntimeError)) == (True, True)
    assert not Rule.parse("hello -shouts:boom", more).explain(post("hello")).matched


def test_repr(registry: Registry) -> None:
    assert repr(Rule.parse("TEA  milk", registry)) == "<Rule tea milk>"
    assert Rule.parse("tea", registry) != "tea"
