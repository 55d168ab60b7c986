"""`track` matches as documented."""

import tracemalloc

import pytest

from filters.track import Track
from tests.filters.texts import post
from tests.test_reference import DOCUMENTED, EMOJI, INVISIBLE, OWN, UNSPACED


@pytest.mark.parametrize(("track", "text", "matches"), DOCUMENTED + OWN + EMOJI + INVISIBLE + UNSPACED)
def test_the_documented_table(track: str, text: str, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Track.parse(track).matches(post(text)) is matches


@pytest.mark.parametrize(
    ("track", "text", "matches"),
    [
        ("hello world", "world, hello!", True),
        ("hello world", "hello there", False),
        (" hello   world , x", "world hello", True),
        ("twtr", "buy $TWTR", False),
        ("\uff03tag", "a #tag", True),
        ("#tag", "a \uff03Tag", True),
        ("\uff20bob", "hi @Bob", True),
        ("\uff04twtr", "buy $TWTR", True),
        ("$twtr", "buy \uff04TWTR", True),
        ("$twtr", "buy $TWTR\u200f, now", True),
        ("\u200b#tag", "a #tag", True),
        ("#tag", "\u200c#tag\u200c", True),
        ("#tag's", "#tag's", False),
        ("😍", "love😍😍", True),
        ("#", "# sign", False),
        ("touché", "TOUCHE\u0301!", True),
        ("hello hello", "hello", True),
    ],
)
def test_order_blanks_wide_signs_emoji_and_unicode_forms(track: str, text: str, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Track.parse(track).matches(post(text)) is matches


def test_a_phrase_without_a_visible_character_matches_nothing() -> None:
    assert not Track.parse("\ufe0f").matches(post("❤\ufe0f \ufe0f"))
    assert Track.parse("\ufe0f,tea") == Track.parse("t\u00adea")


def test_equal_phrases_in_another_order_are_the_same_filter() -> None:
    assert Track.parse("a b,c").canonical_form == Track.parse("C, B  a").canonical_form
    assert Track.parse("a b,c") != Track.parse("a,b,c")


@pytest.mark.parametrize(("form", "most_bytes"), [("w{}", 250), ("W{},x{},y{}", 450), ("a{} b{}", 560)])
def test_a_filter_of_few_words_is_small(form: str, most_bytes: int) -> None:
    """Ten thousand streams have a filter each. A set takes 216 bytes, whatever is in it."""
    values = [form.replace("{}", str(number)) for number in range(1000)]
    Track.parse(values[0])
    tracemalloc.start()
    try:
        kept = [Track.parse(value) for value in values]
        assert tracemalloc.get_traced_memory()[0] / len(kept) < most_bytes
    finally:
        tracemalloc.stop()


def test_a_phrase_has_up_to_60_bytes() -> None:
    assert Track.parse("é" * 30).matches(post("é" * 30))


def test_400_phrases_have_exact_clauses() -> None:
    assert len(Track.parse(",".join(f"w{n}" for n in range(400))).index_terms().exact) == 400


def test_a_phrase_is_indexed_by_its_rarest_term() -> None:
    assert Track.parse("a elephant,elephant #a,@bo me").index_terms().keys() == frozenset({"elephant", "#a", "@bo"})


def test_reasons_name_each_term_and_its_positions() -> None:
    found = Track.parse("tea cup,#tea,milk tea,CUP,東京タ").explain(post("😍 Cup of tea, #Tea 東京タワー"))
    assert found == [
        {"filter": "track", "term": "cup", "indices": [[2, 5]]},
        {"filter": "track", "term": "tea", "indices": [[9, 12], [14, 18]]},
        {"filter": "track", "term": "#tea", "indices": [[14, 18]]},
        {"filter": "track", "term": "東京タ", "indices": [[19, 22]]},
    ]
    assert Track.parse("tea milk").explain(post("tea")) == []


@pytest.mark.parametrize(
    ("track", "told"),
    [
        ("C#,.NET,covid-19,#tag,$5,me@example.com,tea \u2192", ()),
        ("tea,#tag's milk", ("#tag's",)),
        ("www.example.com,https://a.co,a.co/", ("a.co/", "https://a.co", "www.example.com")),
        ("\u2192 :),@bob:", ("@bob:", "\u2192 :)")),
        ("#,@,$", ("#", "$", "@")),
        ("\uff04twtr,\u200c#tag,tea \ufe0f,\u200b#tea\u00ad", ()),
        ("tea,\ufe0f \u200b", ("U+FE0F U+0020 U+200B",)),
    ],
)
def test_what_can_match_no_text_is_told(track: str, told: tuple[str, ...]) -> None:
    assert Track.parse(track).unmatchable_terms == told
