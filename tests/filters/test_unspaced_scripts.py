"""Terms in scripts without blanks between words."""

import sys
import unicodedata

import pytest

from filters.term_search import searched_term
from filters.tokens import fold, has_unspaced, words, words_in_order
from filters.track import Track
from filters.word_sequence import WordSequence
from tests.filters.texts import post
from tests.growth import assert_linear

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
    ("東京!", "東京"),
    ("東京・大阪", "東京・京・大阪"),
    ("東京", "@user 京都"),
    ("カ", "ガ"),
    ("東京タワー bye", "hello 東京タワー"),
]


@pytest.mark.parametrize(("track", "text"), FOUND)
def test_a_term_is_found_in_runs_tags_and_links(track: str, text: str) -> None:
    assert Track.parse(track).matches(post(text))


@pytest.mark.parametrize(("track", "text"), MISSED)
def test_pairs_alone_are_no_match(track: str, text: str) -> None:
    assert not Track.parse(track).matches(post(text))


def test_a_run_yields_characters_pairs_and_the_words_of_other_scripts() -> None:
    assert words(fold("iPhoneを買う ok")) == {"iphone", "ok", "を", "買", "う", "eを", "を買", "買う"}
    assert words("東京") == {"東", "京", "東京"}


def test_text_of_other_scripts_is_cut_at_blanks() -> None:
    assert words("été ελλάδα한국어 привет") == {"été", "ελλάδα한국어", "привет"}
    assert not has_unspaced("été ελλάδα 한국어 hello")


def test_the_word_sequence_has_single_characters() -> None:
    assert words_in_order("iphoneを買 ok😍") == ["iphone", "を", "買", "ok", "😍"]


def test_a_long_term_needs_its_pairs() -> None:
    long = searched_term("iphoneを買")
    assert long is not None
    assert long.required == {"eを", "を買"}
    assert searched_term("東京") is searched_term("#東京タワー") is None


def test_a_long_term_is_indexed_by_a_pair_and_checked() -> None:
    long = Track.parse("東京タワー").index_terms()
    assert not long.exact
    assert (long.keys() or set()) < {"東京", "京タ", "タワ", "ワー"}
    assert set(Track.parse("東京,tea").index_terms().exact) == {frozenset({"東京"}), frozenset({"tea"})}


def test_phrases_beside_a_long_term_stay_exact() -> None:
    terms = Track.parse("東京タワー tea,cup of,milk").index_terms()
    assert set(terms.exact) == {frozenset({"cup", "of"}), frozenset({"milk"})}
    (candidate,) = terms.candidates
    assert len(candidate) == 3
    assert candidate < {"東京", "京タ", "タワ", "ワー", "tea"}


def test_the_ranges_are_those_of_the_scripts() -> None:
    """By the names of the characters. The ranges come from another source."""
    named = set()
    for character in map(chr, range(sys.maxunicode + 1)):
        name = unicodedata.name(character, "")
        if name.startswith(SCRIPTS) and unicodedata.category(character)[0] in "LMN":
            named.add(character)
    assert [c for c in sorted(named) if not has_unspaced(c)] == []
    assert not any(map(has_unspaced, "aé・。、「」〜฿๏។၊가ㄅ་"))


@pytest.mark.parametrize(
    "piece",
    ["東", "東a", "東 ", "東\u0301", "ก", "aa東・", "a\u200c", "a\u200d\u200d", "🏴\U000e0067", "e\u200b"],
)
def test_no_text_makes_the_search_slow(piece: str) -> None:
    def search(size: int) -> None:
        event = post(piece * size)
        assert Track.parse("東東東東西,東a東西,東東-東,-東,東-").matches(event) is False
        assert not event.analyzed_text.word_sequence.contains(WordSequence.of("東東東東西"))
        assert event.analyzed_text.word_sequence.words

    assert_linear(search, 32_000)
