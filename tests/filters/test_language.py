"""`language` narrows by BCP 47 tag."""

import pytest

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
def test_a_tag_matches_itself_and_its_regions(languages: str, lang: str | None, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Language.parse(languages).matches(Event("post", lang=lang)) is matches
