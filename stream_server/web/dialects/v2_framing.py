"""Renders Tweets and encodes messages in Twitter's v2 format: JSON and a line end. A heartbeat is a line end alone.

As at Twitter, the streams send Tweets but not the deletion of Tweets, which other APIs of Twitter report. An edited
status comes again as a Tweet. It keeps its id, so its edit history is this id. Null and empty members are left out.
Indices count code points. Texts stay as written, without escapes.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from stream_server.events.content import AuthorSnapshot
from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json
from stream_server.hub.client import FILTER_DISABLED, FILTER_TOO_COSTLY
from stream_server.hub.messages import ControlMessage, Framing
from stream_server.web.dialects.status_text import (
    Json,
    answered_user,
    encode_or_log,
    media_id,
    place_id,
    shown_media,
    status_text,
)
from stream_server.web.dialects.v1_framing import LINE_END
from stream_server.web.dialects.v2_parameters import PROBLEM_TYPE_PREFIX, FieldSelection
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

_MEDIA_TYPES = {
    "image": ("3", "photo"),
    "gif": ("16", "animated_gif"),
    "video": ("7", "video"),
    "audio": ("7", "audio"),
}
"""For each media type the first number of X's media key, and X's type. X has none for audio, so it becomes video."""


class KnownUsers(NamedTuple):
    """Profiles of a status's author and its original's author, and the login of the user whom it replies to."""

    author: AuthorSnapshot | None = None
    original: AuthorSnapshot | None = None
    reply_to_login: str | None = None


def render_tweet(status: Json, fields: frozenset[str]) -> Json:
    """Return a status as a Tweet with the members in ``fields``. ``status`` is its JSON in the native API."""
    return _select_members(_TWEET_MEMBERS, status, fields)


def render_includes(status: Json, known_users: KnownUsers, fields: FieldSelection) -> dict[str, list[Json]]:
    """Return the users, Tweets, places and media that the client's expansions request, as far as they are known."""
    expansions, original, place = fields.expansions, status.get("original"), status["place"]
    media = _media_by_key(status) if "attachments.media_keys" in expansions else {}
    if original and "referenced_tweets.id.attachments.media_keys" in expansions:
        media |= _media_by_key(original)
    users: dict[str, Json] = {}
    for user in _included_users(status, known_users, expansions):
        users.setdefault(user[0], render_user(*user, fields.user))
    includes = {
        "users": list(users.values()),
        "tweets": [render_tweet(original, fields.tweet)] if original and "referenced_tweets.id" in expansions else [],
        "places": [render_place(place, fields.place)] if place and "geo.place_id" in expansions else [],
        "media": [render_media(key, attached, fields.media) for key, attached in media.items()],
    }
    return {name: objects for name, objects in includes.items() if objects}


def render_user(uid: str, login: str, author: AuthorSnapshot | None, fields: frozenset[str]) -> Json:
    """Return a user, with the profile at the time of posting. Without a profile, ``name`` is the login."""
    known: Json = {"id": uid, "name": login, "username": login}
    if author is not None:
        known["name"] = author.name or login
        known |= _select_members(_USER_MEMBERS, author, fields)
    return known


def render_place(place_members: Json, fields: frozenset[str]) -> Json:
    """Return a place with the members in ``fields``. A place has one name, so ``name`` and ``full_name`` are equal."""
    return _select_members(_PLACE_MEMBERS, place_members, fields)


def render_media(key: str, attached: Json, fields: frozenset[str]) -> Json:
    """Return a media attachment. An image has a ``url``; a video, GIF or sound has one variant with the URL."""
    return _select_members(_MEDIA_MEMBERS, {**attached, "key": key}, fields)


def _select_members(members: Mapping[str, Callable[[Any], object]], source: object, fields: frozenset[str]) -> Json:
    """Return the members in ``fields``, without empty ones. ``members`` has a function of ``source`` for each."""
    values = {name: member(source) for name, member in members.items() if name in fields}
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _included_users(
    status: Json, known_users: KnownUsers, expansions: frozenset[str]
) -> Iterable[tuple[str, str, AuthorSnapshot | None]]:
    """Yield id, login and profile of each user to include. If a user comes twice, the one with profile is first."""
    original, answered = status.get("original"), answered_user(status, known_users.reply_to_login)
    if "author_id" in expansions:
        yield status["uid"], status["login"], known_users.author
    if original and "referenced_tweets.id.author_id" in expansions:
        yield original["uid"], original["login"], known_users.original
    if answered is not None and answered.login is not None and "in_reply_to_user_id" in expansions:
        yield answered.uid, answered.login, known_users.author if answered.uid == status["uid"] else None
    if "entities.mentions.username" in expansions:
        for mention in status_text(status).entities["mentions"]:
            if "id" in mention:
                yield mention["id"], mention["login"], None


def _media_by_key(status: Json) -> Json:
    """Return the attachments of a status, those of its original for a repost, by media key.

    A media key, such as ``3_7450050662383796``, has the type, ``_``, and the media id of v1.1. So it is the same
    wherever the same link occurs.
    """
    return {f"{_MEDIA_TYPES[media['type']][0]}_{media_id(media['url'])}": media for media in shown_media(status)}


def _render_entities(status: Json) -> Json:
    """Return the entities (mentions, hashtags, cashtags, links) of a status in v2 format, without empty lists."""
    found = status_text(status).entities
    entities = {
        "mentions": [
            _render_span(user, username=user["login"], **({"id": user["id"]} if "id" in user else {}))
            for user in found["mentions"]
        ],
        "hashtags": [_render_span(tag, tag=tag["text"]) for tag in found["hashtags"]],
        "cashtags": [_render_span(tag, tag=tag["text"]) for tag in found["cashtags"]],
        "urls": [
            _render_span(url, **{name: url[name] for name in ("url", "expanded_url", "display_url")})
            for url in found["urls"]
        ],
    }
    return {name: items for name, items in entities.items() if items}


def _render_span(entity: Json, **members: str) -> Json:
    """Return one entity in v2 format: its start and end in code points, and its other members from ``members``."""
    start, end = entity["indices"]
    return {"start": start, "end": end, **members}


def _render_geo(status: Json) -> Json:
    """Return the status's point and place id. A member is absent if the status does not have it."""
    geo: Json = {}
    if status["location"]:
        point = [status["location"]["lon"], status["location"]["lat"]]
        geo["coordinates"] = {"type": "Point", "coordinates": point}
    if status["place"]:
        geo["place_id"] = place_id(status["place"])
    return geo


def _referenced_tweets(status: Json) -> list[Json]:
    """Return type and id of each status that this status reposts, quotes or replies to."""
    references = []
    if status["origin"]:
        references.append({"type": "quoted" if status["message"] else "retweeted", "id": status["origin"]})
    if status["in_reply_to"]:
        references.append({"type": "replied_to", "id": status["in_reply_to"]})
    return references


def _public_metrics(status: Json) -> Json:
    """Return a status's counts. Its reposts have two members, as v2 renamed them. Counts that we do not keep are 0."""
    reposts = {"retweet_count": status["reposts"], "repost_count": status["reposts"]}
    known = {**reposts, "reply_count": status["comments"], "like_count": status["likes"]}
    return {**known, "quote_count": 0, "bookmark_count": 0, "impression_count": 0}


def _user_metrics(author: AuthorSnapshot) -> Json:
    """Return a user's counts. Counts that the server does not keep are 0."""
    follows = {"followers_count": author.followers, "following_count": author.following}
    return {**follows, "tweet_count": author.posts, "post_count": author.posts, "listed_count": 0}


def _render_box(place_members: Json) -> Json | None:
    """Return the box of a place as GeoJSON. In a box across longitude 180 the west is greater than the east."""
    box = place_members.get("box")
    return None if box is None else {"type": "Feature", "bbox": list(box), "properties": {}}


_TWEET_MEMBERS: dict[str, Callable[[Json], object]] = {
    "id": lambda s: s["id"],
    "text": lambda s: status_text(s).text,
    "edit_history_tweet_ids": lambda s: [s["id"]],
    "attachments": lambda s: {"media_keys": list(_media_by_key(s))} if shown_media(s) else None,
    "author_id": lambda s: s["uid"],
    "conversation_id": lambda s: s["conversation"],
    "created_at": lambda s: s["posted"],
    "display_text_range": lambda s: [0, len(status_text(s).text)],
    "edit_controls": lambda s: {"edits_remaining": 0, "is_edit_eligible": False, "editable_until": s["posted"]},
    "entities": _render_entities,
    "geo": _render_geo,
    "in_reply_to_user_id": lambda s: (answered_user(s, None) or (None,))[0],
    "lang": lambda s: s["lang"],
    "public_metrics": _public_metrics,
    "referenced_tweets": _referenced_tweets,
    "reply_settings": lambda _: "everyone",
}
"""Twitter's name of each Tweet member that this server knows, and the function that computes it."""

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


DISABLED_BECAUSE = {FILTER_DISABLED: "failed", FILTER_TOO_COSTLY: "takes too long"}
"""The codes of warnings that a filter or rule was disabled, and the reasons as clients read them."""

DISCONNECT_TYPES = {
    "shutdown": "OperationalDisconnect",
    "too_slow": "SlowReader",
    "token_expired": "ForceDisconnect",
    "token_revoked": "ForceDisconnect",
    "suspended": "ForceDisconnect",
    "account_deleted": "ForceDisconnect",
    "resync": "UpstreamOperationalDisconnect",
}


@lru_cache(256)  # clients beyond these get a framing of their own
def select_v2_framing(fields: FieldSelection, *, chunked: bool) -> Framing:
    """Return the framing that encodes Tweets with the members in ``fields``. Equal arguments share one framing."""
    return Framing("v2", TweetEncoder(fields), encode_control, wrap_chunk if chunked else wrap_raw)


@dataclass(frozen=True, slots=True)
class TweetEncoder:
    """Encodes a post or an edit: the Tweet in ``data``, what was expanded in ``includes``, and the matching rules."""

    fields: FieldSelection

    def __call__(self, entry: Entry, matched: bytes | None) -> bytes:
        """Encode a post, or the status of an edit, as one line of JSON, and other entries as b"".

        ``matched`` is the JSON list of matching rules.
        """
        if entry.kind not in {"post", "edit"} or entry.is_removal:
            return b""
        if matched is None:
            body = encode_or_log(entry, "v2", self._render)  # as all clients get it; empty for a faulty post
            return body and body + LINE_END
        shared = entry.frame(self)
        return shared and shared[: -len(b"}" + LINE_END)] + b',"matching_rules":' + matched + b"}" + LINE_END

    def _render(self, wire: Json, entry: Entry) -> Json:
        status, facts = wire["status"], entry.facts
        known_users = KnownUsers(facts.author, facts.original_author, facts.reply_to_login)
        data = {"data": render_tweet(status, self.fields.tweet)}
        includes = render_includes(status, known_users, self.fields) if self.fields.expansions else {}
        return {**data, "includes": includes} if includes else data


def encode_control(message: ControlMessage) -> bytes:
    """Return a control message in v2: a line end for `hello` and `heartbeat`, an error for a problem, else b""."""
    if message.kind in {"hello", "heartbeat"}:
        return LINE_END
    if message.kind not in {"goodbye", "gap", "warning"}:
        return b""
    told: Json = msgspec.json.decode(message.data)
    error: Json | None = None
    if message.kind == "goodbye" and told["code"] in DISCONNECT_TYPES:  # else the stream reached its requested end
        title, kind = "operational-disconnect", DISCONNECT_TYPES[told["code"]]
        problem = PROBLEM_TYPE_PREFIX + title
        error = {"title": title, "disconnect_type": kind, "detail": told["reason"], "type": problem}
    elif message.kind == "gap":  # Twitter has no such message, but clients show any error
        lost = "An unknown number of events" if told["count"] is None else f"{told['count']} events"
        detail = f"{lost} could not be delivered ({told['reason']})."
        error = {"title": "Gap", "detail": detail, "type": "about:blank"}
    elif message.kind == "warning" and told["code"] in DISABLED_BECAUSE:
        subject = f"The rule {told['rule']}" if told.get("rule") else f"The filter {told['filter']}"
        detail = f"{subject} {DISABLED_BECAUSE[told['code']]} and matches nothing on this stream."
        error = {"title": "Warning", "detail": detail, "type": "about:blank"}
    return b"" if error is None else encode_json({"errors": [error]}) + LINE_END
