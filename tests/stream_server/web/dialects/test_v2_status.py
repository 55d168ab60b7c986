"""A status as a Tweet of v2: its members, omissions, and included objects."""

import hashlib

import pytest

from stream_server.events.content import AuthorSnapshot, EntryFacts
from stream_server.web.dialects import v1_framing, v2_parameters
from stream_server.web.dialects.v2_framing import KnownUsers, render_includes, render_tweet
from stream_server.web.dialects.v2_parameters import FieldSelection
from tests.stream_server.web.dialects.status_json import EMPTY, status

ADA = AuthorSnapshot(
    id="2", login="ada", name="Ada L", bio="counts", url="https://ada.example", place="London", followers=7,
    following=3, posts=9, signup="2024-01-02T03:04:05.006Z",
)  # fmt: skip

EVERYTHING = FieldSelection(
    v2_parameters.TWEET_FIELDS,
    v2_parameters.USER_FIELDS,
    v2_parameters.PLACE_FIELDS,
    v2_parameters.MEDIA_FIELDS,
    frozenset(v2_parameters.EXPANSIONS),
)


def media_key(kind: str, url: str) -> str:
    """Return the media key of a link by the rule of the documentation: the type, and 53 bits of a hash."""
    return f"{kind}_{int.from_bytes(hashlib.blake2b(url.encode(), digest_size=8).digest()) >> 11}"


def test_media_have_the_same_ids_in_v1() -> None:
    media = [{"url": "https://a.example/1.png", "type": "image"}]
    (medium,) = v1_framing.render_tweet(status(media=media), EntryFacts())["entities"]["media"]
    assert media_key("3", media[0]["url"]) == f"3_{medium['id_str']}"


def test_a_status_has_three_members_unless_more_are_requested() -> None:
    defaults = {"id": "10", "text": "tea", "edit_history_tweet_ids": ["10"]}
    assert render_tweet(status(), FieldSelection().tweet) == defaults
    fields = FieldSelection().tweet | {"lang", "geo", "entities", "attachments", "source"}
    assert render_tweet(status(lang="und"), fields) == {**defaults, "lang": "und"}


def test_all_members_have_their_names_in_v2() -> None:
    entities = {
        "mentions": [{"login": "bob", "id": "3", "indices": [0, 4]}, {"login": "nobody", "indices": [5, 12]}],
        "hashtags": [{"text": "tea", "indices": [13, 17]}],
        "cashtags": [{"text": "TEA", "indices": [18, 22]}],
        "urls": [{"url": "a.example", "display_url": "a.example", "expanded_url": "http://a.example",
                  "indices": [23, 32]}],
    }  # fmt: skip
    written = status(
        message="@bob @nobody #tea $TEA a.example", entities=entities, in_reply_to="8", in_reply_to_uid="3",
        conversation="8", location={"lon": 1.5, "lat": 2.5}, place={"name": "Tea house", "country": "GB"},
        media=[{"url": "https://a.example/1.png", "type": "image"}], likes=1, comments=2, reposts=3,
    )  # fmt: skip
    rendered = render_tweet(written, v2_parameters.TWEET_FIELDS)
    place_id = rendered["geo"].pop("place_id")
    assert (len(place_id), int(place_id, 16) > 0) == (16, True)
    assert rendered == {
        "id": "10", "text": "@bob @nobody #tea $TEA a.example", "edit_history_tweet_ids": ["10"],
        "attachments": {"media_keys": [media_key("3", "https://a.example/1.png")]}, "author_id": "2",
        "conversation_id": "8",
        "created_at": "2026-11-21T22:00:00.000Z", "display_text_range": [0, 32],
        "edit_controls": {
            "edits_remaining": 0, "is_edit_eligible": False, "editable_until": "2026-11-21T22:00:00.000Z"
        },
        "entities": {
            "mentions": [{"start": 0, "end": 4, "username": "bob", "id": "3"},
                         {"start": 5, "end": 12, "username": "nobody"}],
            "hashtags": [{"start": 13, "end": 17, "tag": "tea"}],
            "cashtags": [{"start": 18, "end": 22, "tag": "TEA"}],
            "urls": [{"start": 23, "end": 32, "url": "a.example", "expanded_url": "http://a.example",
                      "display_url": "a.example"}],
        },
        "geo": {"coordinates": {"type": "Point", "coordinates": [1.5, 2.5]}},
        "in_reply_to_user_id": "3", "lang": "en",
        "public_metrics": {"retweet_count": 3, "repost_count": 3, "reply_count": 2, "like_count": 1, "quote_count": 0,
                           "bookmark_count": 0, "impression_count": 0},
        "referenced_tweets": [{"type": "replied_to", "id": "8"}], "reply_settings": "everyone",
    }  # fmt: skip


def test_a_repost_has_the_text_of_its_original_behind_rt() -> None:
    entities = {**EMPTY, "hashtags": [{"text": "tea", "indices": [2, 6]}]}
    original = status(id="9", uid="3", login="bob", message="🍵 #tea", entities=entities)
    rendered = render_tweet(status(message="", origin="9", original=original), v2_parameters.TWEET_FIELDS)
    (mention,), (tag,) = rendered["entities"]["mentions"], rendered["entities"]["hashtags"]
    assert rendered["text"] == "RT @bob: 🍵 #tea"
    assert (rendered["text"][mention["start"] : mention["end"]], mention["id"]) == ("@bob", "3")
    assert rendered["text"][tag["start"] : tag["end"]] == "#tea"
    assert rendered["referenced_tweets"] == [{"type": "retweeted", "id": "9"}]


def test_a_quote_has_its_own_text_and_refers_to_its_original() -> None:
    original = status(id="9", uid="3", login="bob", message="coffee")
    for shown in (original, None):
        rendered = render_tweet(status(origin="9", original=shown), v2_parameters.TWEET_FIELDS)
        assert (rendered["text"], rendered["referenced_tweets"]) == ("tea", [{"type": "quoted", "id": "9"}])


@pytest.mark.parametrize(("kind", "key"), [("image", "3"), ("gif", "16"), ("video", "7"), ("audio", "7")])
def test_a_repost_has_the_media_keys_of_its_original(kind: str, key: str) -> None:
    """The same link has the same key in each status, and twice in one status it is one."""
    media = [{"url": "https://b.example", "type": kind}]
    original = status(id="9", uid="3", login="bob", message="coffee", media=media * 2)
    attachments = {"media_keys": [media_key(key, "https://b.example")]}
    for shown in (original, status(message="", origin="9", original=original), status(media=media)):
        assert render_tweet(shown, v2_parameters.TWEET_FIELDS)["attachments"] == attachments
    quote = render_tweet(status(message="tea", origin="9", original=original), v2_parameters.TWEET_FIELDS)
    assert "attachments" not in quote


def test_a_text_that_begins_with_a_mention_answers_that_user() -> None:
    entities = {**EMPTY, "mentions": [{"login": "bob", "id": "3", "indices": [0, 4]}]}
    written = status(message="@bob hi", entities=entities)
    rendered = render_tweet(written, v2_parameters.TWEET_FIELDS)
    assert (rendered["in_reply_to_user_id"], "referenced_tweets" in rendered) == ("3", False)
    asked = FieldSelection(expansions=frozenset({"in_reply_to_user_id"}))
    (user,) = render_includes(written, KnownUsers(ADA), asked)["users"]
    assert user == {"id": "3", "name": "bob", "username": "bob"}
    behind = {**EMPTY, "mentions": [{"login": "bob", "id": "3", "indices": [3, 7]}]}
    for other in (status(message="hi @bob", entities=behind), status()):
        assert "in_reply_to_user_id" not in render_tweet(other, v2_parameters.TWEET_FIELDS)


def test_includes_have_each_object_of_the_entry_once() -> None:
    mentions = [{"login": "ada", "id": "2", "indices": [0, 4]}, {"login": "bob", "id": "3", "indices": [5, 9]}]
    written = status(
        message="@ada @bob hi", entities={**EMPTY, "mentions": mentions}, in_reply_to="8", in_reply_to_uid="2",
        place={"name": "Home", "box": [1.0, 2.0, 3.0, 4.0]},
        media=[{"url": "https://a.example/1.png", "type": "image"},
               {"url": "https://a.example/2.mp4", "type": "video"}],
    )  # fmt: skip
    rendered = render_includes(written, KnownUsers(ADA, None, "ada"), EVERYTHING)
    (place,) = rendered.pop("places")
    assert place.pop("id") == render_tweet(written, v2_parameters.TWEET_FIELDS)["geo"]["place_id"]
    box = {"type": "Feature", "bbox": [1.0, 2.0, 3.0, 4.0], "properties": {}}
    assert place == {"full_name": "Home", "name": "Home", "geo": box}
    assert rendered == {
        "users": [
            {
                "id": "2", "name": "Ada L", "username": "ada", "created_at": "2024-01-02T03:04:05.006Z",
                "description": "counts", "location": "London", "url": "https://ada.example", "protected": False,
                "public_metrics": {"followers_count": 7, "following_count": 3, "tweet_count": 9, "post_count": 9,
                                   "listed_count": 0},
            },
            {"id": "3", "name": "bob", "username": "bob"},
        ],
        "media": [
            {"media_key": media_key("3", "https://a.example/1.png"), "type": "photo", "url": "https://a.example/1.png"},
            {
                "media_key": media_key("7", "https://a.example/2.mp4"), "type": "video",
                "variants": [{"url": "https://a.example/2.mp4"}],
            },
        ],
    }  # fmt: skip


def test_a_reply_to_oneself_includes_the_whole_author() -> None:
    written = status(in_reply_to="8", in_reply_to_uid="2")
    asked = FieldSelection(expansions=frozenset({"in_reply_to_user_id"}))
    (user,) = render_includes(written, KnownUsers(ADA, None, "ada"), asked)["users"]
    assert user == {"id": "2", "name": "Ada L", "username": "ada"}


def test_an_original_is_included_with_its_author_and_media() -> None:
    gif = {"url": "https://b.example", "type": "gif"}
    original = status(id="9", uid="3", login="bob", message="coffee", media=[gif])
    people = KnownUsers(ADA, AuthorSnapshot(id="3", login="bob", name="Bob"), None)
    written = status(message="", origin="9", original=original)
    asked = frozenset(one for one in v2_parameters.EXPANSIONS if one.startswith("referenced_tweets.id"))
    assert render_includes(written, people, FieldSelection(expansions=asked)) == {
        "users": [{"id": "3", "name": "Bob", "username": "bob"}],
        "tweets": [{"id": "9", "text": "coffee", "edit_history_tweet_ids": ["9"]}],
        "media": [{"media_key": media_key("16", "https://b.example"), "type": "animated_gif"}],
    }
    everything = FieldSelection(expansions=frozenset(v2_parameters.EXPANSIONS))
    assert len(render_includes(written, people, everything)["media"]) == 1


@pytest.mark.parametrize("people", [KnownUsers(), KnownUsers(AuthorSnapshot(id="2", login="ada"))])
def test_an_unknown_author_has_the_login_only(people: KnownUsers) -> None:
    (user,) = render_includes(status(), people, FieldSelection(expansions=frozenset({"author_id"})))["users"]
    assert user == {"id": "2", "name": "ada", "username": "ada"}


def test_a_plain_status_includes_nothing() -> None:
    asked = EVERYTHING._replace(expansions=EVERYTHING.expansions - {"author_id"})
    assert render_includes(status(), KnownUsers(), asked) == {}
