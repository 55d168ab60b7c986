"""By what the index finds a rule, and what an installed filter may be in one."""

from collections.abc import Hashable
from typing import ClassVar, Self

import pytest

from filters.base import Filter, Role
from filters.event import Event
from filters.index_keys import Clause, Key, conversation_key, flag_key, quoted_key, user_key
from filters.registry import Registry
from filters.rules.error import RuleError
from filters.rules.rule import MAX_CLAUSES, Rule
from tests.filters.texts import post


class Shouts(Filter):
    """Posts in capitals: has no keys. ``boom`` raises where it is asked, ``bang`` where it is read."""

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
    """The same, to narrow with."""

    name: ClassVar[str] = "narrow"
    role: ClassVar[Role] = "narrowing"


class Scoped(Shouts):
    """Needs a scope."""

    name: ClassVar[str] = "scoped"
    scopes: ClassVar[frozenset[str]] = frozenset({"firehose"})


class Private(Shouts):
    """Does not want to be in rules."""

    name: ClassVar[str] = "private"
    usable_in_rules: ClassVar[bool] = False


@pytest.fixture
def more(registry: Registry) -> Registry:
    """The built-in filters and those above."""
    for filter_class in (Shouts, Narrow, Scoped, Private):
        registry.register(filter_class)
    return registry


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("tea", {"tea", quoted_key("tea")}),
        ("tea #tea", {"#tea", quoted_key("#tea")}),
        ("tea from:7", {user_key("7")}),
        ("tea OR from:7", {"tea", quoted_key("tea"), user_key("7")}),
        ("marmalade (tea OR milk)", {"marmalade", quoted_key("marmalade")}),
        ("tea -marmalade", {"tea", quoted_key("tea")}),
        ("tea has:media lang:en", {"tea", quoted_key("tea")}),
        ('"a marmalade"', {"marmalade", quoted_key("marmalade")}),
    ],
)
def test_the_index_looks_for_the_rarest_that_must_be_there(registry: Registry, text: str, keys: set[Key]) -> None:
    """Of an AND one part, of an OR all."""
    assert Rule.parse(text, registry).candidate_keys() == frozenset(keys)


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
def test_a_rule_of_few_plain_operators_is_said_exactly(registry: Registry, text: str, count: int | None) -> None:
    """So that finding is proof; what is negated or looked at closer cannot be."""
    clauses = Rule.parse(text, registry).exact_clauses()
    assert (None if clauses is None else len(clauses)) == count
    assert count is None or count <= MAX_CLAUSES


def test_clauses_have_a_bound(registry: Registry) -> None:
    """To the bound and no further."""
    threads = [f"conversation_id:{n}" for n in range(MAX_CLAUSES + 1)]
    assert len(Rule.parse(" OR ".join(threads[1:]), registry).exact_clauses() or ()) == MAX_CLAUSES
    assert Rule.parse(" OR ".join(threads), registry).exact_clauses() is None


@pytest.mark.parametrize(
    ("text", "hints"),
    [
        ("tea -milk", [{"tea"}, {quoted_key("tea")}]),
        ("from:7 conversation_id:8 -milk", [{user_key("7"), conversation_key("8")}]),
        ("from:7 has:media -milk", [{user_key("7"), flag_key("has:media")}]),
        ("from:7 tea -milk", [{user_key("7"), "tea"}, {user_key("7"), quoted_key("tea")}]),
        ("from:7 OR conversation_id:8 -milk", [{user_key("7")}, {conversation_key("8")}]),
        ("from:7 (a OR b OR c) -milk", [{user_key("7")}]),
        ("shouts:yes -milk", []),
        ("from:7 OR shouts:yes", []),
    ],
)
def test_what_is_not_exact_is_asked_only_where_more_than_one_key_is(
    more: Registry, text: str, hints: list[set[Key]]
) -> None:
    """As many parts of an AND as leave few clauses, the rarest first."""
    assert set(Rule.parse(text, more).candidate_clauses()) == set(map(frozenset, hints))


def test_clauses_are_exact(registry: Registry) -> None:
    """Their keys are those of the text and of the quoted text, mixed."""
    clauses = Rule.parse("tea milk", registry).exact_clauses()
    pairs: set[Clause] = {frozenset((a, b)) for a in ("tea", quoted_key("tea")) for b in ("milk", quoted_key("milk"))}
    assert set(clauses or ()) == pairs


def test_an_installed_filter_is_an_operator(more: Registry) -> None:
    """One that narrows beside others, one of role any by itself; without keys the rule has none."""
    alone = Rule.parse("shouts:yes", more)
    assert (alone.matches(post("HELLO")), alone.matches(post("hello")), alone.candidate_keys()) == (True, False, None)
    beside = Rule.parse("hello -shouts:yes narrow:yes", more)
    assert beside.matches(post("HELLO")) is False
    assert beside.candidate_keys() == frozenset({"hello", quoted_key("hello")})
    assert Rule.parse("hello OR shouts:yes", more).candidate_keys() is None
    assert Rule.parse('hello narrow:"a \\" b"', more).text == 'hello narrow:"a \\" b"'


@pytest.mark.parametrize(
    "text", ["narrow:yes", "scoped:yes", "private:yes", "shouts:bang", "sample:50", "firehose:true"]
)
def test_what_may_not_stand_alone_or_in_rules_is_refused(more: Registry, text: str) -> None:
    """A narrowing alone, a filter with a scope of its own, one that does not want it, one that raises."""
    with pytest.raises(RuleError):
        Rule.parse(text, more)


def test_what_a_filter_raises_is_raised(more: Registry) -> None:
    """Whoever holds the rule says which one it was."""
    with pytest.raises(RuntimeError, match="boom"):
        Rule.parse("hello shouts:boom", more).matches(post("hello"))


def test_an_explanation_says_what_was_raised(more: Registry) -> None:
    """Of the part that raised; the others are explained all the same."""
    told = Rule.parse("hello shouts:boom OR milk", more).explain(post("hello milk"))
    hello, boom = told.parts[0].parts
    assert (hello.matched, boom.matched, boom.why) == (True, False, "it raised RuntimeError('boom')")
    assert (told.matched, isinstance(told.error, RuntimeError)) == (True, True)
    assert not Rule.parse("hello -shouts:boom", more).explain(post("hello")).matched


def test_a_rule_shows_itself(registry: Registry) -> None:
    """Its representation is its text."""
    assert repr(Rule.parse("TEA  milk", registry)) == "<Rule tea milk>"
    assert Rule.parse("tea", registry) != "tea"
