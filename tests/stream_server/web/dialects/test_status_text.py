"""The text of a status for clients to whom a repost repeats the original's text."""

from stream_server.web.dialects.status_text import StatusText, place_id, status_text
from tests.stream_server.web.dialects.status_json import EMPTY, status


def test_a_status_and_a_quote_have_their_own_text() -> None:
    found = EMPTY | {"hashtags": [{"text": "tea", "indices": [0, 4]}]}
    assert status_text(status(message="#tea", entities=found)) == StatusText("#tea", found)
    assert status_text(status(message="#tea", entities=found, original=status())) == StatusText("#tea", found)
    assert status_text(status(message="", original=None)) == StatusText("", EMPTY)


def test_a_repost_has_the_text_of_its_original_behind_rt() -> None:
    found = {
        "mentions": [{"login": "cid", "id": "4", "indices": [2, 6]}],
        "hashtags": [{"text": "tea", "indices": [7, 11]}],
        "cashtags": [],
        "urls": [{"url": "a.co", "display_url": "a.co", "expanded_url": "http://a.co", "indices": [12, 16]}],
    }
    original = status(login="bob", uid="3", message="😍 @cid #tea a.co", entities=found)
    text, entities = status_text(status(message="", original=original))
    assert text == "RT @bob: 😍 @cid #tea a.co"
    shown = {kind: [text[slice(*one["indices"])] for one in ones] for kind, ones in entities.items()}
    assert shown == {"mentions": ["@bob", "@cid"], "hashtags": ["#tea"], "cashtags": [], "urls": ["a.co"]}
    assert entities["mentions"][0]["id"] == "3"
    assert found["hashtags"] == [{"text": "tea", "indices": [7, 11]}]


def test_equal_places_have_equal_ids() -> None:
    tea = {"name": "Tea", "country": "GB", "box": [0.0, 1.0, 2.0, 3.0]}
    assert place_id(tea) == place_id(dict(reversed(tea.items())))
    others = [place_id({**tea, name: value}) for name, value in (("name", "tea"), ("country", None), ("box", None))]
    assert len({place_id(tea), *others}) == 4
