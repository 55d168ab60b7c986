"""The view of an event that filters get."""

import pytest

from filters import event as events
from filters import index_keys
from filters.entities import Entities, Mention, Url
from filters.event import MAX_CACHED_BIO_CHARS, MAX_CACHED_BIOS, Event
from filters.index_keys import user_key
from filters.rules.words import BioCondition
from filters.word_sequence import WordSequence
from tests.filters.texts import post


def test_terms_are_words_and_entities_with_and_without_their_sign() -> None:
    event = post("@Bob's #Tag costs $TWTR: http://www.example.com/A_b/")
    bare = {"bob", "s", "tag", "costs", "example.com/a_b", "example", "com", "a_b"}
    assert event.terms == bare | {"@bob", "#tag", "$twtr"}


def test_a_word_around_an_entity_is_not_the_whole_word() -> None:
    assert "twitter's" not in post("@Twitter's office").terms
    assert post("の@usernameに到着").terms == {"の", "に", "到", "着", "に到", "到着", "username", "@username"}


def test_a_shortened_display_of_a_link_yields_no_half_words() -> None:
    url = Url("https://t.co/x", "example.com/nonsen…", "https://example.com/nonsense", (0, 14))
    event = Event("post", text="https://t.co/x", entities=Entities(urls=(url,)))
    assert event.terms == {"example.com/nonsense", "example", "com", "nonsense"}


def test_wrong_indices_of_entities_raise_nothing() -> None:
    entities = Entities(mentions=(Mention("ab", (0, 3)), Mention("b", (1, 2)), Mention("far", (90, 99))))
    event = Event("post", text="@ab hello", entities=entities)
    assert event.terms == {"hello", "ab", "@ab", "b", "@b", "far", "@far"}


def test_keys_are_terms_users_and_squares() -> None:
    here = post("hello", user_ids=frozenset({"7"}), point=(13.4, 52.5))
    both = post("hello", user_ids=frozenset({"7"}), point=(13.4, 52.5), box=(0.0, 0.0, 90.0, 80.0))
    assert here.index_keys > {"hello", user_key("7")}
    assert here.index_keys == both.index_keys
    assert post("hello").common_keys == {"hello"}


def test_text_cannot_forge_keys_of_users_or_squares() -> None:
    forged = "".join((user_key("7"), " \x1em!"))
    assert not {user_key("7"), "\x1em!"} & post(forged).index_keys


def test_repr() -> None:
    assert repr(post("hello")) == "<Event post of 1: 'hello'>"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bios that were analyzed during the test."""
    bios: list[str] = []

    analyze = WordSequence.of

    def cut(bio: str) -> WordSequence:
        bios.append(bio)
        return analyze(bio)

    monkeypatch.setattr("filters.event.WordSequence.of", cut)
    events._analyze_bio_cached.cache_clear()
    return bios


def test_a_bio_is_analyzed_once(read: list[str]) -> None:
    bio = "Tea, and a barista"
    assert (
        post("one", bio=bio).index_keys
        == post("one", bio=bio).index_keys
        > {index_keys.BIO + "tea", index_keys.BIO + "barista"}
    )
    assert BioCondition(WordSequence(["a", "barista"])).matches(post("two", bio=bio))
    assert not BioCondition(WordSequence(["barista", "tea"])).matches(post("two", bio=bio))
    assert read == [bio]


def test_a_very_long_bio_is_not_cached(read: list[str]) -> None:
    bio = "tea " * MAX_CACHED_BIO_CHARS
    for _ in range(2):
        assert index_keys.BIO + "tea" in post(bio=bio).index_keys
    assert len(read) == 2
    remembered = events._analyze_bio_cached.cache_info()
    assert (remembered.currsize, remembered.maxsize) == (0, MAX_CACHED_BIOS)
