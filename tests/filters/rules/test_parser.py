"""Rules are read, shown and read again; what is none is refused with the column and what was expected there."""

import sys

import pytest
from hypothesis import strategies as st

from filters.error import ParameterError
from filters.registry import Registry
from filters.rules.error import RuleError
from filters.rules.parser import MAX_DEPTH, MAX_RULE_CHARS, parse_rule
from filters.rules.rule import Rule
from filters.rules.tree import format_node
from filters.testing import example_events
from tests.filters.conftest import built_in
from tests.filters.rules.cases import CASES, REFUSED
from tests.property.laws import holds

REGISTRY = Registry(built_in())
SCRAPS = [
    *('"', "(", ")", "-", " ", "  ", "OR", "AND", ":", "~2", "~", "[", "]", "\\", "#", "@", "$", "..", ","),
    *(
        "tea",
        "\uff34ea",
        "ß",
        "東京",
        "😍",
        "e\u0301",
        "\u0345",
        "\u200d",
        "12",
        "from:",
        "has:media",
        "lang:en",
        "sample:5",
    ),
    *(
        "url:",
        "place:",
        "bio:",
        "track:",
        "is:reply",
        "followers_count:",
        "point_radius:[2 48 9km]",
        "\n",
        "\x00",
        "\ud800",
    ),
]
TEXTS = st.one_of(
    st.text(st.characters(), max_size=60),
    st.lists(st.sampled_from(SCRAPS), max_size=25).map("".join),
    st.lists(st.sampled_from([case.rule for case in CASES] + ["OR", "(", ")"]), max_size=8).map(" ".join),
)


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
        ("sample:10.50 tea", "sample:10.5 tea"),
        ("tea followers_count:0..9 following_count:7..", "tea followers_count:..9 following_count:7"),
        ("point_radius:[ 2.350 -0.0 10.0KM ]", "point_radius:[2.35 0 10km]"),
        ('place:"New   York" place:"Paris"', 'place:"new york" place:paris'),
        ('url:"https://www.Example.com/a?b"', 'url:"example com a b"'),
        ('track:"a \\"b\\" \\\\"', 'track:"a \\"b\\" \\\\"'),
        ("tea\tmilk\r\nsugar\u3000salt", "tea milk sugar salt"),
    ],
)
def test_a_rule_has_one_canonical_text(registry: Registry, written: str, shown: str) -> None:
    """Equal rules are equal in it, and it is read as it is."""
    rule = Rule.parse(written, registry)
    assert rule.text == shown
    assert Rule.parse(shown, registry) == rule
    assert hash(Rule.parse(shown, registry)) == hash(rule)


@pytest.mark.parametrize(("text", "column", "expected"), REFUSED)
def test_a_refusal_says_where_and_what_was_expected(registry: Registry, text: str, column: int, expected: str) -> None:
    """Columns count code points from 1; the message ends with both."""
    with pytest.raises(RuleError) as refusal:
        Rule.parse(text, registry)
    error = refusal.value
    assert (error.column, error.expected) == (column, expected)
    assert error.message.endswith(f"column {column}: expected {expected}")
    assert (error.param, error.code, isinstance(error, ParameterError)) == ("rule", "invalid_parameter", True)


@pytest.mark.parametrize("text", ["coca-cola", "love😍", "tea\\", "a\\b", "bio:tea\\", "url:tea.com\\"])
def test_quotes_that_are_suggested_may_be_written(registry: Registry, text: str) -> None:
    """They are around all of it, whatever it holds."""
    with pytest.raises(RuleError) as refusal:
        Rule.parse(text, registry)
    said, _, quoted = refusal.value.expected.partition(": ")
    assert said == "quotes around it"
    assert Rule.parse(text[: refusal.value.column - 1] + quoted, registry).text


def test_columns_stand_in_the_tree(registry: Registry) -> None:
    """A negated operator begins at its minus."""
    told = Rule.parse("tea (milk OR -#sugar)", registry).explain(example_events()[0])
    columns = [(part.text, part.column) for part in (told, *told.parts, *told.parts[1].parts)]
    assert columns == [
        *(("tea (milk OR -#sugar)", 1), ("tea", 1), ("milk OR -#sugar", 6), ("milk", 6)),
        ("-#sugar", 14),
    ]


def test_length_and_depth_are_bounded(registry: Registry) -> None:
    """To the bound and no further."""
    assert Rule.parse("a" * MAX_RULE_CHARS, registry).text == "a" * MAX_RULE_CHARS
    assert Rule.parse("(" * MAX_DEPTH + "tea" + ")" * MAX_DEPTH, registry).text == "tea"
    assert Rule.parse("(tea) " * (MAX_DEPTH + 1), registry).text.count("tea") == MAX_DEPTH + 1
    for text, column in (("a" * (MAX_RULE_CHARS + 1), MAX_RULE_CHARS + 1), ("(" * (MAX_DEPTH + 1), MAX_DEPTH + 1)):
        with pytest.raises(RuleError) as refusal:
            Rule.parse(text, registry)
        assert refusal.value.column == column


def test_what_grows_by_folding_is_bounded_too(registry: Registry) -> None:
    """What is shown can be read again, so it is no longer than what may be written."""
    with pytest.raises(RuleError, match="has 2046 characters"):
        Rule.parse("ŉ" * (MAX_RULE_CHARS - 2) + " a", registry)


def _refused_or_matched(text: str) -> None:
    try:
        node = parse_rule(text, REGISTRY)
    except RuleError as refusal:
        assert 1 <= refusal.column <= len(text) + 1  # noqa: PT017 - either outcome is right
        return
    assert parse_rule(format_node(node), REGISTRY) == node
    assert format_node(parse_rule(format_node(node), REGISTRY)) == format_node(node)
    rule = Rule(node)
    for event in example_events():
        matched = rule.matches(event)
        assert rule.explain(event).matched is matched
        keys = rule.candidate_keys()
        assert not matched or keys is None or keys & event.index_keys


@pytest.mark.timeout(900)
def test_any_text_is_a_rule_or_refused(full: bool) -> None:  # noqa: FBT001 - a fixture
    """Nothing else is raised; what can be read can be shown, read again, asked and explained."""
    holds(_refused_or_matched, TEXTS, full=full, cases=500)


class Counted:
    """Counts how often functions are called, instead of a clock."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, frame: object, event: str, _: object) -> None:
        self.calls += event == "call"


@pytest.mark.parametrize(
    ("piece", "joint"),
    [
        *(("tea", " "), ("tea", " OR "), ("-tea", " "), ('"tea milk"', " "), ('"tea milk"~6', " "), ("#tea", " ")),
        *(("(tea)", ""), ("(tea OR milk)", " "), ("from:ada", " OR "), ("(", ""), (")", ""), ('"', ""), ('\\"', "")),
        *(("-", ""), ("a:", ""), ("zzz:1", " "), ("[", " "), ("東京", ""), ("😍", ""), ("track:tea", " ")),
    ],
)
def test_reading_takes_time_linear_in_the_length(registry: Registry, piece: str, joint: str) -> None:
    """Twice the text takes about twice the steps, whatever it is made of."""
    steps = [
        _steps(joint.join([piece] * count), registry) for count in (_fitting(piece, joint) // 2, _fitting(piece, joint))
    ]
    assert steps[1] <= 2.5 * steps[0] + 500


def _fitting(piece: str, joint: str) -> int:
    return MAX_RULE_CHARS // len(piece + joint)


def _steps(text: str, registry: Registry) -> int:
    counted = Counted()
    sys.setprofile(counted)
    try:
        Rule.parse(text, registry)
    except RuleError:
        pass
    finally:
        sys.setprofile(None)
    return counted.calls
