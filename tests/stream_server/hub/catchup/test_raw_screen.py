"""A screen lets every entry pass that has one of its keys, and few others."""

import json
import random
from collections.abc import Iterator

import msgspec
import pytest

from filters.entities import extract_entities
from filters.index_keys import LANGUAGE, user_key
from stream_server.events.entry import Entry
from stream_server.events.position import EPOCH_MS, Position
from stream_server.hub.catchup.replay_index import MAX_SCREEN_KEYS, make_screen, may_have_key
from tests.end_to_end.sample_texts import VOCABULARY, drafts


def entry_of(text: str, uid: str = "7", **more: object) -> Entry:
    """Return a post as the store writes it."""
    found = extract_entities(text)
    entities = {
        "mentions": [{"login": one.login, "id": "99", "indices": one.indices} for one in found.mentions],
        "hashtags": [{"text": one.text, "indices": one.indices} for one in found.hashtags],
        "cashtags": [{"text": one.text, "indices": one.indices} for one in found.cashtags],
        "urls": [
            {"url": u.url, "display_url": u.display_url, "expanded_url": u.expanded_url, "indices": u.indices}
            for u in found.urls
        ],
    }
    status = {"id": "12345", "uid": uid, "login": "Ann", "message": text, "entities": entities, **more}
    return Entry(Position(EPOCH_MS + 1, 0, 1), "post", "public", msgspec.json.encode({"wire": {"status": status}}))


def texts() -> Iterator[str]:
    chance = random.Random(5)
    words = VOCABULARY.split(" ")
    for _ in range(300):
        yield " ".join(chance.choices(words, k=chance.randint(1, 12)))
    yield 'say"this"now back\\slash tab\there O\'Neil\u2019s K\u212aelvin \u017fharp'
    yield from (draft.body["message"] for draft in drafts(300))


def test_each_key_of_an_entry_passes_its_own_screen() -> None:
    """So the screen excludes no match. Keys that do not occur in JSON have no screen."""
    screened = 0
    for text in texts():
        quoted = {"id": "5", "uid": "8", "message": "a Quoted text #There"}
        for entry in (entry_of(text), entry_of(text, origin="5", original=quoted)):
            for key in entry.event.index_keys:
                screen = make_screen(frozenset((key,)))
                if screen is not None:
                    screened += 1
                    assert may_have_key(entry.body, screen), (text, key)
    assert screened > 2000


def test_an_entry_without_the_keys_does_not_pass() -> None:
    screen = make_screen(frozenset(("coffee", "#tea", user_key("4"))))
    assert screen is not None
    assert not may_have_key(entry_of("Good morning #coffe", uid="42").body, screen)
    for text, uid in (("Coffee!", "42"), ("#TEA", "42"), ("hello", "4")):
        assert may_have_key(entry_of(text, uid=uid).body, screen)


@pytest.mark.parametrize("text", ["cafe\u0301 coffee", "\u212aoffee kelvin", "\u6771\u4eac coffee", "COFFEE\u2019s"])
def test_texts_in_other_scripts_are_searched_in_their_folded_form(text: str) -> None:
    """The sign for Kelvin folds to the letter k."""
    body = entry_of(text).body
    for term, found in (("coffee", "offee kel" not in text), ("koffee", "\u212a" in text), ("tea", False)):
        screen = make_screen(frozenset((term,)))
        assert screen is not None
        assert may_have_key(body, screen) is found


@pytest.mark.parametrize(
    "body", [json.dumps({"wire": {"status": {"message": "caf\xe9"}}}).encode(), b'{"wire":"\xff"}']
)
def test_json_with_escapes_or_invalid_bytes_always_passes(body: bytes) -> None:
    screen = make_screen(frozenset(("coffee",)))
    assert screen is not None
    assert may_have_key(body, screen)


@pytest.mark.parametrize("key", [LANGUAGE + "en", 'a"b', "a\\b", "caf\xe9", "\u6771", "#", "\x1fm1"])
def test_keys_that_json_does_not_show_have_no_screen(key: str) -> None:
    assert make_screen(frozenset((key, "tea"))) is None


def test_many_keys_have_no_screen() -> None:
    assert make_screen(frozenset(map(str, range(MAX_SCREEN_KEYS)))) is not None
    assert make_screen(frozenset(map(str, range(MAX_SCREEN_KEYS + 1)))) is None
