"""``language`` narrows by BCP 47 tag."""

import pytest

from filters.error import ParameterError
from filters.event import Event
from filters.language import Language


@pytest.mark.parametrize(
    ("languages", "lang", "matches"),
    [
        ("en", "en", True),
        ("en", "en-GB", True),
        ("EN", "en", True),
        ("en", "EN-gb", True),
        ("en-GB", "en", False),
        ("en-GB", "en-GB-oed", True),
        ("en", "eng", False),
        ("de, pt-BR", "pt-br", True),
        ("de,pt-BR", "pt", False),
        ("und", None, True),
        ("en", None, False),
        ("und", "und", True),
    ],
)
def test_languages(languages: str, lang: str | None, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    """A tag takes its regions, not the other way round; case does not matter; no language is ``und``."""
    assert Language.parse(languages).matches(Event("post", lang=lang)) is matches


@pytest.mark.parametrize("value", ["", "e", "en,", "*", "en_GB", "en-", "en GB", "1", "abcdefghi", "\u00e9n"])
def test_tags_that_are_none(value: str) -> None:
    """What cannot be a tag can match nothing, so it is refused."""
    with pytest.raises(ParameterError) as refusal:
        Language.parse(value)
    assert (refusal.value.code, refusal.value.param) == ("invalid_parameter", "language")


def test_more_than_100_languages_are_too_many() -> None:
    """The list is bounded like all lists."""
    with pytest.raises(ParameterError) as refusal:
        Language.parse(",".join(["en"] * 101))
    assert refusal.value.code == "too_many"
