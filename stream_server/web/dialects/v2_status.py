"""A status as a Tweet of v2, and what is told beside it.

All here are pure functions of what an entry says: nothing is looked up. Nulls and what is empty are left
out, as X does. Indices count code points, and texts are as they were written: ``&`` stays ``&``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from stream_server.events.entry_fields import AuthorSnapshot
from stream_server.web.dialects.status_text import Json, place_id, status_text
from stream_server.web.dialects.v2_fields import FieldSelection

_MEDIA_TYPES = {
    "image": ("3", "photo"),
    "gif": ("16", "animated_gif"),
    "video": ("7", "video"),
    "audio": ("7", "audio"),
}
"""Ours, then the first number of X's key for it, and its name there, which has none for audio."""


class KnownUsers(NamedTuple):
    """What the entry knows of those in it: the author, the author of the original, and the login of the answered."""

    author: AuthorSnapshot | None = None
    original: AuthorSnapshot | None = None
    reply_to_login: str | None = None


def render_tweet(status: Json, fields: frozenset[str]) -> Json:
    """The Tweet of a status as it stands on the wire, with the members that are wanted."""
    return _select_members(_TWEET_MEMBERS, status, fields)


def render_includes(status: Json, known_users: KnownUsers, fields: FieldSelection) -> dict[str, list[Json]]:
    """What the expansions ask for, as far as the entry holds it: each thing once, no empty list."""
    asked, original = fields.expansions, status.get("original")
    found = {
        "users": _unique_by(
            "id", (render_user(*one, fields.user) for one in _included_users(status, known_users, asked))
        ),
        "tweets": [render_tweet(original, fields.tweet)] if original and "referenced_tweets.id" in asked else [],
        "places": [render_place(status["place"], fields.place)] if status["place"] and "geo.place_id" in asked else [],
        "media": [render_media(*one, fields.media) for one in _included_media(status, asked)],
    }
    return {name: things for name, things in found.items() if things}


def render_user(uid: str, login: str, author: AuthorSnapshot | None, fields: frozenset[str]) -> Json:
    """A user as when the entry was written; of whom it tells no more, the login is the name."""
    known: Json = {"id": uid, "name": login, "username": login}
    if author is not None:
        known["name"] = author.name or login
        known |= _select_members(_USER_MEMBERS, author, fields)
    return known


def render_place(place_members: Json, fields: frozenset[str]) -> Json:
    """The place of a status; ``name`` and ``full_name`` are both what its author wrote."""
    return _select_members(_PLACE_MEMBERS, place_members, fields)


def render_media(key: str, attached: Json, fields: frozenset[str]) -> Json:
    """What a status shows: a picture by its ``url``, what moves or sounds by its one variant."""
    return _select_members(_MEDIA_MEMBERS, {**attached, "key": key}, fields)


def _select_members(members: Mapping[str, Callable[[Any], object]], source: object, fields: frozenset[str]) -> Json:
    made = {name: member(source) for name, member in members.items() if name in fields}
    return {name: value for name, value in made.items() if value not in (None, [], {})}


def _unique_by(key: str, things: Iterable[Json]) -> list[Json]:
    seen: dict[str, Json] = {}
    for thing in things:
        seen.setdefault(thing[key], thing)
    return list(seen.values())


def _included_users(
    status: Json, known_users: KnownUsers, expansions: frozenset[str]
) -> Iterable[tuple[str, str, AuthorSnapshot | None]]:
    """Those who know most of themselves come first, since each is told once."""
    original, answered = status.get("original"), known_users.reply_to_login
    if "author_id" in expansions:
        yield status["uid"], status["login"], known_users.author
    if original and "referenced_tweets.id.author_id" in expansions:
        yield original["uid"], original["login"], known_users.original
    if answered is not None and "in_reply_to_user_id" in expansions:
        yield status["in_reply_to_uid"], answered, known_users.author if answered == status["login"] else None
    if "entities.mentions.username" in expansions:
        for mention in status_text(status).entities["mentions"]:
            if "id" in mention:
                yield mention["id"], mention["login"], None


def _included_media(status: Json, expansions: frozenset[str]) -> Iterable[tuple[str, Json]]:
    if "attachments.media_keys" in expansions:
        yield from zip(_media_keys(status), status["media"], strict=True)
    original = status.get("original")
    if original and "referenced_tweets.id.attachments.media_keys" in expansions:
        yield from zip(_media_keys(original), original["media"], strict=True)


def _media_keys(status: Json) -> list[str]:
    """The status' id and the place in it: a key is two numbers."""
    return [f"{_MEDIA_TYPES[one['type']][0]}_{status['id']}{n}" for n, one in enumerate(status["media"], 1)]


def _render_entities(status: Json) -> Json:
    found = status_text(status).entities
    made = {
        "mentions": [{**_render_span(one), "username": one["login"], **_mention_id(one)} for one in found["mentions"]],
        "hashtags": [{**_render_span(one), "tag": one["text"]} for one in found["hashtags"]],
        "cashtags": [{**_render_span(one), "tag": one["text"]} for one in found["cashtags"]],
        "urls": [
            {**_render_span(one), **{name: one[name] for name in ("url", "expanded_url", "display_url")}}
            for one in found["urls"]
        ],
    }
    return {name: things for name, things in made.items() if things}


def _render_span(entity: Json) -> Json:
    start, end = entity["indices"]
    return {"start": start, "end": end}


def _mention_id(mention: Json) -> Json:
    return {"id": mention["id"]} if "id" in mention else {}


def _render_geo(status: Json) -> Json:
    made: Json = {}
    if status["location"]:
        point = [status["location"]["lon"], status["location"]["lat"]]
        made["coordinates"] = {"type": "Point", "coordinates": point}
    if status["place"]:
        made["place_id"] = place_id(status["place"])
    return made


def _referenced_tweets(status: Json) -> list[Json]:
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


def _user_metrics(author: AuthorSnapshot) -> Json:
    return {
        "followers_count": author.followers,
        "following_count": author.following,
        "tweet_count": author.posts,
        "post_count": author.posts,
        "listed_count": 0,
    }


def _render_box(place_members: Json) -> Json | None:
    """GeoJSON lets a box cross the date line as ours do: west > east."""
    box = place_members.get("box")
    return None if box is None else {"type": "Feature", "bbox": list(box), "properties": {}}


_TWEET_MEMBERS: dict[str, Callable[[Json], object]] = {
    "id": lambda s: s["id"],
    "text": lambda s: status_text(s).text,
    "edit_history_tweet_ids": lambda s: [s["id"]],
    "attachments": lambda s: {"media_keys": _media_keys(s)} if s["media"] else None,
    "author_id": lambda s: s["uid"],
    "conversation_id": lambda s: s["conversation"],
    "created_at": lambda s: s["posted"],
    "display_text_range": lambda s: [0, len(status_text(s).text)],
    "edit_controls": _edit_controls,
    "entities": _render_entities,
    "geo": _render_geo,
    "in_reply_to_user_id": lambda s: s["in_reply_to_uid"],
    "lang": lambda s: s["lang"],
    "public_metrics": _public_metrics,
    "referenced_tweets": _referenced_tweets,
    "reply_settings": lambda _: "everyone",
}
"""All that this server knows of a status, by X's names."""

_USER_MEMBERS: dict[str, Callable[[AuthorSnapshot], object]] = {
    "created_at": lambda a: a.signup or None,
    "description": lambda a: a.bio,
    "location": lambda a: a.place,
    "url": lambda a: a.url,
    "protected": lambda a: a.protected,
    "public_metrics": _user_metrics,
}

_PLACE_MEMBERS: dict[str, Callable[[Json], object]] = {
    "id": place_id,
    "full_name": lambda p: p["name"],
    "name": lambda p: p["name"],
    "country_code": lambda p: p.get("country"),
    "geo": _render_box,
}

_MEDIA_MEMBERS: dict[str, Callable[[Json], object]] = {
    "media_key": lambda m: m["key"],
    "type": lambda m: _MEDIA_TYPES[m["type"]][1],
    "url": lambda m: m["url"] if m["type"] == "image" else None,
    "variants": lambda m: None if m["type"] == "image" else [{"url": m["url"]}],
}
