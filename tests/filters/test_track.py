"""``track`` matches as documented."""

import pytest

from filters.error import ParameterError
from filters.track import Track
from tests.filters.texts import post
from tests.test_reference import DOCUMENTED, OWN, UNSPACED


@pytest.mark.parametrize(("track", "text", "matches"), DOCUMENTED + OWN + UNSPACED)
def test_the_documented_checks(track: str, text: str, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    """Every cell of Twitter's table of examples, its remarks, and the design's sharpenings hold."""
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
        ("#tag's", "#tag's", False),
        ("😍", "love😍😍", True),
        ("#", "# sign", False),
        ("touché", "TOUCHE\u0301!", True),
        ("hello hello", "hello", True),
    ],
)
def test_more_of_the_matcher(track: str, text: str, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    """Order, blanks, full-width signs, emoji and Unicode forms."""
    assert Track.parse(track).matches(post(text)) is matches


def test_equal_phrases_in_another_order_are_the_same_filter() -> None:
    """The canonical form forgets order, case and blanks."""
    assert Track.parse("a b,c").canonical_form == Track.parse("C, B  a").canonical_form
    assert Track.parse("a b,c") != Track.parse("a,b,c")


@pytest.mark.parametrize("value", ["", " ", ",", "a,", "a,,b", "x" * 61, "é" * 31])
def test_a_phrase_has_1_to_60_bytes(value: str) -> None:
    """An empty phrase and one of 61 bytes are refused; bytes are counted, not characters."""
    with pytest.raises(ParameterError) as refusal:
        Track.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "track")


def test_a_phrase_of_60_bytes_and_400_phrases_are_taken() -> None:
    """The bounds themselves are inside."""
    Track.parse("é" * 30)
    assert len(Track.parse(",".join(f"w{n}" for n in range(400))).exact_clauses() or ()) == 400


def test_more_than_400_phrases_are_too_many() -> None:
    """The number is refused with the code of the number, and before the phrases are looked at."""
    with pytest.raises(ParameterError) as refusal:
        Track.parse("," * 400)
    assert (refusal.value.code, refusal.value.param) == ("too_many", "track")


def test_a_phrase_is_looked_for_by_its_rarest_term() -> None:
    """An entity is rarer than a word, a long word rarer than a short one."""
    assert Track.parse("a elephant,elephant #a,@bo me").candidate_keys() == {"elephant", "#a", "@bo"}


def test_it_says_which_terms_and_where() -> None:
    """Each term of the phrases that matched, once, in the order of the text, with all its places in code points."""
    found = Track.parse("tea cup,#tea,milk tea,CUP,東京タ").explain(post("😍 Cup of tea, #Tea 東京タワー"))
    assert found == [
        {"filter": "track", "term": "cup", "indices": [[2, 5]]},
        {"filter": "track", "term": "tea", "indices": [[9, 12], [14, 18]]},
        {"filter": "track", "term": "#tea", "indices": [[14, 18]]},
        {"filter": "track", "term": "東京タ", "indices": [[19, 22]]},
    ]
    assert Track.parse("tea milk").explain(post("tea")) == []
