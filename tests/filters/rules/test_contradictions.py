"""Rules and filters that can match no event, and those near them that can."""

import pytest

from filters.possible_kinds import ALL_KINDS, STATUS_KINDS, TEXT_KINDS
from filters.registry import Registry
from filters.rules import contradictions
from filters.rules.rule import Rule
from filters.subscription import NEVER_MATCHES, WORD_OPERATOR, parse_subscription

REGISTRY = Registry.from_entry_points()

NEVER = [
    "tea -tea", "tea milk -TEA", '"green tea" -tea', "(tea -tea) OR (milk -milk)", "(tea OR milk) -tea -milk",
    "tea (is:reply OR is:quote) -is:reply -is:quote", "from:ada from:bob", "from:1 from:2 tea", "to:ada to:bob",
    "retweets_of:ada retweets_of:bob", "to:ada -is:reply", "retweets_of:ada -is:retweet", "tea is:repost is:quote",
    "tea is:retweet has:geo", "retweets_of:ada place:berlin", "tea place:berlin place:paris",
    "tea place_country:de place_country:fr", "place:berlin -has:geo", "conversation_id:1 conversation_id:2",
    "tea lang:en lang:de", "tea lang:und lang:en", "tea lang:en-GB -lang:en", "tea lang:en-GB lang:en-US",
    "meta.a:1 -has:meta.a", "tea meta.a:1.. -has:meta.a", "meta.a:1 -meta.a:1", "meta.a:1 kinds:comment",
    "tea has:images -has:media", "tea followers_count:10..20 followers_count:30..",
    "bounding_box:[2.2 48.8 2.5 48.95] bounding_box:[12.2 48.8 12.5 48.95]",
    "bounding_box:[2.2 48.8 2.5 48.95] point_radius:[13.4 52.5 5km]", "tea kinds:follow", 'tea track:milk kinds:"like"',
]  # fmt: skip

PERHAPS = [
    "tea -milk", "tea -#tea", 'tea -"green tea"', "(tea -tea) OR milk", "(tea OR milk) -tea", "from:ada from:1",
    "from:ada to:bob", "from:ada to:ada", "from:ada OR from:bob", "tea lang:en lang:en-GB", "tea lang:nb lang:no",
    "tea lang:und lang:und-Latn",
    "tea lang:nb lang:nn", "tea lang:iw lang:he", "tea -lang:en -lang:de", "tea has:media -has:images",
    "meta.a:1 meta.a:2", "tea meta.a:1..2 meta.a:3..4", "meta.a:1.0 -meta.a:1", "meta.a:1 -has:meta.b",
    "meta.a:1 is:retweet",
    "tea followers_count:10..20 followers_count:20..", "tea followers_count:1..2 tweets_count:3..4",
    "bounding_box:[2.2 48.8 2.5 48.95] bounding_box:[2.5 48.9 2.7 48.95]", "tea is:reply is:quote", "tea kinds:comment",
]  # fmt: skip

BRANCHES = " ".join(f"(a{number} OR b{number})" for number in range(50))


@pytest.mark.parametrize("text", NEVER)
def test_a_contradiction_is_found(text: str) -> None:
    assert Rule.parse(text, REGISTRY).kinds == frozenset()


@pytest.mark.parametrize("text", PERHAPS)
def test_what_may_match_is_no_contradiction(text: str) -> None:
    assert Rule.parse(text, REGISTRY).kinds


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("tea", TEXT_KINDS), ("from:ada", ALL_KINDS), ("tea lang:en", STATUS_KINDS), ("tea lang:und", TEXT_KINDS),
        ("from:ada kinds:follow", {"follow"}), ("tea OR from:ada", ALL_KINDS), ("tea has:links", TEXT_KINDS),
        ("tea has:media", STATUS_KINDS), ("bio:tea", STATUS_KINDS), ("meta.a:1", STATUS_KINDS),
        ("tea has:meta.a", STATUS_KINDS), ("from:ada -lang:en", ALL_KINDS),
    ],
)  # fmt: skip
def test_a_rule_knows_its_kinds(text: str, kinds: frozenset[str]) -> None:
    assert Rule.parse(text, REGISTRY).kinds == kinds


def test_a_rule_of_many_branches_is_not_taken_apart() -> None:
    """It has 2**50 branches, so the check gives up."""
    assert Rule.parse(f"x -x {BRANCHES}", REGISTRY).kinds == ALL_KINDS


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"track": "tea", "kinds": "follow"}, [("track", ())]),
        ({"track": "tea", "kinds": "follow,comment"}, []),
        ({"track": "tea,:)", "kinds": "post"}, [("track", (":)",))]),
        ({"track": "tea", "follow": "1", "kinds": "like"}, [("track", ())]),
        ({"follow": "1", "kinds": "like"}, []),
        ({"follow": "1", "kinds": "like", "language": "en"}, [("follow", ())]),
        ({"follow": "1", "kinds": "like", "language": "en,und"}, []),
        ({"locations": "1,1,2,2", "kinds": "comment"}, [("locations", ())]),
        ({"sample": "1", "kinds": "follow"}, [("sample", ())]),
        ({"sample": "1", "kinds": "like"}, []),
        ({"firehose": "true", "kinds": "follow"}, []),
        ({"firehose": "true", "kinds": "follow", "language": "en"}, [("firehose", ())]),
        ({"rule": "tea -tea\nmilk\nfrom:1 from:2"}, [("rule", ("tea -tea", "from:1 from:2"))]),
        ({"rule": "tea\nfrom:ada", "kinds": "like"}, [("rule", ("tea",))]),
        ({"rule": "tea lang:en\nmilk\ntea lang:de", "language": "de"}, [("rule", ("tea lang:en",))]),
        ({"rule": "tea lang:en", "language": "en-GB,fr"}, []),
        ({"rule": "tea lang:nb", "language": "no"}, []),
        ({"rule": "tea lang:und-Latn", "language": "und"}, []),
        ({"rule": "(tea lang:en) OR milk", "language": "de"}, []),
        ({"rule": "(tea lang:en) OR (milk lang:fr)", "language": "fr"}, []),
        (
            {"rule": "(tea lang:en) OR (milk lang:fr)", "language": "de"},
            [("rule", ("tea lang:en OR milk lang:fr",))],
        ),
    ],
)
def test_a_stream_knows_what_never_matches(parameters: dict[str, str], told: list[tuple[str, tuple[str, ...]]]) -> None:
    found = parse_subscription(parameters, REGISTRY).doubts
    assert [(each.filter, each.terms) for each in found if each.code == NEVER_MATCHES] == told


def test_a_stream_is_told_without_taking_its_rules_apart_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop asks for it, and a hundred long rules take a second."""
    asked = parse_subscription({"rule": "tea lang:en", "language": "de"}, REGISTRY)
    monkeypatch.delattr(contradictions, "_branches")
    assert [found.terms for found in asked.doubts] == [("tea lang:en",)]


def test_a_warning_names_the_first_rules_and_counts_the_others() -> None:
    rules = "\n".join(f"tea{number} -tea{number}" for number in range(12))
    (found,) = parse_subscription({"rule": rules}, REGISTRY).doubts
    assert len(found.terms) == 10
    assert found.message.endswith("tea9 -tea9, and 2 more")


@pytest.mark.parametrize(
    ("rule", "is_told"),
    [
        ("tea or milk", True), ("tea not milk", True), ("tea and milk", True), ("tea -or", True), ("tea Or milk", True),
        ("(or OR x) tea", True), ("tea OR milk", False), ('tea "or" milk', False), ('"tea or milk"', False),
        ("organ notes", False), ("tea #or", False),
    ],
)  # fmt: skip
def test_words_that_are_operators_elsewhere_are_told(rule: str, is_told: bool) -> None:  # noqa: FBT001 - a column
    found = [each.terms for each in parse_subscription({"rule": rule}, REGISTRY).doubts if each.code == WORD_OPERATOR]
    assert found == ([(Rule.parse(rule, REGISTRY).text,)] if is_told else [])
