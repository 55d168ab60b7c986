"""Statuses in v1.1 format: members of each form."""

from typing import Any

import pytest

from stream_server.events.content import AuthorSnapshot, EntryFacts
from stream_server.web.dialects.v1_framing import format_timestamp, render_delete, render_tweet, render_user
from tests.stream_server.web.dialects.status_json import EMPTY, status

ADA = AuthorSnapshot(
    id="2", login="ada", name="Ada L", bio="see tea.com and more", url="https://www.ada.example/", place="London",
    lang="en-GB", followers=7, following=3, posts=9, protected=False, signup="2008-08-27T13:08:45.006Z",
)  # fmt: skip
BOB = AuthorSnapshot(id="3", login="bob", name="Bob", followers=70)


def rendered(author: AuthorSnapshot | None = ADA, **more: Any) -> dict[str, Any]:
    return render_tweet(status(**more), EntryFacts(author=author))


def test_ids_are_numbers_and_strings() -> None:
    made = rendered(id="1800000000000", uid="2")
    assert (made["id"], made["id_str"]) == (1_800_000_000_000, "1800000000000")
    assert (made["user"]["id"], made["user"]["id_str"]) == (2, "2")


def test_times_have_the_format_of_twitter() -> None:
    made = rendered(posted="2008-08-27T13:08:45.123Z")
    assert made["created_at"] == made["user"]["created_at"] == "Wed Aug 27 13:08:45 +0000 2008"
    assert made["timestamp_ms"] == "1219842525123"
    assert format_timestamp(0) == "Thu Jan 01 00:00:00 +0000 1970"


def test_the_author_is_as_of_posting() -> None:
    made = rendered()["user"]
    assert {name: made[name] for name in ("name", "screen_name", "description", "location", "url", "lang")} == {
        "name": "Ada L", "screen_name": "ada", "description": "see tea.com and more", "location": "London",
        "url": "https://www.ada.example/", "lang": "en-GB",
    }  # fmt: skip
    assert (made["followers_count"], made["friends_count"], made["statuses_count"]) == (7, 3, 9)
    (own,) = made["entities"]["url"]["urls"]
    assert (own["display_url"], own["indices"]) == ("ada.example", [0, 24])
    (found,) = made["entities"]["description"]["urls"]
    assert (found["url"], found["indices"]) == ("tea.com", [4, 11])


def test_an_unknown_author_has_login_and_sign_up_time_only() -> None:
    made = rendered(author=None, uid=str(4096 * 86_400_000))["user"]
    assert (made["name"], made["screen_name"], made["followers_count"]) == ("ada", "ada", 0)
    assert (made["description"], made["location"], made["url"]) == ("", "", None)
    assert made["created_at"] == "Tue Jan 02 00:00:00 +0000 2024"


def test_the_five_reply_members_are_always_present() -> None:
    names = ("status_id", "status_id_str", "user_id", "user_id_str", "screen_name")
    mention = {"login": "bob", "id": "3", "indices": [1, 5]}

    def answer(reply_to_login: str | None = None, **more: Any) -> list[object]:
        made = render_tweet(status(**more), EntryFacts(reply_to_login=reply_to_login))
        return [made["in_reply_to_" + name] for name in names]

    assert answer() == [None] * 5
    assert answer("Bob", in_reply_to="8", in_reply_to_uid="3") == [8, "8", 3, "3", "Bob"]
    entities = EMPTY | {"mentions": [mention]}
    assert answer(in_reply_to="8", in_reply_to_uid="3", entities=entities) == [8, "8", 3, "3", "bob"]
    at_bob: dict[str, Any] = {"message": " @bob hi", "entities": entities}
    assert answer("cid", in_reply_to="8", in_reply_to_uid="4", **at_bob) == [8, "8", 4, "4", "cid"]
    assert answer(**at_bob) == [None, None, 3, "3", "bob"]
    assert answer(message="a@bob hi", entities=entities) == [None] * 5
    assert answer(in_reply_to="8", in_reply_to_uid="2") == [8, "8", 2, "2", "ada"]  # to oneself


def test_points_and_places() -> None:
    made = rendered(
        location={"lon": 1.5, "lat": 2.5}, place={"name": "Tea", "country": "gb", "box": [0.0, 1.0, 2.0, 3.0]}
    )
    assert made["coordinates"] == {"type": "Point", "coordinates": [1.5, 2.5]}
    assert made["geo"] == {"type": "Point", "coordinates": [2.5, 1.5]}
    place = made["place"]
    assert (place["full_name"], place["country_code"]) == ("Tea", "GB")
    assert place["bounding_box"] == {
        "type": "Polygon", "coordinates": [[[0.0, 1.0], [2.0, 1.0], [2.0, 3.0], [0.0, 3.0]]],
    }  # fmt: skip
    assert rendered(place={"name": "Tea"})["place"]["bounding_box"] is None
    assert [rendered()[name] for name in ("coordinates", "geo", "place")] == [None] * 3


def test_entities_have_the_names_of_twitter() -> None:
    found = {
        "mentions": [{"login": "bob", "id": "3", "indices": [0, 4]}, {"login": "nobody", "indices": [5, 12]}],
        "hashtags": [{"text": "tea", "indices": [13, 17]}],
        "cashtags": [{"text": "TEA", "indices": [18, 22]}],
        "urls": [{"url": "a.co", "display_url": "a.co", "expanded_url": "http://a.co", "indices": [23, 27]}],
    }  # fmt: skip
    made = rendered(message="@bob @nobody #tea $TEA a.co", entities=found)
    assert made["entities"] == {
        "hashtags": found["hashtags"],
        "symbols": found["cashtags"],
        "urls": found["urls"],
        "user_mentions": [{"screen_name": "bob", "name": "bob", "id": 3, "id_str": "3", "indices": [0, 4]}],
    }
    assert made["possibly_sensitive"] is False
    assert "possibly_sensitive" not in rendered()


def test_media_have_indices_behind_the_text() -> None:
    """All media are photos in `entities`, and keep their type in `extended_entities`. Audio is left out."""
    media = [{"url": f"https://a.example/{kind}", "type": kind} for kind in ("image", "video", "gif", "audio")]
    made = rendered(message="tea", media=media)
    assert [one["type"] for one in made["entities"]["media"]] == ["photo"] * 3
    assert [one["type"] for one in made["extended_entities"]["media"]] == ["photo", "video", "animated_gif"]
    first = made["entities"]["media"][0]
    assert (first["media_url"], first["indices"], first["id_str"]) == (media[0]["url"], [3, 3], str(first["id"]))
    assert 0 < first["id"] < 2**53
    assert len({one["id"] for one in made["entities"]["media"]}) == 3
    assert "extended_entities" not in rendered(media=media[3:])


def test_media_ids_are_stable_and_distinct() -> None:
    media = [{"url": f"https://a.example/{number}", "type": "image"} for number in range(200)]
    numbers = [one["id"] for one in rendered(media=media)["entities"]["media"]]
    assert len(set(numbers)) == 200
    assert max(numbers) < 2**53
    assert [one["id"] for one in rendered(id="11", media=media[7:8])["entities"]["media"]] == numbers[7:8]


def test_a_repost_embeds_its_original_and_repeats_its_text() -> None:
    found = EMPTY | {"hashtags": [{"text": "tea", "indices": [2, 6]}]}
    original = status(id="9", uid="3", login="bob", message="😍 #tea", entities=found, likes=4)
    made = render_tweet(status(message="", origin="9", original=original), EntryFacts(author=ADA, original_author=BOB))
    assert made["text"] == "RT @bob: 😍 #tea"
    assert made["entities"]["hashtags"] == [{"text": "tea", "indices": [11, 15]}]
    (mention,) = made["entities"]["user_mentions"]
    assert (mention["screen_name"], made["text"][slice(*mention["indices"])]) == ("bob", "@bob")
    inner = made["retweeted_status"]
    assert (inner["text"], inner["id_str"], inner["favorite_count"]) == ("😍 #tea", "9", 4)
    assert inner["entities"]["hashtags"] == found["hashtags"]
    assert (inner["user"]["screen_name"], inner["user"]["followers_count"]) == ("bob", 70)
    assert (made["user"]["screen_name"], made["is_quote_status"]) == ("ada", False)


def test_a_repost_shows_the_media_of_its_original() -> None:
    media = [{"url": "https://a.example/1.png", "type": "image"}, {"url": "https://a.example/2", "type": "audio"}]
    original = status(id="9", uid="3", login="bob", message="tea", media=media)
    made = render_tweet(status(message="", origin="9", original=original), EntryFacts())
    (own,) = made["retweeted_status"]["entities"]["media"]
    source = {"source_status_id": 9, "source_status_id_str": "9", "source_user_id": 3, "source_user_id_str": "3"}
    assert made["entities"]["media"] == [{**own, "indices": [len("RT @bob: tea")] * 2, **source}]
    assert made["extended_entities"]["media"] == made["entities"]["media"]
    quote = render_tweet(status(message="coffee!", origin="9", original=original), EntryFacts())
    assert ("media" in quote["entities"], quote["quoted_status"]["entities"]["media"]) == (False, [own])


def test_a_repost_of_a_quote_is_a_quote_too() -> None:
    quote = status(id="9", uid="3", login="bob", message="coffee!", origin="8")
    made = render_tweet(status(message="", origin="9", original=quote), EntryFacts())
    inner = made["retweeted_status"]
    assert (inner["is_quote_status"], inner["quoted_status_id"], inner["quoted_status_id_str"]) == (True, 8, "8")
    assert (made["is_quote_status"], made["quoted_status_id"], made["quoted_status_id_str"]) == (True, 8, "8")
    assert "quoted_status" not in made
    outer = render_tweet(status(message="indeed", origin="9", original=quote), EntryFacts())
    assert (outer["quoted_status_id"], outer["quoted_status"]["quoted_status_id"]) == (9, 8)


def test_a_repost_whose_original_is_hidden_is_no_quote() -> None:
    made = rendered(message="", origin="9", original=None)
    assert (made["is_quote_status"], "quoted_status_id" in made, made["text"]) == (False, False, "")


def test_a_quote_embeds_its_original() -> None:
    original = status(id="9", uid="3", login="bob", message="tea?")
    made = render_tweet(status(message="coffee!", origin="9", original=original), EntryFacts(original_author=BOB))
    assert (made["text"], made["is_quote_status"], made["quoted_status_id"]) == ("coffee!", True, 9)
    assert (made["quoted_status"]["text"], made["quoted_status"]["user"]["name"]) == ("tea?", "Bob")
    assert "retweeted_status" not in made


def test_a_quote_of_a_deleted_status_keeps_its_id() -> None:
    made = rendered(message="coffee!", origin="9", original=None)
    assert (made["is_quote_status"], made["quoted_status_id_str"]) == (True, "9")
    assert "quoted_status" not in made


def test_counts_and_flags() -> None:
    made = rendered(likes=2, reposts=3, comments=4)
    assert (made["favorite_count"], made["retweet_count"], made["favorited"], made["retweeted"]) == (2, 3, False, False)
    assert (made["reply_count"], made["quote_count"]) == (4, 0)
    assert (made["filter_level"], made["truncated"], made["lang"]) == ("low", False, "en")


def test_a_delete_has_ids_and_time_only() -> None:
    assert render_delete({"id": "10", "uid": "2", "deleted": True}, 5) == {
        "delete": {
            "status": {"id": 10, "id_str": "10", "user_id": 2, "user_id_str": "2"},
            "timestamp_ms": "5",
        }
    }


@pytest.mark.parametrize("login", ["ada", "Ada_9"])
def test_the_screen_name_is_the_login_of_the_status(login: str) -> None:
    assert render_user("2", login, ADA)["screen_name"] == login
