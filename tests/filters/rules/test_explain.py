"""The explanation of a rule: each part gives its reason and its positions in the text."""

import pytest

from filters import folded_text
from filters.entities import extract_entities
from filters.event import Event
from filters.folded_text import FoldedText
from filters.registry import Registry
from filters.rules.rule import Rule
from tests.filters.texts import post

STATUS = post(
    "Straße: green #Tea, tea!",
    author="12",
    author_login="Ada",
    lang="en",
    followers=20,
    meta=b'{"room":7,"site":"blog","sizes":[1,2,"L",4]}',
    quoted_text="black coffee",
    quoted_entities=extract_entities("black coffee"),
)


@pytest.mark.parametrize(
    ("rule", "matched", "why"),
    [
        ("tea", True, "the text has the word tea"),
        ("milk", False, "neither the text nor the quoted text has the word milk"),
        ("coffee", True, "the quoted text has the word coffee"),
        ("#tea", True, "the text has the hashtag #tea"),
        ('"green tea"', True, 'the text has the phrase "green tea"'),
        ('"tea green"', False, 'neither the text nor the quoted text has the phrase "tea green"'),
        ("from:12", True, "written by 12"),
        ("from:34", False, "written by 12, not 34"),
        ("from:bob", False, "written by Ada, not bob"),
        ("to:bob", False, "it answers no known user"),
        ("retweets_of:bob", False, "it reposts no known user"),
        ("url:tea", False, "neither the text nor the quoted text has a link with tea"),
        ("conversation_id:1", False, "it belongs to no thread"),
        ("bio:tea", False, "the author has no bio"),
        ("place:paris", False, "it has no place"),
        ("bounding_box:[0 0 0.1 0.1]", False, "it has no location"),
        ("follow:12", False, "follow does not match"),
        ("meta.room:7.0", True, "meta.room is 7"),
        ("meta.room:8", False, "meta.room is 7, not 8"),
        ("meta.site:shop", False, 'meta.site is "blog", not shop'),
        ("meta.rom:7", False, "it has no meta.rom; did you mean `room`?"),
        ("meta.colour:red", False, "it has no meta.colour"),
    ],
)
def test_the_reason_of_an_operator(registry: Registry, rule: str, matched: bool, why: str) -> None:  # noqa: FBT001 - a row of a table
    explained = Rule.parse(rule, registry).explain(STATUS)
    assert (explained.matched, explained.why) == (matched, why)


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("followers_count:100", "the author's followers are 20, below 100"),
        ("followers_count:1..9", "the author's followers are 20, above 9"),
        ("followers_count:20", "the author's followers are 20"),
        ("following_count:20", "the author's following are not known"),
        ("lang:de", "the language is en, not de"),
        ("meta.room:8..", "meta.room is 7, no number in 8.."),
        ("meta.site:1..2", 'meta.site is "blog", no number in 1..2'),
        ("meta.sizes:4..", 'meta.sizes is 1 and 2 and "l" and more'),
        ("has:meta.room", "meta.room is 7"),
        ("is:reply", "it is not a reply"),
        ("has:hashtags", "it has hashtags"),
        ("has:video_link", "it has no video link"),
    ],
)
def test_the_reason_of_an_operator_beside_another(registry: Registry, part: str, why: str) -> None:
    assert Rule.parse(f"tea {part}", registry).explain(STATUS).parts[1].why == why


def test_positions_count_code_points_of_the_original_text(registry: Registry) -> None:
    explain = [
        Rule.parse(rule, registry).explain(STATUS).indices for rule in ("tea", "#tea", '"green tea"', '"strasse"')
    ]
    assert explain == [((14, 18), (20, 23)), ((14, 18),), ((8, 18),), ((0, 6),)]
    linked = post("see http://a.com/x and b.com")
    assert Rule.parse("url:x", registry).explain(linked).indices == ((4, 18),)
    assert Rule.parse('"b see"~4 OR "com see"~4', registry).explain(linked).parts[1].indices == ((0, 18),)
    glued = post("ß @bob님이 te\u00ada\u200b, $TEA now")
    assert Rule.parse('"bob 님이" OR "tea $tea"', registry).explain(glued).parts[0].indices == ((2, 8),)
    assert Rule.parse('"bob 님이" OR "tea $tea"', registry).explain(glued).parts[1].indices == ((9, 20),)
    assert Rule.parse('"님이 tea"', registry).explain(glued).indices == ((6, 13),)
    assert Rule.parse('"京タ"', registry).explain(post("東京タワー")).indices == ((1, 3),)


def test_the_explanation_has_the_tree_of_the_rule(registry: Registry) -> None:
    explained = Rule.parse("(milk OR tea) -coffee from:ada", registry).explain(STATUS)
    assert explained.to_json() == {
        "text": "(milk OR tea) -coffee from:ada",
        "column": 2,
        "matched": False,
        "why": "does not hold: -coffee",
        "indices": [],
        "parts": [
            {
                "text": "milk OR tea",
                "column": 2,
                "matched": True,
                "why": "holds: tea",
                "indices": [],
                "parts": [
                    {
                        "text": "milk",
                        "column": 2,
                        "matched": False,
                        "why": "neither the text nor the quoted text has the word milk",
                        "indices": [],
                    },
                    {
                        "text": "tea",
                        "column": 10,
                        "matched": True,
                        "why": "the text has the word tea",
                        "indices": [[14, 18], [20, 23]],
                    },
                ],
            },
            {
                "text": "-coffee",
                "column": 15,
                "matched": False,
                "why": "the quoted text has the word coffee",
                "indices": [],
            },
            {"text": "from:ada", "column": 23, "matched": True, "why": "written by Ada", "indices": []},
        ],
    }


def test_matched_operators_exclude_negated_and_failed_parts(registry: Registry) -> None:
    explained = Rule.parse("tea lang:en -milk (green milk OR straße OR wine)", registry).explain(STATUS)
    assert [part.text for part in explained.matched_operators()] == ["tea", "lang:en", "strasse"]
    assert list(Rule.parse("tea milk", registry).explain(STATUS).matched_operators()) == []


def test_an_event_without_author_has_a_reason(registry: Registry) -> None:
    assert Rule.parse("from:bob", registry).explain(Event("follow")).why == "written by no known user"


def test_a_text_is_folded_once_for_all_parts(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred parts, each found a hundred times, would block the process for seconds."""
    folded: list[str] = []

    class Counted(FoldedText):
        def __init__(self, original: str) -> None:
            folded.append(original)
            super().__init__(original)

    monkeypatch.setattr(folded_text, "FoldedText", Counted)
    explained = Rule.parse(" OR ".join(['tea "tea tea" "tea tea"~6'] * 20), registry).explain(
        post("tea " * 51 + "once")
    )
    assert len(explained.parts) == 20
    assert [len(part.indices) for part in explained.parts[-1].parts] == [51, 50, 50]
    assert len(folded) == 1
