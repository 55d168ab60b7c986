"""`language` narrows by BCP 47 tag."""

from itertools import permutations

import pytest

from filters.event import Event
from filters.narrowing import Language


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
        *((old, new, True) for old, new in [("iw", "he"), ("in", "id"), ("ji", "yi"), ("jw", "jv"), ("tl", "fil")]),
        *((new, old, True) for old, new in [("iw", "he"), ("in", "id"), ("ji", "yi"), ("mo", "ro"), ("tl", "fil")]),
        *((one, other, True) for one, other in permutations(("no", "nb"), 2)),
        *((one, other, True) for one, other in permutations(("no-NO", "nn-NO"), 2)),
        *((one, other, True) for one, other in permutations(("sh", "hr"), 2)),
        ("zh", "yue-HK", True),
        ("yue", "zh-HK", True),
        ("nb", "nn", False),
        ("no-SJ", "nb-NO", False),
        ("id", "ms", False),
    ],
)
def test_a_tag_matches_itself_and_its_regions(languages: str, lang: str | None, matches: bool) -> None:  # noqa: FBT001 - a row of a table
    assert Language.parse(languages).matches(Event("post", lang=lang)) is matches
