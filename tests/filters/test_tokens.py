"""The words of a text."""

import pytest

from filters.tokens import fold, words, words_cut_at_marks


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello world", {"hello", "world"}),
        ("“Hello,” (World)!", {"hello", "world"}),
        ("rock'n'roll!", {"rock'n'roll", "rock", "n", "roll"}),
        ("don\u2019t", {"don\u2019t", "don", "t"}),
        ("coca-cola", {"coca-cola", "coca", "cola"}),
        ("(under_score) _x_", {"under_score", "_x_"}),
        ("$200 +1 10.2.15", {"200", "1", "10.2.15", "10", "2", "15"}),
        ("love😍 😡😡", {"love", "😍", "😡"}),
        ("👩‍👩‍👧 🇩🇪🇫🇷 👍🏽 ❤️", {"👩‍👩‍👧", "🇩🇪", "🇫🇷", "👍🏽", "❤️"}),
        ("हिन्दी में", {"हिन्दी", "में"}),
        ("می‌خواهم", {"می‌خواهم"}),
        ("... -- !", set()),
        ("", set()),
    ],
)
def test_words_come_without_outer_punctuation_and_in_parts(text: str, expected: set[str]) -> None:
    assert words(fold(text)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [("TWITTER", "twitter"), ("Straße", "STRASSE"), ("touche\u0301", "TOUCHÉ"), ("ΣΊΣΥΦΟΣ", "σίσυφος"), ("ﬁ", "FI")],
)
def test_fold_forgets_case_and_form(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("touché", "touche"), ("it's", "it\u2019s"), ("\uff41", "a")])
def test_fold_keeps_different_words_apart(one: str, other: str) -> None:
    assert fold(one) != fold(other)


def test_parts_are_cut_at_every_mark_and_kept_in_order() -> None:
    assert words_cut_at_marks("example.com/a_b?c=d%20e") == ["example", "com", "a_b", "c", "d", "20e"]
