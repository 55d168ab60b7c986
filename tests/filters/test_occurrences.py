"""The positions of a term in a text."""

import pytest

from filters.analyzed_text import find_occurrences
from filters.folded_text import FoldedText
from filters.tokens import fold
from tests.filters.texts import post
from tests.growth import assert_linear

TEXTS = [
    ("tea", "Tea, tea! TEA?", ["Tea", "tea", "TEA"]),
    ("tea", "steam", []),
    ("rock'n'roll", "so “Rock'n'Roll!”", ["Rock'n'Roll"]),
    ("n", "rock'n'roll n", ["n", "n"]),
    ("strasse", "die Straße, STRASSE", ["Straße", "STRASSE"]),
    ("touché", "TOUCHE\u0301!", ["TOUCHE\u0301"]),
    ("is", "ok İs", ["İs"]),
    ("c#", "C# c#1 (C#)", ["C#", "C#"]),
    ("rock'n", "rock'n'roll rock'nx", ["rock'n"]),
    ("1\u20e3", "1\ufe0f\u20e32\ufe0f\u20e3", ["1\ufe0f\u20e3"]),
    ("東京!", "東京! 東京!!", ["東京!", "東京!"]),
    ("각", "\u1100\u1161\u11a8 각", ["\u1100\u1161\u11a8", "각"]),
    ("😍", "love😍😍", ["😍", "😍"]),
    ("❤", "I ❤\ufe0f\u200b tea", ["❤\ufe0f"]),
    ("tea", "\u200ft\u00adea\u200b te\u2060a", ["t\u00adea", "te\u2060a"]),
    ("é", "e\u200b\u0301!", ["e\u200b\u0301"]),
    ("کتاب", "کتاب\u200c خوب", ["کتاب"]),
    ("می\u200cشود", "\u200cمی\u200c\u2060شود", ["می\u200c\u2060شود"]),
    ("ខ្មែរភា", "ខ្មែរ\u200bភាសា", ["ខ្មែរ\u200bភា"]),
    ("c#", "C\uff03 c\u00ad# ", ["C\uff03", "c\u00ad#"]),
    ("$tea", "buy \uff04TEA\u200b", ["\uff04TEA"]),
    ("👩\u200d👧", "a👩\u200d👧!", ["👩\u200d👧"]),
    ("tag", "#tag tag 😍 #Tag", ["#tag", "tag", "#Tag"]),
    ("#tag", "#tag tag #Tag", ["#tag", "#Tag"]),
    ("@bob", "@Bob bob", ["@Bob"]),
    ("bob", "@Bob bob's", ["@Bob", "bob"]),
    ("$usd", "usd $USD", ["$USD"]),
    ("usd", "usd $USD", ["usd"]),
    ("example", "see www.example.com/x, example", ["www.example.com/x", "example"]),
    ("example.com/x", "see www.example.com/x", ["www.example.com/x"]),
    ("東京", "東京と東京タワー #東京 #東京都", ["東京", "東京", "#東京", "#東京都"]),
    ("京", "東京", ["京"]),
    ("東京タ", "😍東京タワー", ["東京タ"]),
    ("ああ", "あああ", ["ああ", "ああ"]),
    ("日本語", "http://日本語.example.com/", ["http://日本語.example.com/"]),
    ("か\u309a", "か\u309aか", ["か\u309a"]),
]


@pytest.mark.parametrize(("term", "text", "found"), TEXTS)
def test_slicing_the_text_at_the_indices_gives_the_term_back(term: str, text: str, found: list[str]) -> None:
    said = post(text).analyzed_text
    assert [text[slice(*place)] for place in find_occurrences(said, term)] == found
    assert said.contains_term(term) is bool(found)


def test_all_positions_of_a_word() -> None:
    assert find_occurrences(post("😍 ß tea, @tea").analyzed_text, "tea") == [(4, 7), (9, 13)]


def test_folding_by_characters_equals_folding_at_once() -> None:
    hidden = "e\u200b\u0301\uff03 k\u200ci\u200c \U00010d50\u0301"
    for text in ("ǰ\u0301 ŉ ﬃ Straße", "\u1112\u1161\u11ab글", "ΐ\u0345Σ", "A\u030aB\u0323\u0307", hidden):
        assert FoldedText(text).text == fold(text)


def test_many_entities_take_linear_time() -> None:
    assert_linear(lambda size: find_occurrences(post("#tea $tea " * size).analyzed_text, "milk"), 2_000)
