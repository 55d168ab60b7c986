"""Terms in any mixture of scripts, and their positions, compared with plain loops."""

import unicodedata

import pytest
from hypothesis import strategies as st

from filters.analyzed_text import AnalyzedText, find_occurrences
from filters.entities import extract_entities
from filters.folded_text import FoldedText
from filters.testing import check_match
from filters.tokens import fold, tokens, words
from filters.track import Track
from tests.filters.texts import post
from tests.property.laws import Holds

pytestmark = pytest.mark.timeout(900)  # for the long form

LETTERS = "東京タ"
TEXTS = st.lists(st.sampled_from([*LETTERS, *"aB_・。 ,#😍ßก", "\u3099", "ำ", "a.co/"]), max_size=16).map("".join)
TERMS = st.lists(st.sampled_from([*LETTERS, "a", "ก", "ำ"]), min_size=1, max_size=4).map("".join)
ANY_TEXT = st.text(st.characters(), max_size=40)


def _runs(text: str) -> list[str]:
    """Runs of letters, marks and digits of the text outside of entities, of hashtags and of links."""
    entities = extract_entities(text)
    assert not entities.mentions
    characters = list(text)
    for family in (entities.urls, entities.hashtags):
        for start, end in (entity.indices for entity in family):
            characters[start:end] = " " * (end - start)
    pieces = ["".join(characters), *(tag.text for tag in entities.hashtags), *(url.url for url in entities.urls)]
    folded = unicodedata.normalize("NFC", " ".join(pieces).casefold())
    return "".join(c if c == "_" or unicodedata.category(c)[0] in "LMN" else " " for c in folded).split()


def _found_where_it_stands(text: str, term: str) -> None:
    term = fold(term)
    found = Track.parse(term).matches(post(text))
    if set(term) - {"a"}:
        assert found is any(term in run for run in _runs(text))


def test_a_term_is_found_exactly_where_a_run_holds_it(holds: Holds) -> None:
    holds(_found_where_it_stands, TEXTS, TERMS, cases=500)


def _keeps_the_contract(text: str, term: str, other: str) -> None:
    check_match(Track.parse(f"{term} a,{other}"), post(text))


def test_keys_and_clauses_keep_the_contract(holds: Holds) -> None:
    holds(_keeps_the_contract, TEXTS, TERMS, TERMS, cases=250)


def _placed(text: str, terms: list[str]) -> None:
    said = AnalyzedText(text, extract_entities(text))
    for term in (*sorted(said.terms)[:20], *map(fold, terms)):
        places = find_occurrences(said, term)
        assert bool(places) is said.contains_term(term), term
        assert all(0 <= start < end <= len(text) for start, end in places)


def test_a_term_has_a_position_if_it_is_found(holds: Holds) -> None:
    holds(_placed, st.one_of(TEXTS, ANY_TEXT), st.lists(TERMS, max_size=3), cases=250)


def _folded_alike(text: str) -> None:
    folded = FoldedText(text)
    assert folded.text == fold(text)
    apart = {folded.text[start:end] for _, start, end in tokens(folded.text)}
    assert apart <= words(folded.text)


def test_folding_by_characters_equals_folding_at_once(holds: Holds) -> None:
    holds(_folded_alike, st.one_of(TEXTS, ANY_TEXT), cases=500)
