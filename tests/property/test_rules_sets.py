"""Several rules together match as each of them alone, and any lines are rules or refused."""

import pytest
from hypothesis import event as note
from hypothesis import strategies as st

from filters.entities import extract_entities
from filters.error import ParameterError
from filters.event import Event
from filters.registry import Registry
from filters.rule import Rules
from filters.rules.rule import Rule
from filters.testing import example_events
from filters.tokens import fold
from tests.property.laws import Holds
from tests.property.rules import anything, rules
from tests.property.statuses import posted

pytestmark = pytest.mark.timeout(3600)  # for the long form

REGISTRY = Registry.from_entry_points()
EVENTS = example_events()
TAGS = ("", "", "morning", "x-1", "T" * 60)


def _each_alone(lines: list[tuple[str, str]], event: Event) -> None:
    together = Rules.parse("\n".join(f"{tag}:{text}" if tag else text for tag, text in lines))
    alone = [
        {"id": f"r{nth}", "tag": tag}
        for nth, (tag, text) in enumerate(lines, start=1)
        if Rule.parse(text, REGISTRY).matches(event)
    ]
    note(f"{len(alone)} matched")
    assert together.matches(event) is bool(alone)
    assert sorted(together.matched_items(event), key=lambda mark: str(mark["id"])) == alone
    assert [named.id for named in together.matching_rules(event)] == [
        mark["id"] for mark in together.matched_items(event)
    ]


def test_rules_together_match_as_each_alone(holds: Holds) -> None:
    lines = st.lists(st.tuples(st.sampled_from(TAGS), rules()), min_size=1, max_size=5)
    holds(_each_alone, lines, posted().map(lambda one: one.event), cases=300)


def _reasons_stand_in_the_text(texts: list[str], event: Event) -> None:
    for mark in Rules.parse("\n".join(texts)).explain(event):
        assert mark["filter"] == "rule"
        assert mark["id"]
        for part in mark["parts"]:
            assert part["part"] in Rule.parse(texts[int(str(mark["id"])[1:]) - 1], REGISTRY).text
            for start, end in part["indices"]:
                assert 0 <= start < end <= len(event.text)


def test_reasons_point_into_the_text(holds: Holds) -> None:
    texts = st.lists(rules(), min_size=1, max_size=2)
    holds(_reasons_stand_in_the_text, texts, posted().map(lambda one: one.event), cases=300)


def _pointed_at(word: str, around: tuple[str, str]) -> None:
    text = f"{around[0]} {word} {around[1]}"
    (mark,) = Rules.parse(word).explain(Event("post", text=text, entities=extract_entities(text)))
    ((part,),) = [mark["parts"]]
    # The position of a word in a link is that of the whole link.
    assert all(fold(word) in fold(text[start:end]) for start, end in part["indices"])
    assert [len(around[0]) + 1, len(around[0]) + 1 + len(word)] in [list(pair) for pair in part["indices"]]


def test_reasons_have_the_positions_of_a_keyword(holds: Holds) -> None:
    around = st.sampled_from(["", "😍😍", "tea", "#tea", "cafe\u0301", "ß İ", "東京", "http://a.co/tea", "x\n\n"])
    words = st.sampled_from(["tea", "Milk", "東京", "café", "cafe\u0301", "Straße", "😍"])
    holds(_pointed_at, words, st.tuples(around, around), cases=300)


def _is_of_the_parameter(refusal: ParameterError) -> None:
    assert refusal.param == "rule"
    assert refusal.code in ("invalid_parameter", "too_many")


def _rules_or_refusal(text: str) -> None:
    try:
        parsed = Rules.parse(text)
    except ParameterError as refusal:
        _is_of_the_parameter(refusal)
    else:
        assert Rules.parse(text) == parsed
        assert all(parsed.matches(event) in (True, False) for event in EVENTS)


def test_any_lines_are_rules_or_refused(holds: Holds) -> None:
    lines = st.lists(
        st.tuples(st.sampled_from(["", "", "t1:", "from:", "frm:", "a b:", ":", "-"]), anything()), max_size=4
    )
    holds(_rules_or_refusal, lines.map(lambda pairs: "\n".join(tag + text for tag, text in pairs)), cases=250)
