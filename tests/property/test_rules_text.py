"""Any text as a rule: canonical form, refusals with a column, and bounded cost."""

import sys
import unicodedata
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest
from hypothesis import event as note
from hypothesis import strategies as st

from filters.event import Event
from filters.registry import Registry
from filters.rules.condition import RuleError
from filters.rules.parser import format_node, parse_rule
from filters.rules.rule import Rule
from filters.testing import example_events
from tests import reference_rules
from tests.property.laws import Holds
from tests.property.rules import anything, operators, rules
from tests.property.statuses import Posted, posted

pytestmark = pytest.mark.timeout(3600)  # for the long form

REGISTRY = Registry.from_entry_points()
EVENTS = example_events()
MAX_LENGTH = 1024


def _shown_and_read_again(text: str, one: Posted) -> None:
    node = parse_rule(text, REGISTRY)
    shown = format_node(node)
    again = parse_rule(shown, REGISTRY)
    assert again == node
    assert format_node(again) == shown
    assert Rule.parse(text, REGISTRY) == Rule.parse(shown, REGISTRY)
    assert reference_rules.matches(shown, *one) is reference_rules.matches(text, *one)


def test_the_canonical_text_is_the_same_rule(holds: Holds) -> None:
    holds(_shown_and_read_again, rules(), posted(), cases=250)


def _rule_or_refusal(text: str) -> None:
    try:
        rule = Rule.parse(text, REGISTRY)
    except RuleError as refusal:
        note("refused")
        _tells_where(refusal, text)
    else:
        note("taken")
        _can_be_matched(rule)


def _tells_where(refusal: RuleError, text: str) -> None:
    assert (refusal.code, refusal.param) == ("invalid_parameter", "rule")
    assert 1 <= refusal.column <= len(text) + 1
    assert refusal.expected
    assert f"column {refusal.column}" in refusal.message
    assert refusal.message.endswith(refusal.expected)
    assert refusal.message.encode()  # raises on a lone surrogate, which cannot be sent
    assert not any(unicodedata.category(c) == "Cc" for c in refusal.message)


def _can_be_matched(rule: Rule) -> None:
    assert len(rule.text) <= 2 * MAX_LENGTH
    assert parse_rule(rule.text, REGISTRY) == rule.node
    assert format_node(parse_rule(rule.text, REGISTRY)) == rule.text
    keys, terms = rule.keys(), rule.index_terms
    for event in EVENTS:
        matched = rule.matches(event)
        assert rule.explain(event).matched is matched
        assert not matched or keys is None or keys & event.index_keys
        if terms is not None and not terms.candidates:
            assert any(clause <= event.index_keys for clause in terms.exact) is matched
        if terms is not None and matched:
            assert any(clause <= event.index_keys for clause in (*terms.exact, *terms.candidates))


def test_any_text_is_a_rule_or_refused_by_name_and_column(holds: Holds) -> None:
    holds(_rule_or_refusal, anything(), cases=500)


def _negated_groups() -> st.SearchStrategy[tuple[str, str, str, str]]:
    """An alternative, the text before a negated group, its inside, and the text after it."""
    one = operators()
    several = st.lists(one, min_size=1, max_size=3).map(" ".join)
    flat = st.lists(several, min_size=1, max_size=3).map(" OR ".join)
    nested = st.lists(st.one_of(several, flat.map("({})".format)), min_size=1, max_size=3)
    inside = st.one_of(flat, nested.map(" ".join), nested.map(" OR ".join))
    around = st.one_of(st.just(""), several, flat.map("({})".format))
    return st.tuples(st.one_of(st.just(""), rules()), around, inside, around)


def _holds(text: str, event: Event) -> bool:
    """Whether a text matches. It may not be valid alone, so it is combined with an operator that is true."""
    return not text or Rule.parse(f"from:{event.author} ({text})", REGISTRY).matches(event)


def _suggested_if_it_can_stand_there(pieces: tuple[str, str, str, str], one: Posted) -> None:
    other, before, inside, behind = pieces
    before, behind = f"{other} OR {before} " if other else f"{before} ", f" {behind}"
    with pytest.raises(RuleError, match="a group cannot be negated") as refusal:
        Rule.parse(f"{before}-({inside}){behind}", REGISTRY)
    if refusal.value.expected == "an operator right behind the minus":
        note("nothing can stand there")
        return
    note("suggested")
    pasted = Rule.parse(f"{before}{refusal.value.expected}{behind}", REGISTRY)
    event = one.event
    here = _holds(pieces[1], event) and not _holds(inside, event) and _holds(pieces[3], event)
    assert pasted.matches(event) is (here or (other != "" and _holds(other, event)))


def test_the_suggestion_for_a_negated_group_is_an_equal_rule(holds: Holds) -> None:
    holds(_suggested_if_it_can_stand_there, _negated_groups(), posted(), cases=250)


GROWING: dict[str, Callable[[int], str]] = {
    "words": lambda n: "a " * (n // 2),
    "alternatives": lambda n: "a OR " * (n // 5) + "a",
    "denials": lambda n: "a" + " -b" * (n // 3),
    "groups": lambda n: "(a OR b) " * (n // 9),
    "groups of groups": lambda n: ("(" * 16 + "a" + ")" * 16) * (n // 33),
    "open parentheses": lambda n: "(" * n,
    "closed parentheses": lambda n: ")" * n,
    "empty groups": lambda n: "()" * (n // 2),
    "nested": lambda n: "(" * (n // 2) + "a" + ")" * (n // 2 - 1),
    "nested alternatives": lambda n: "(a OR " * (n // 6) + "a",
    "quotes": lambda n: '"' * n,
    "phrases": lambda n: '"a b" ' * (n // 6),
    "one phrase": lambda n: '"' + "a " * (n // 2 - 1) + '"',
    "proximities": lambda n: '"a b"~6 ' * (n // 8),
    "minuses": lambda n: "-" * n,
    "brackets": lambda n: "bounding_box:[" + "1 " * (n // 2 - 8),
    "open brackets": lambda n: "[" * n,
    "colons": lambda n: "a:" * (n // 2),
    "an unknown operator": lambda n: "f" * (n - 2) + ":a",
    "unknown operators": lambda n: "frmo:a " * (n // 7),
    "people": lambda n: "from:1 OR " * (n // 10) + "from:1",
    "one word": lambda n: "a" * n,
    "one word with marks": lambda n: "a-" * (n // 2),
    "negated groups": lambda n: "a " + "-(b OR c) " * (n // 10),
    "a negated group": lambda n: "a -(" + "b OR " * (n // 5 - 2) + "c)",
    "negated groups of groups": lambda n: "a " + "-(" * (n // 8) + "b OR c" + ")" * (n // 8),
    "one tag": lambda n: "#" + "a" * (n - 1),
    "pictures": lambda n: "😍" * n,
    "joiners": lambda n: "👨\u200d" * (n // 2),
    "accents": lambda n: "a" + "\u0301\u0323" * (n // 2 - 1),
    "a script without blanks": lambda n: "東京" * (n // 2),
    "tags": lambda n: "#tea " * (n // 5),
    "groups without blanks": lambda n: "(tea)" * (n // 5),
    "escaped quotes": lambda n: '\\"' * (n // 2),
    "lists": lambda n: "track:tea " * (n // 10),
    "blanks": lambda n: "a" + " " * (n - 2) + "b",
    "digits": lambda n: "followers_count:" + "9" * (n - 16),
    "a list": lambda n: "track:" + "a," * (n // 2 - 3),
}
"""Costly texts by length. Each is parsed or refused."""


def _calls(work: Callable[[], object]) -> int:
    """The number of function calls of ``work``, a measure that does not depend on the load of the machine."""
    count = 0

    def counting(_: FrameType, what: str, __: object) -> None:
        nonlocal count
        count += what in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _read_and_asked(text: str) -> None:
    try:
        rule = Rule.parse(text, REGISTRY)
    except RuleError:
        return
    for event in EVENTS:
        rule.matches(event)
        rule.keys()


@pytest.mark.timeout(300)  # what no call shows, a pattern that tries everything, would take for ever
@pytest.mark.parametrize("growing", GROWING.values(), ids=GROWING)
def test_twice_the_text_is_no_more_than_twice_the_work(growing: Callable[[int], str]) -> None:
    _read_and_asked(growing(64))  # fills the caches
    half, whole = (_calls(partial(_read_and_asked, growing(length))) for length in (504, 1008))
    assert whole <= 2.2 * half + 100


def test_a_text_over_the_maximum_is_not_parsed() -> None:
    short, long = (_calls(partial(_read_and_asked, "(a OR b) " * number)) for number in (200, 100_000))
    assert long <= 2 * short
