"""The words of a text."""

import pytest
from emoji import EMOJI_DATA

from filters.tokens import fold, words, words_in_order


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", {"hello", "world"}),
        ("“Hello,” (World)!", {"hello", "world"}),
        ("rock'n'roll!", {"rock", "n", "roll"}),
        ("don\u2019t", {"don", "t"}),
        ("coca-cola", {"coca", "cola"}),
        ("(under_score) _x_", {"under_score", "_x_"}),
        ("$200 +1 10.2.15", {"200", "1", "10", "2", "15"}),
        ("love😍 😡😡", {"love", "😍", "😡"}),
        ("👩‍👩‍👧 🇩🇪🇫🇷 👍🏽 ❤️", {"👩‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽", "❤"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
        ("می‌خواهم", {"می‌خواهم"}),
        ("... -- !", set()),
        ("", set()),
    ],
)
def test_a_word_is_a_row_of_letters_or_an_emoji(text: str, expected: set[str]) -> None:
    assert words(fold(text)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("İZMİR", "izmir"), ("I\u0307", "i"), ("i\u0307\u0307\u0301", "í"), ("❤\ufe0f", "❤\ufe0e")],
        *[("TWITTER", "twitter"), ("Straße", "STRASSE"), ("touche\u0301", "TOUCHÉ")],
        *[("ΣΊΣΥΦΟΣ", "σίσυφος"), ("ﬁ", "FI")],
        *[("te\u00ada", "tea"), ("\u200etea\u200c", "tea"), ("\u200b", ""), ("C\uff03", "c#"), ("\u3164a\u034f", "a")],
        *[("क्\u200dष\u200d", "क्\u200dष"), ("😍\u200d!", "😍!"), ("a\U000e0067", "a")],
        ("1\u200d\ufe0f\u20e3", "1\u20e3"),
    ],
)
def test_fold_forgets_case_and_form(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *[("touché", "touche"), ("it's", "it\u2019s"), ("\uff41", "a"), ("\u0131", "i"), ("j\u0307", "j")],
        ("क्\u200dष", "क्ष"),
    ],
)
def test_fold_keeps_different_words_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_words_in_order_are_cut_at_every_mark() -> None:
    assert words_in_order("example.com/a_b?c=d%20e") == ["example", "com", "a_b", "c", "d", "20e"]


def test_each_emoji_is_one_word_and_no_other() -> None:
    """All sequences of Unicode, those without the presentation selector too, beside letters and beside each other."""
    assert max(facts["E"] for facts in EMOJI_DATA.values()) >= 17
    for emoji in EMOJI_DATA:
        one = fold(emoji)
        assert words(fold(f"a{emoji}b {emoji}{emoji}")) == {"a", "b", one}
        assert words_in_order(fold(f"a{emoji}b{emoji}{emoji}")) == ["a", one, "b", one, one]


def test_a_later_emoji_is_a_word_too() -> None:
    """Unicode has reserved the code points of emoji to come."""
    assert words("a\U0001faffb") == {"a", "\U0001faff", "b"}
