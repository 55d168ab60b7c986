"""Terms in scripts that put no blank between words."""

import sys
import unicodedata

import pytest

from filters.tokens import fold, words, words_cut_at_marks, words_in_order
from filters.track import Track
from filters.unspaced_scripts import has_unspaced, needs_substring_search, required_words
from tests.filters.texts import post

SCRIPTS = (
    "CJK UNIFIED",
    "CJK COMPATIBILITY",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)

FOUND = [
    ("東京", "東京タワーに行った"),
    ("京", "東京タワーに行った"),
    ("タワー", "東京タワーに行った"),
    ("東京タワーに行った", "東京タワーに行った"),
    ("京タワーに", "「東京タワーに行った」"),
    ("iphone", "iPhoneを買った"),
    ("iPhoneを", "iPhoneを買った"),
    ("don't", "don't東京"),
    ("2020", "2020年東京"),
    ("年", "2020年東京"),
    ("東京", "#東京タワー"),
    ("タワー", "#東京タワー"),
    ("東京タワー", "#東京タワー"),
    ("#東京タワー", "#東京タワー"),
    ("日本語", "http://日本語.example.com/"),
    ("กรุงเทพ", "ไปกรุงเทพฯกัน"),
    ("ນະຄອນ", "ຢູ່ນະຄອນຫຼວງ"),
    ("ភ្នំពេញ", "ទៅភ្នំពេញ។"),
    ("ရန်ကုန်", "ကျွန်တော်ရန်ကုန်မှာ"),
    ("\u304b\u3099", "がか"),
    ("ﾄｳｷｮｳ", "ﾄｳｷｮｳﾀﾜｰ"),
    ("人々", "人々の声"),
    ("東京 タワー", "タワー、東京"),
    ("東京タワー hello", "hello 東京タワー"),
    ("葛\U000e0100", "葛\U000e0100飾区"),
]

MISSED = [
    ("京東", "東京 東京都"),
    ("東京タワー", "東京 タワー"),
    ("東京タワー", "東京。タワー"),
    ("東京タ", "東京 タ 京タ"),
    ("東京タワー", "タワー東京タ ーワ"),
    ("#東京", "#東京タワー"),
    ("@東京", "東京"),
    ("phone", "iPhoneを買った"),
    ("東京!", "東京!"),
    ("東京・大阪", "東京・大阪"),
    ("東京", "@user 京都"),
    ("カ", "ガ"),
    ("東京タワー bye", "hello 東京タワー"),
]


@pytest.mark.parametrize(("track", "text"), FOUND)
def test_a_term_is_found_where_it_stands(track: str, text: str) -> None:
    """In a run, a hashtag and a link, at a change of scripts, and beside other terms."""
    assert Track.parse(track).matches(post(text))


@pytest.mark.parametrize(("track", "text"), MISSED)
def test_pairs_alone_are_no_match(track: str, text: str) -> None:
    """All of a term has to stand together; a signed one is the whole tag; other scripts keep their words."""
    assert not Track.parse(track).matches(post(text))


def test_a_run_yields_characters_pairs_and_the_words_of_other_scripts() -> None:
    """What a term of one or two characters is proved by."""
    assert words(fold("iPhoneを買う ok")) == {"iphone", "ok", "を", "買", "う", "eを", "を買", "買う"}
    assert words("東京") == set(words_cut_at_marks("東京")) == {"東", "京", "東京"}


def test_text_without_such_scripts_is_as_ever() -> None:
    """Neither ASCII nor another alphabet is cut differently."""
    assert words("été ελλάδα한국어 привет") == {"été", "ελλάδα한국어", "привет"}
    assert not has_unspaced("été ελλάδα 한국어 hello")


def test_in_order_each_character_stands_alone() -> None:
    """So a phrase of such a script is a stretch of the text."""
    assert words_in_order("iphoneを買 ok😍") == ["iphone", "を", "買", "ok", "😍"]


def test_a_long_term_is_looked_for_by_its_pairs() -> None:
    """A pair of two letters of another script says nothing; a short term and a signed one are their own key."""
    assert required_words("iphoneを買") == {"eを", "を買"}
    assert required_words("東京") == {"東京"}
    assert required_words("#東京タワー") == {"#東京タワー"}
    assert not needs_substring_search("東京・大阪")


def test_a_filter_with_a_long_term_is_found_by_one_pair_of_it_and_asked() -> None:
    """Its clauses would say too much; a filter without long terms still says all by its clauses."""
    assert Track.parse("東京タワー").exact_clauses() is None
    assert Track.parse("東京タワー").candidate_keys() < {"東京", "京タ", "タワ", "ワー"}
    assert Track.parse("東京,tea").exact_clauses() == {frozenset({"東京"}), frozenset({"tea"})}


def test_a_long_term_takes_nothing_from_the_phrases_beside_it() -> None:
    """They are proof as ever; it alone is asked for, where its rarest pairs are."""
    leads = Track.parse("東京タワー tea,cup of,milk").index_terms()
    assert set(leads.exact) == {frozenset({"cup", "of"}), frozenset({"milk"})}
    (hint,) = leads.candidates
    assert len(hint) == 3
    assert hint < {"東京", "京タ", "タワ", "ワー", "tea"}


def test_the_ranges_are_those_of_the_scripts() -> None:
    """By the names of the characters, which the ranges were not made from; numbers of merchants aside."""
    named = set()
    for character in map(chr, range(sys.maxunicode + 1)):
        name = unicodedata.name(character, "")
        if name.startswith(SCRIPTS) and unicodedata.category(character)[0] in "LMN":
            named.add(character)
    assert [c for c in sorted(named) if not has_unspaced(c)] == []
    assert not any(map(has_unspaced, "aé・。、「」〜฿๏។၊가ㄅ་"))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["東", "東a", "東 ", "東\u0301", "ก", "aa東・"])
def test_no_text_makes_the_search_slow(piece: str) -> None:
    """The deadline is for a hang: what grows faster than the text would need minutes."""
    event = post(piece * 100_000)
    assert Track.parse("東東東東西,東a東西").matches(event) is False
    assert event.analyzed_text.word_sequence
