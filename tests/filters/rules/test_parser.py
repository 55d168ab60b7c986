"""The parser of rules: canonical text, and refusals with a column and what was expected there."""

import pytest

from filters.error import ParameterError
from filters.registry import Registry
from filters.rules.condition import RuleError
from filters.rules.parser import MAX_DEPTH, MAX_RULE_CHARS
from filters.rules.rule import Rule
from filters.testing import example_events
from tests.filters.rules.cases import REFUSED


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("tea", "tea"),
        ("  Tea   MILK ", "tea milk"),
        ("a b OR c", "a b OR c"),
        ("(a b) OR (c)", "a b OR c"),
        ("(a (b (c)))", "a b c"),
        ("a OR (b OR c)", "a OR b OR c"),
        ("(a OR b)c(-d)", "(a OR b) c -d"),
        ('"Hello, World!"', '"hello world"'),
        ("\uff03Tea", "#tea"),
        ("\u200bT\u00adea \ufe0f milk", "tea milk"),
        ('"buy \uff04TEA, now"', '"buy $tea now"'),
        ('"@bob님이"', '"bob 님이"'),
        ('bio:"$TEA"', 'bio:"$tea"'),
        ("sample:10.50 tea", "sample:10.5 tea"),
        ("tea followers_count:0..9 following_count:7..", "tea followers_count:..9 following_count:7"),
        ("point_radius:[ 2.350 -0.0 10.0KM ]", "point_radius:[2.35 0 10km]"),
        ('place:"New   York" place:"Paris"', 'place:"new york" place:paris'),
        ('url:"https://www.Example.com/a?b"', 'url:"example com a b"'),
        ('track:"a \\"b\\" \\\\"', 'track:"a \\"b\\" \\\\"'),
        ("META.Room:7.0 meta.x:AB", "meta.room:7.0 meta.x:ab"),
        ('meta."room":"7" meta."A \\"b\\"":"1..2"', 'meta.room:7 meta."a \\"b\\"":"1..2"'),
        ('meta."dc:title":tea meta."a(b":x', 'meta."dc:title":tea meta."a(b":x'),
        ("tea meta.x:-0.0..1.50 meta.x:100..", "tea meta.x:0..1.5 meta.x:100.."),
        ('tea has:META.Room has:"meta.a b"', 'tea has:meta.room has:"meta.a b"'),
        ("tea\tmilk\r\nsugar\u3000salt", "tea milk sugar salt"),
    ],
)
def test_a_rule_has_one_canonical_text(registry: Registry, written: str, shown: str) -> None:
    rule = Rule.parse(written, registry)
    assert rule.text == shown
    assert Rule.parse(shown, registry) == rule
    assert hash(Rule.parse(shown, registry)) == hash(rule)


@pytest.mark.parametrize(("text", "column", "expected"), REFUSED)
def test_a_refusal_has_column_and_expected_token(registry: Registry, text: str, column: int, expected: str) -> None:
    with pytest.raises(RuleError) as refusal:
        Rule.parse(text, registry)
    error = refusal.value
    assert (error.column, error.expected) == (column, expected)
    hint = expected if expected.startswith("did you mean") else f"expected {expected}"
    assert error.message.endswith(f"; column {column}: {hint}")
    assert (error.param, error.code, isinstance(error, ParameterError)) == ("rule", "invalid_parameter", True)


@pytest.mark.parametrize("text", ["coca-cola", "love😍", "tea\\", "a\\b", "bio:tea\\", "url:tea.com\\"])
def test_suggested_quotes_are_valid(registry: Registry, text: str) -> None:
    with pytest.raises(RuleError) as refusal:
        Rule.parse(text, registry)
    said, _, quoted = refusal.value.expected.partition(": ")
    assert said == "quotes around it"
    assert Rule.parse(text[: refusal.value.column - 1] + quoted, registry).text


def test_the_tree_has_columns(registry: Registry) -> None:
    explained = Rule.parse("tea (milk OR -#sugar)", registry).explain(example_events()[0])
    columns = [(part.text, part.column) for part in (explained, *explained.parts, *explained.parts[1].parts)]
    assert columns == [
        *(("tea (milk OR -#sugar)", 1), ("tea", 1), ("milk OR -#sugar", 6), ("milk", 6)),
        ("-#sugar", 14),
    ]


def test_length_and_depth_are_bounded(registry: Registry) -> None:
    assert Rule.parse("a" * MAX_RULE_CHARS, registry).text == "a" * MAX_RULE_CHARS
    assert Rule.parse("(" * MAX_DEPTH + "tea" + ")" * MAX_DEPTH, registry).text == "tea"
    assert Rule.parse("(tea) " * (MAX_DEPTH + 1), registry).text.count("tea") == MAX_DEPTH + 1
    for text, column in (("a" * (MAX_RULE_CHARS + 1), MAX_RULE_CHARS + 1), ("(" * (MAX_DEPTH + 1), MAX_DEPTH + 1)):
        with pytest.raises(RuleError) as refusal:
            Rule.parse(text, registry)
        assert refusal.value.column == column
    with pytest.raises(RuleError, match=r"1,?024"):
        Rule.parse("a" * (MAX_RULE_CHARS + 1), registry)


def test_the_folded_length_is_bounded(registry: Registry) -> None:
    with pytest.raises(RuleError, match="has 2046 characters"):
        Rule.parse("ŉ" * (MAX_RULE_CHARS - 2) + " a", registry)
