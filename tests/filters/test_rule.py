"""`rule` and `rules`: many rules at once, each with an id and a tag."""

from collections.abc import Iterator

import pytest

from filters.base import DisabledFilter, FilterFailure
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import CONVERSATION, QUOTED, IndexTerms, user_key
from filters.registry import Registry
from filters.rule import MAX_KEYS, MAX_RULES, Rules, SavedRules
from filters.rules.condition import RuleError
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription, parse_subscription
from filters.subscription_index import SubscriptionIndex
from tests.filters.plugin import install
from tests.filters.rules.test_rule import Shouts
from tests.filters.texts import post


def _marks(rules: Rules, text: str) -> list[tuple[str, str]]:
    return [(mark["id"], mark["tag"]) for mark in rules.matched_items(post(text))]


def test_rules_of_a_stream_have_ids_by_line_and_tags(registry: Registry) -> None:
    rules = Rules.parse_with("milk:milk OR cream\ntea\nBoth-1:tea milk", registry)
    assert _marks(rules, "tea with milk") == [("r1", "milk"), ("r2", ""), ("r3", "Both-1")]
    assert _marks(rules, "cream") == [("r1", "milk")]
    assert _marks(rules, "water") == []
    assert (rules.matches(post("cream")), rules.matches(post("water"))) == (True, False)
    terms = rules.index_terms()
    assert terms is not None
    assert terms.keys() == frozenset(key for word in ("milk", "tea", "cream") for key in (word, QUOTED + word))


def test_operators_are_no_tags(registry: Registry) -> None:
    assert _marks(Rules.parse_with("FROM:ada", registry), "from ada") == []
    assert _marks(Rules.parse_with("track:tea", registry), "tea") == [("r1", "")]
    assert _marks(Rules.parse_with("-track:milk tea", registry), "tea") == [("r1", "")]
    for tag in ("breakfast", "two", "long", "lan", "too", "kind", "urls", "since", "explain"):
        assert _marks(Rules.parse_with(f"{tag}:tea", registry), "tea") == [("r1", tag)]
    with pytest.raises(RuleError, match="unknown operator `firehose:`"):
        Rules.parse_with("firehose:true", registry)


def test_a_refusal_names_the_rule_and_the_column(registry: Registry) -> None:
    with pytest.raises(RuleError, match="rule 2: ") as refusal:
        Rules.parse_with("tea\nnews:(tea", registry)
    assert (refusal.value.column, refusal.value.expected) == (10, "a closing parenthesis")
    with pytest.raises(ParameterError, match="at most 100") as many:
        Rules.parse_with("\n".join(["tea"] * (MAX_RULES + 1)), registry)
    assert (many.value.code, many.value.param) == ("too_many", "rule")
    assert len(Rules.parse_with("\n".join(["tea"] * MAX_RULES), registry)) == MAX_RULES


def test_equal_rules_are_one_subscription(registry: Registry) -> None:
    one, other = (parse_subscription({"rule": text}, registry) for text in ("a:Tea  milk", "a:tea (milk)"))
    assert (one == other, one.reports_matches, one.matches(post("milk tea"))) == (True, True, True)
    assert Rules.parse_with("a:tea", registry) != Rules.parse_with("b:tea", registry)
    assert Rules.parse_with("tea\nmilk", registry) != Rules.parse_with("milk\ntea", registry)


def test_reasons_name_the_parts(registry: Registry) -> None:
    rules = Rules.parse_with("t:tea lang:en -milk\nwater", registry)
    assert rules.explain(post("hot tea", lang="en")) == [
        {
            "id": "r1",
            "tag": "t",
            "filter": "rule",
            "parts": [{"part": "tea", "indices": [[4, 7]]}, {"part": "lang:en", "indices": []}],
        }
    ]
    assert rules.explain(post("coffee")) == []


def test_index_terms_of_exact_inexact_and_many_rules(registry: Registry) -> None:
    exact = Rules.parse_with("tea\nmilk", registry).index_terms()
    assert exact is not None
    assert (len(exact.exact), exact.candidates) == (4, set())
    terms = Rules.parse_with("from:7 -tea\nconversation_id:8", registry).index_terms()
    assert terms == IndexTerms({frozenset({CONVERSATION + "8"})}, {frozenset({user_key("7")})})
    many = Rules.parse_with("\n".join(f"word{n} -tea" for n in range(33)), registry).index_terms()
    assert many is not None
    assert (len(many.exact), len(many.candidates), {len(candidate) for candidate in many.candidates}) == (0, 66, {1})
    install(registry, Shouts)
    assert Rules.parse_with("tea\nshouts:yes", registry).index_terms() is None


def test_a_rule_without_keys_is_checked_each_time(registry: Registry) -> None:
    install(registry, Shouts)
    rules = Rules.parse_with("\n".join(["shouts:yes", *(f"word{n}" for n in range(9))]), registry)
    assert (rules.index_terms(), _marks(rules, "WORD3")) == (None, [("r1", ""), ("r5", "")])


def test_only_a_failed_rule_is_disabled(registry: Registry) -> None:
    install(registry, Shouts)
    rules = Rules.parse_with("#tea\nbad:tea shouts:boom\nmilk", registry)
    for ask in (rules.matches, rules.matching_rules, rules.matched_items, rules.explain):
        with pytest.raises(FilterFailure) as failure:
            ask(post("tea with milk"))
        assert (failure.value.filter, failure.value.rule_id) == (rules, "r2")
    left = rules.without_failed("r2")
    assert isinstance(left, Rules)
    assert _marks(left, "#tea with milk") == [("r1", ""), ("r3", "")]
    assert isinstance(rules.without_failed(None), DisabledFilter)


def test_saved_rules_change_with_their_user(registry: Registry) -> None:
    empty = SavedRules.parse_with("saved", registry)
    assert (empty.index_terms(), empty.matches(post("tea")), len(empty)) == (IndexTerms(set(), set()), False, 0)
    tea, milk = (NamedRule(str(n), "", Rule.parse(text, registry)) for n, text in enumerate(("tea", "milk")))
    saved = SavedRules("7", [tea])
    changed = saved.with_changes([milk], ["0"])
    assert (_marks(saved, "tea milk"), _marks(changed, "tea milk")) == ([("0", "")], [("1", "")])
    assert (changed.user_id, changed == SavedRules("7", [milk]), changed == SavedRules("8", [milk])) == (
        "7",
        True,
        False,
    )
    with pytest.raises(ParameterError, match="`saved`"):
        SavedRules.parse_with("true", registry)


class Asked(Rule):
    """A rule that counts all calls of ``matches``."""

    __slots__ = ()

    count = 0

    def __init__(self, text: str, registry: Registry) -> None:
        super().__init__(Rule.parse(text, registry).node)
        check = self.matches

        def counted(event: Event) -> bool:
            Asked.count += 1
            return check(event)

        self.matches = counted


def _asked(registry: Registry) -> Iterator[NamedRule]:
    for n in range(1_000):
        yield NamedRule(str(n), "", Asked(f"word{n} tea", registry))


def test_only_rules_with_a_found_key_are_checked(registry: Registry) -> None:
    rules = SavedRules("7", _asked(registry))
    Asked.count = 0
    assert _marks(rules, "tea word7 word44 and much else") == [("7", ""), ("44", "")]
    assert _marks(rules, "tea") == []
    assert Asked.count == 2


def _keys(rules: Rules) -> frozenset[str] | None:
    terms = rules.index_terms()
    return terms and terms.keys()


def test_changed_rules_equal_newly_made_ones(registry: Registry) -> None:
    named = [NamedRule(str(n), "", Rule.parse(f"w{n % 7} OR v{n}", registry)) for n in range(40)]
    first = SavedRules("1", named[:20])
    gone = [one.id for one in named[:30:3]]
    changed = (
        first.with_changes(named[20:30], ())
        .with_changes((), gone)
        .with_changes(named[30:], ("39",))
        .with_changes((), ("31", "0"))
    )
    made = SavedRules("1", [one for one in named if one.id not in {*gone, "31"}])
    assert (changed, [*changed.named_rules]) == (made, [*made.named_rules])
    assert _keys(changed) == _keys(made)
    for text in ("w1 w3", "v5", "v22", "v39", "v0", "v31", "w6"):
        assert changed.matched_items(post(text)) == made.matched_items(post(text)), text
    assert [*first.named_rules] == named[:20]
    assert first.matched_items(post("v0"))
    assert not first.matched_items(post("v22"))


@pytest.mark.parametrize("count", [3, 40])
def test_a_changed_rule_keeps_its_place(registry: Registry, count: int) -> None:
    """So streams that saw the change name the matching rules in the order of those that begin after it."""
    named = [NamedRule(str(n), "", Rule.parse(f"w{n % 7} OR v{n}", registry)) for n in range(count)]
    first = SavedRules("1", named)
    assert _marks(first, "w1 tea") == [(one.id, "") for one in named[1::7]]
    new = [NamedRule("1", "new", Rule.parse("tea", registry)), NamedRule("99", "", Rule.parse("tea", registry))]
    changed = first.with_changes(new, ())
    made = SavedRules("1", [named[0], new[0], *named[2:], new[1]])
    assert (changed, [*changed.named_rules], _keys(changed)) == (made, [*made.named_rules], _keys(made))
    assert _marks(changed, "w0 v1 tea") == _marks(made, "w0 v1 tea")
    assert _marks(changed, "v1") == []
    assert _marks(first, "v1 tea") == [("1", "")]


def test_rules_with_very_many_keys_are_not_indexed(registry: Registry) -> None:
    words = [f"w{n}" for n in range(MAX_KEYS // 2 + 1)]
    few, many = (
        SavedRules("1", [NamedRule(word, "", Rule.parse(word, registry)) for word in words[:size]])
        for size in (MAX_KEYS // 2, MAX_KEYS // 2 + 1)
    )
    assert few.index_terms() is not None
    assert many.index_terms() is None
    index = SubscriptionIndex[str]()
    index.add("many", Subscription([many]))
    assert index.scanned_count == 1
    assert index.match(post(words[-1])) == ["many"]
    assert index.match(post("nothing of it")) == []
    index.remove("many")
    assert index.scanned_count == 0
