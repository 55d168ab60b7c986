"""``rule`` and ``rules``: many rules at once, each known by id and tag."""

from collections.abc import Iterator

import pytest

from filters.base import DisabledFilter, FilterFailure
from filters.error import ParameterError
from filters.event import Event
from filters.index_keys import IndexTerms, conversation_key, quoted_key, user_key
from filters.params import parse_subscription
from filters.registry import Registry
from filters.rule import MAX_KEYS, MAX_RULES, Rules, SavedRules
from filters.rules.error import RuleError
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription
from filters.subscription_index import SubscriptionIndex
from tests.filters.rules.test_rule import Shouts
from tests.filters.texts import post


def _marks(rules: Rules, text: str) -> list[tuple[str, str]]:
    return [(mark["id"], mark["tag"]) for mark in rules.matched_items(post(text))]


def test_rules_of_a_stream_are_known_by_place_and_tag(registry: Registry) -> None:
    """One a line; each that matches is named, in their order."""
    rules = Rules.parse_with("milk:milk OR cream\ntea\nBoth-1:tea milk", registry)
    assert _marks(rules, "tea with milk") == [("r1", "milk"), ("r2", ""), ("r3", "Both-1")]
    assert _marks(rules, "cream") == [("r1", "milk")]
    assert _marks(rules, "water") == []
    assert (rules.matches(post("cream")), rules.matches(post("water"))) == (True, False)
    assert rules.candidate_keys() == frozenset(
        key for word in ("milk", "tea", "cream") for key in (word, quoted_key(word))
    )


def test_operators_are_no_tags(registry: Registry) -> None:
    """Nor are filters; what is only like one of them is a tag, whatever is installed."""
    assert _marks(Rules.parse_with("FROM:ada", registry), "from ada") == []
    assert _marks(Rules.parse_with("track:tea", registry), "tea") == [("r1", "")]
    assert _marks(Rules.parse_with("-track:milk tea", registry), "tea") == [("r1", "")]
    for tag in ("breakfast", "two", "long", "lan", "too", "kind", "urls", "since", "explain"):
        assert _marks(Rules.parse_with(f"{tag}:tea", registry), "tea") == [("r1", tag)]
    with pytest.raises(RuleError, match="unknown operator firehose:"):
        Rules.parse_with("firehose:true", registry)


def test_a_refusal_says_in_which_rule_and_where_it_was_written(registry: Registry) -> None:
    """Columns count the tag, as the client wrote it."""
    with pytest.raises(RuleError, match="rule 2: ") as refusal:
        Rules.parse_with("tea\nnews:(tea", registry)
    assert (refusal.value.column, refusal.value.expected) == (10, "a closing parenthesis")
    with pytest.raises(ParameterError, match="at most 100") as many:
        Rules.parse_with("\n".join(["tea"] * (MAX_RULES + 1)), registry)
    assert (many.value.code, many.value.param) == ("too_many", "rule")
    assert len(Rules.parse_with("\n".join(["tea"] * MAX_RULES), registry)) == MAX_RULES


def test_equal_rules_are_one_subscription(registry: Registry) -> None:
    """Equal in their canonical form, ids and tags, since these are told."""
    one, other = (parse_subscription({"rule": text}, registry) for text in ("a:Tea  milk", "a:tea (milk)"))
    assert (one == other, one.reports_matches, one.matches(post("milk tea"))) == (True, True, True)
    assert Rules.parse_with("a:tea", registry) != Rules.parse_with("b:tea", registry)
    assert Rules.parse_with("tea\nmilk", registry) != Rules.parse_with("milk\ntea", registry)


def test_reasons_name_the_parts(registry: Registry) -> None:
    """Where a stream asks for them."""
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


def test_what_can_be_said_exactly_is(registry: Registry) -> None:
    """Of all rules or of none, and not of very many."""
    assert len(Rules.parse_with("tea\nmilk", registry).exact_clauses() or ()) == 4
    assert Rules.parse_with("tea\nmilk -tea", registry).exact_clauses() is None
    assert Rules.parse_with("\n".join(f"word{n}" for n in range(33)), registry).exact_clauses() is None


def test_the_index_is_led_to_rules_by_proofs_and_hints(registry: Registry) -> None:
    """What is exact is proof; of very many rules only their keys are kept there; without keys there are no leads."""
    leads = Rules.parse_with("from:7 -tea\nconversation_id:8", registry).index_terms()
    assert leads == IndexTerms({frozenset({conversation_key("8")})}, {frozenset({user_key("7")})})
    many = Rules.parse_with("\n".join(f"word{n} -tea" for n in range(33)), registry).index_terms()
    assert many is not None
    assert (len(many.exact), len(many.candidates), {len(hint) for hint in many.candidates}) == (0, 66, {1})
    registry.register(Shouts)
    assert Rules.parse_with("tea\nshouts:yes", registry).index_terms() is None


def test_a_rule_without_keys_is_asked_each_time(registry: Registry) -> None:
    """Beside however many others."""
    registry.register(Shouts)
    rules = Rules.parse_with("\n".join(["shouts:yes", *(f"word{n}" for n in range(9))]), registry)
    assert (rules.candidate_keys(), _marks(rules, "WORD3")) == (None, [("r1", ""), ("r5", "")])


def test_one_rule_that_fails_is_taken_out_alone(registry: Registry) -> None:
    """It is named; the others go on under their ids."""
    registry.register(Shouts)
    rules = Rules.parse_with("#tea\nbad:tea shouts:boom\nmilk", registry)
    for ask in (rules.matches, rules.matching_rules, rules.matched_items, rules.explain):
        with pytest.raises(FilterFailure) as failure:
            ask(post("tea with milk"))
        assert (failure.value.filter, failure.value.rule_id) == (rules, "r2")
    left = rules.without_failed("r2")
    assert isinstance(left, Rules)
    assert _marks(left, "#tea with milk") == [("r1", ""), ("r3", "")]
    assert isinstance(rules.without_failed(None), DisabledFilter)


def test_saved_rules_are_their_users(registry: Registry) -> None:
    """Nothing until it is said which they are; then those, as they change."""
    empty = SavedRules.parse_with("saved", registry)
    assert (empty.candidate_keys(), empty.matches(post("tea")), len(empty)) == (frozenset(), False, 0)
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
    """A rule that counts how often any of them is asked."""

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


def test_a_thousand_rules_cost_what_their_keys_find(registry: Registry) -> None:
    """Only those are asked whose rarest word is there."""
    rules = SavedRules("7", _asked(registry))
    Asked.count = 0
    assert _marks(rules, "tea word7 word44 and much else") == [("7", ""), ("44", "")]
    assert _marks(rules, "tea") == []
    assert Asked.count == 2


def test_rules_that_changed_are_those_that_were_made_so(registry: Registry) -> None:
    """Whatever came and went before: in their order, by the same keys, and the old ones stay as they were."""
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
    assert (changed, changed.rule_ids, changed.candidate_keys()) == (made, made.rule_ids, made.candidate_keys())
    for text in ("w1 w3", "v5", "v22", "v39", "v0", "v31", "w6"):
        assert changed.matched_items(post(text)) == made.matched_items(post(text)), text
    assert first.rule_ids == [one.id for one in named[:20]]
    assert first.matched_items(post("v0"))
    assert not first.matched_items(post("v22"))


def test_rules_of_very_many_keys_are_asked_rather_than_listed(registry: Registry) -> None:
    """A change of theirs would take seconds; the index finds them all the same."""
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
