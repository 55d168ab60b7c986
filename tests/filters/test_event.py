"""What filters see of an event."""

import pytest

from filters import event as events
from filters import index_keys
from filters.entities import Entities, Mention, Url
from filters.event import MAX_CACHED_BIO_CHARS, MAX_CACHED_BIOS, Event
from filters.index_keys import user_key
from filters.rules.words import BioCondition
from filters.tokens import words_in_order
from tests.filters.texts import post


def test_terms_are_words_and_entities_with_and_without_their_sign() -> None:
    """Hashtags and mentions are found bare and signed, cashtags signed, a link whole and in parts."""
    event = post("@Bob's #Tag costs $TWTR: http://www.example.com/A_b/")
    bare = {"bob", "s", "tag", "costs", "example.com/a_b", "example", "com", "a_b"}
    assert event.terms == bare | {"@bob", "#tag", "$twtr"}
    assert [*event.analyzed_text.mentions, *event.analyzed_text.hashtags, *event.analyzed_text.cashtags] == [
        "bob",
        "tag",
        "twtr",
    ]


def test_what_is_left_of_a_word_around_an_entity_is_no_longer_that_word() -> None:
    """Of a mention with a possessive s the mention and the s are left, never both in one."""
    assert "twitter's" not in post("@Twitter's office").terms
    assert post("の@usernameに到着").analyzed_text.words == {"の", "に", "到", "着", "に到", "到着"}


def test_a_shortened_display_of_a_link_yields_no_half_words() -> None:
    """A display_url that ends in an ellipsis is not looked at; the expanded one has everything."""
    url = Url("https://t.co/x", "example.com/nonsen…", "https://example.com/nonsense", (0, 14))
    event = Event("post", text="https://t.co/x", entities=Entities(urls=(url,)))
    assert event.terms == {"example.com/nonsense", "example", "com", "nonsense"}


def test_entities_that_overlap_or_lie_outside_the_text_do_no_harm() -> None:
    """Indices come from a log that others may have written: nothing is counted twice, nothing raises."""
    entities = Entities(mentions=(Mention("ab", (0, 3)), Mention("b", (1, 2)), Mention("far", (90, 99))))
    event = Event("post", text="@ab hello", entities=entities)
    assert event.analyzed_text.words == {"hello"}


def test_keys_hold_terms_people_and_squares() -> None:
    """An event is found by what it says, whom it concerns and where it is; a point outranks a place."""
    here = post("hello", user_ids=frozenset({"7"}), point=(13.4, 52.5))
    both = post("hello", user_ids=frozenset({"7"}), point=(13.4, 52.5), box=(0.0, 0.0, 90.0, 80.0))
    assert here.index_keys > {"hello", user_key("7")}
    assert here.index_keys == both.index_keys
    assert post("hello").common_keys == {"hello"}


def test_no_term_can_pass_for_a_person_or_a_square() -> None:
    """Text cannot forge the keys of the other families."""
    forged = "".join((user_key("7"), " \x1em!"))
    assert not {user_key("7"), "\x1em!"} & post(forged).index_keys


def test_an_event_shows_what_it_is() -> None:
    """The representation of an event names kind, author and text."""
    assert repr(post("hello")) == "<Event post of 1: 'hello'>"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The bios that are cut into words from now on."""
    bios: list[str] = []

    def cut(folded: str) -> list[str]:
        bios.append(folded)
        return words_in_order(folded)

    monkeypatch.setattr("filters.event.words_in_order", cut)
    events._analyze_bio_cached.cache_clear()
    return bios


def test_a_bio_is_read_once(read: list[str]) -> None:
    """Whoever posts again has the same words, and a rule that looks at them reads nothing anew."""
    bio = "Tea, and a barista"
    assert (
        post("one", bio=bio).index_keys
        == post("one", bio=bio).index_keys
        > {index_keys.bio_key("tea"), index_keys.bio_key("barista")}
    )
    assert BioCondition(["a", "barista"]).matches(post("two", bio=bio))
    assert not BioCondition(["barista", "tea"]).matches(post("two", bio=bio))
    assert read == ["tea, and a barista"]


def test_a_bio_that_no_user_can_have_is_not_remembered(read: list[str]) -> None:
    """It is found as any other, and what is remembered stays small."""
    bio = "tea " * MAX_CACHED_BIO_CHARS
    for _ in range(2):
        assert index_keys.bio_key("tea") in post(bio=bio).index_keys
    assert len(read) == 2
    remembered = events._analyze_bio_cached.cache_info()
    assert (remembered.currsize, remembered.maxsize) == (0, MAX_CACHED_BIOS)
