"""A status as a Tweet of v2, and what is told beside it.

All here are pure functions of what an entry says: nothing is looked up. Nulls and what is empty are left
out, as X does. Indices count code points, and texts are as they were written: ``&`` stays ``&``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stream_server.view import Person
from stream_server.web.dialects.v2_fields import Wanted
from stream_server.web.dialects.words import Json, place_id, words

_MEDIA_TYPES = {
    "image": ("3", "photo"),
    "gif": ("16", "animated_gif"),
    "video": ("7", "video"),
    "audio": ("7", "audio"),
}
"""Ours, then the first number of X's key for it, and its name there, which has none for audio."""


class People(NamedTuple):
    """What the entry knows of those in it: the author, the author of the original, and the login of the answered."""

    author: Person | None = None
    original: Person | None = None
    reply_to_login: str | None = None


def tweet(status: Json, wanted: frozenset[str]) -> Json:
    """The Tweet of a status as it stands on the wire, with the members that are wanted."""
    return _told(_TWEET, status, wanted)


def includes(status: Json, people: People, wanted: Wanted) -> dict[str, list[Json]]:
    """What the expansions ask for, as far as the entry holds it: each thing once, no empty list."""
    asked, original = wanted.expansions, status.get("original")
    found = {
        "users": _once("id", (user(*one, wanted.user) for one in _users(status, people, asked))),
        "tweets": [tweet(original, wanted.tweet)] if original and "referenced_tweets.id" in asked else [],
        "places": [place(status["place"], wanted.place)] if status["place"] and "geo.place_id" in asked else [],
        "media": [media(*one, wanted.media) for one in _attached(status, asked)],
    }
    return {name: things for name, things in found.items() if things}


def user(uid: str, login: str, author: Person | None, wanted: frozenset[str]) -> Json:
    """A user as when the entry was written; of whom it tells no more, the login is the name."""
    known: Json = {"id": uid, "name": login, "username": login}
    if author is not None:
        known["name"] = author.name or login
        known |= _told(_USER, author, wanted)
    return known


def place(written: Json, wanted: frozenset[str]) -> Json:
    """The place of a status; ``name`` and ``full_name`` are both what its author wrote."""
    return _told(_PLACE, written, wanted)


def media(key: str, attached: Json, wanted: frozenset[str]) -> Json:
    """What a status shows: a picture by its ``url``, what moves or sounds by its one variant."""
    return _told(_MEDIA, {**attached, "key": key}, wanted)


def _told(members: Mapping[str, Callable[[Any], object]], thing: object, wanted: frozenset[str]) -> Json:
    made = {name: member(thing) for name, member in members.items() if name in wanted}
    return {name: value for name, value in made.items() if value not in (None, [], {})}


def _once(key: str, things: Iterable[Json]) -> list[Json]:
    seen: dict[str, Json] = {}
    for thing in things:
        seen.setdefault(thing[key], thing)
    return list(seen.values())


def _users(status: Json, people: People, asked: frozenset[str]) -> Iterable[tuple[str, str, Person | None]]:
    """Those who know most of themselves come first, since each is told once."""
    original, answered = status.get("original"), people.reply_to_login
    if "author_id" in asked:
        yield status["uid"], status["login"], people.author
    if original and "referenced_tweets.id.author_id" in asked:
        yield original["uid"], original["login"], people.original
    if answered is not None and "in_reply_to_user_id" in asked:
        yield status["in_reply_to_uid"], answered, people.author if answered == status["login"] else None
    if "entities.mentions.username" in asked:
        for mention in words(status).entities["mentions"]:
            if "id" in mention:
                yield mention["id"], mention["login"], None


def _attached(status: Json, asked: frozenset[str]) -> Iterable[tuple[str, Json]]:
    if "attachments.media_keys" in asked:
        yield from zip(_media_keys(status), status["media"], strict=True)
    original = status.get("original")
    if original and "referenced_tweets.id.attachments.media_keys" in asked:
        yield from zip(_media_keys(original), original["media"], strict=True)


def _media_keys(status: Json) -> list[str]:
    """The status' id and the place in it: a key is two numbers."""
    return [f"{_MEDIA_TYPES[one['type']][0]}_{status['id']}{n}" for n, one in enumerate(status["media"], 1)]


def _entities(status: Json) -> Json:
    found = words(status).entities
    made = {
        "mentions": [{**_span(one), "username": one["login"], **_id(one)} for one in found["mentions"]],
        "hashtags": [{**_span(one), "tag": one["text"]} for one in found["hashtags"]],
        "cashtags": [{**_span(one), "tag": one["text"]} for one in found["cashtags"]],
        "urls": [
            {**_span(one), **{name: one[name] for name in ("url", "expanded_url", "display_url")}}
            for one in found["urls"]
        ],
    }
    return {name: things for name, things in made.items() if things}


def _span(entity: Json) -> Json:
    start, end = entity["indices"]
    return {"start": start, "end": end}


def _id(mention: Json) -> Json:
    return {"id": mention["id"]} if "id" in mention else {}


def _geo(status: Json) -> Json:
    made: Json = {}
    if status["location"]:
        point = [status["location"]["lon"], status["location"]["lat"]]
        made["coordinates"] = {"type": "Point", "coordinates": point}
    if status["place"]:
        made["place_id"] = place_id(status["place"])
    return made


def _referenced(status: Json) -> list[Json]:
    made = []
    if status["origin"]:
        made.append({"type": "quoted" if status["message"] else "retweeted", "id": status["origin"]})
    if status["in_reply_to"]:
        made.append({"type": "replied_to", "id": status["in_reply_to"]})
    return made


def _edit_controls(status: Json) -> Json:
    """A status cannot be changed."""
    return {"edits_remaining": 0, "is_edit_eligible": False, "editable_until": status["posted"]}


def _public_metrics(status: Json) -> Json:
    """Quotes are counted with the reposts, which X has renamed; clients of either name expect all, so unknown is 0."""
    return {
        "retweet_count": status["reposts"],
        "repost_count": status["reposts"],
        "reply_count": status["comments"],
        "like_count": status["likes"],
        "quote_count": 0,
        "bookmark_count": 0,
        "impression_count": 0,
    }


def _counts(author: Person) -> Json:
    return {
        "followers_count": author.followers,
        "following_count": author.following,
        "tweet_count": author.posts,
        "post_count": author.posts,
        "listed_count": 0,
    }


def _feature(written: Json) -> Json | None:
    """GeoJSON lets a box cross the date line as ours do: west > east."""
    box = written.get("box")
    return None if box is None else {"type": "Feature", "bbox": list(box), "properties": {}}


_TWEET: dict[str, Callable[[Json], object]] = {
    "id": lambda s: s["id"],
    "text": lambda s: words(s).text,
    "edit_history_tweet_ids": lambda s: [s["id"]],
    "attachments": lambda s: {"media_keys": _media_keys(s)} if s["media"] else None,
    "author_id": lambda s: s["uid"],
    "conversation_id": lambda s: s["conversation"],
    "created_at": lambda s: s["posted"],
    "display_text_range": lambda s: [0, len(words(s).text)],
    "edit_controls": _edit_controls,
    "entities": _entities,
    "geo": _geo,
    "in_reply_to_user_id": lambda s: s["in_reply_to_uid"],
    "lang": lambda s: s["lang"],
    "public_metrics": _public_metrics,
    "referenced_tweets": _referenced,
    "reply_settings": lambda _: "everyone",
}
"""All that this server knows of a status, by X's names."""

_USER: dict[str, Callable[[Person], object]] = {
    "created_at": lambda a: a.signup or None,
    "description": lambda a: a.bio,
    "location": lambda a: a.place,
    "url": lambda a: a.url,
    "protected": lambda a: a.protected,
    "public_metrics": _counts,
}

_PLACE: dict[str, Callable[[Json], object]] = {
    "id": place_id,
    "full_name": lambda p: p["name"],
    "name": lambda p: p["name"],
    "country_code": lambda p: p.get("country"),
    "geo": _feature,
}

_MEDIA: dict[str, Callable[[Json], object]] = {
    "media_key": lambda m: m["key"],
    "type": lambda m: _MEDIA_TYPES[m["type"]][1],
    "url": lambda m: m["url"] if m["type"] == "image" else None,
    "variants": lambda m: None if m["type"] == "image" else [{"url": m["url"]}],
}
