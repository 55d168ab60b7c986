"""Words and entities of any text, compared with the reference."""

import unicodedata
from itertools import product

import pytest
import regex  # type: ignore[import-untyped]  # it has no types
from hypothesis import assume
from hypothesis import event as note
from hypothesis import strategies as st

from filters.entities import extract_entities
from filters.error import ParameterError
from filters.event import Event
from filters.testing import check_explanations, check_match
from filters.tokens import fold, words
from filters.track import Track
from tests import reference
from tests.filters.texts import post
from tests.property.laws import Holds

pytestmark = pytest.mark.timeout(900)  # for the long form

# Without lone combining marks and joiners between emoji, because the documents do not define them. Other tests have
# scripts without blanks, because these scripts have no words to compare.
PIECES = [
    "😍", "1\ufe0f\u20e3", "❤\ufe0f", "👍🏽", "🇩🇪", "👨\u200d👩\u200d👧", "\u2139\ufe0f", "🪿", "#col\u00b7lege",
    *"aBcßé_-.,:;/'\u2019!?()#@$&+1234\u00b2", " ", "  ", "\n", "\u3000", "\u0130", "हिन्दी", "\u01c5", "ΐ", "http://",
    "www.", ".com", ".co.jp", "#tag", "@bob", "$USD", "RT", "rock'n'roll", "\uff03", "\uff20", "\uff04", "t.co/x",
    "\u200b", "\u00ad", "\u2060", "\u200f", "\ufe0f", "\u034f", "\u3164", "می\u200cشود", "کتاب\u200c", "\uff04usd",
]  # fmt: skip
SIGNS = [
    *'%*+<>=^~|\\`"\u20e3\u200d\u0301\u00b7\u30fb\u2192\u20ac\u00b0\u212a\U0001f1e6\u200b',
    *("https://", "\x00", "\x85"),
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
MIXED_TEXTS = st.lists(st.sampled_from([*PIECES, *"日のกำ"]), max_size=25).map("".join)
UNSEEN = regex.compile(r"\p{Default_Ignorable_Code_Point}")
UNSEEN_BUT_JOINERS = regex.compile(rf"{UNSEEN.pattern}+(?=[#@$\uff03\uff20\uff04])|(?![\u200c\u200d]){UNSEEN.pattern}")
ANY_TEXT = st.text(st.characters(), max_size=60)


def _as_the_reference(text: str) -> None:
    entities = extract_entities(text)
    # The reference takes the text before any :// as a scheme. The documents do not say whether a path may contain one.
    assume(not any("://" in url.display_url for url in entities.urls))
    status = {"message": text, "entities": {name: [e._asdict() for e in f] for name, f in entities._asdict().items()}}
    terms = Event("post", text=text, entities=entities).terms
    assert terms == reference.tokens(status)


def test_terms_are_those_of_the_reference(holds: Holds) -> None:
    holds(_as_the_reference, TEXTS, cases=500)


def _found_as_by_the_reference(text: str, at: int, size: int) -> None:
    entities = extract_entities(text)
    assume(not any("://" in url.display_url for url in entities.urls))
    term = text[at : at + size]
    assume(term.strip() and "," not in term and len(term.encode()) <= 60)
    status = {"message": text, "entities": {name: [e._asdict() for e in f] for name, f in entities._asdict().items()}}
    expected = reference.tracked(status, term)
    note("found" if expected else "not found")
    assert Track.parse(term).matches(Event("post", text=text, entities=entities)) is expected


def test_pieces_of_a_text_are_found_as_by_the_reference(holds: Holds) -> None:
    holds(_found_as_by_the_reference, MIXED_TEXTS, st.integers(0, 12), st.integers(1, 6), cases=500)


def _each_told_or_found(text: str) -> None:
    for phrase in text.split(","):  # beside each other they may be one link, as in `t.co/x,1`
        _told_or_found(phrase)


def _told_or_found(text: str) -> None:
    try:
        track = Track.parse(text)
    except ParameterError:
        return
    alone = Event("post", text=text, entities=extract_entities(text))
    # No entity has what is not shown between its sign and name, and before a sign it begins one. Joiners may stay.
    shown = [UNSEEN.sub("", text), UNSEEN_BUT_JOINERS.sub("", text)]
    assert track.matches(alone) or any(map(track.matches, map(post, shown))) or track.unmatchable_terms
    check_match(track, alone)
    check_explanations(track, alone)


def test_a_phrase_without_a_warning_is_found_in_itself(holds: Holds) -> None:
    """No phrase is silent: a text that consists of it has it, or it is refused, or its stream is told."""
    pieces = st.lists(st.sampled_from([*PIECES, *"日のกำ", *SIGNS]), min_size=1, max_size=6).map("".join)
    _each_told_or_found("t.co/x,1\ufe0f\u20e3")
    _each_told_or_found("😍\u200d😍\u200d\uff04usd")
    texts = st.one_of(pieces, st.text(st.characters(), max_size=12), st.text(max_size=4))
    holds(_each_told_or_found, texts, cases=1000)


def test_every_short_term_is_found_in_itself_or_told() -> None:
    letters = ["a", "1", "#", "@", "$", ".", "-", "/", "東", "😍", "\u20e3", "\u200d", "www."]
    for length in (1, 2, 3):
        for term in map("".join, product(letters, repeat=length)):
            _told_or_found(term)


def _well_placed(text: str) -> None:
    entities = extract_entities(text)
    assert all(text[slice(*url.indices)] == url.url for url in entities.urls)
    for signed in (entities.mentions, entities.hashtags, entities.cashtags):
        assert all(text[slice(*entity.indices)][1:] == entity[0] for entity in signed)
    for family in entities:
        ends = [index for entity in family for index in entity.indices]
        assert ends == sorted(ends)


def test_entities_are_at_their_indices(holds: Holds) -> None:
    holds(_well_placed, st.one_of(MIXED_TEXTS, ANY_TEXT), cases=300)


def _folded_once(text: str) -> None:
    once = fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == once
    assert all(part in once for part in words(once))
    if text.isascii():
        assert fold(text.upper()) == once


def test_folding_ignores_case_and_unicode_form(holds: Holds) -> None:
    holds(_folded_once, st.one_of(MIXED_TEXTS, ANY_TEXT), cases=300)
