"""A status as v1.1 shows one, and the message that it is gone.

All here are pure functions of what an entry says: nothing is looked up. Texts are as they were written: ``&`` stays
``&``, nothing is cut off, and indices count code points of that. A repost's text begins with ``RT @login:``.
"""

import hashlib

from stream_server.events.entry_fields import AuthorSnapshot, EntryFacts
from stream_server.web.dialects.status_text import Json, StatusText, place_id, status_text
from stream_server.web.dialects.v1_user import format_timestamp, parse_iso_ms, render_user

SOURCE = "web"
"""What posted it; here that is not told."""

FILTER_LEVEL = "low"
"""``filter_level`` of every status: this server has no opinion on which are the better ones."""

MEDIA_TYPES = {"image": "photo", "video": "video", "gif": "animated_gif"}
"""Ours, and what v1.1 calls them; it has no word for a sound."""

MEDIA_SIZES = ("thumb", "small", "medium", "large")
"""Media are links that nobody here looks into, so that these are there and say 0."""


def render_tweet(status: Json, facts: EntryFacts) -> Json:
    """The status of a ``post`` as it stands on the wire."""
    told = _render_status(status, facts.author, facts.reply_to_login)
    original = status.get("original")
    if original and not status["message"]:
        told["retweeted_status"] = _render_status(original, facts.original_author, None)
    elif status["origin"] is not None:
        told |= {
            "is_quote_status": True,
            "quoted_status_id": int(status["origin"]),
            "quoted_status_id_str": status["origin"],
        }
        if original:
            told["quoted_status"] = _render_status(original, facts.original_author, None)
    told["timestamp_ms"] = str(parse_iso_ms(status["posted"]))
    return told


def render_delete(status: Json, deleted_ms: int) -> Json:
    """A ``delete``: ids only; ``deleted_ms`` is when, since 1970."""
    told = {
        "id": int(status["id"]),
        "id_str": status["id"],
        "user_id": int(status["uid"]),
        "user_id_str": status["uid"],
    }
    return {"delete": {"status": told, "timestamp_ms": str(deleted_ms)}}


def _render_status(status: Json, author: AuthorSnapshot | None, reply_to_login: str | None) -> Json:
    """One status, without what stands inside it; ``reply_to_login`` is the login of whom it answers, where that is known."""
    said = status_text(status)
    return {
        "created_at": format_timestamp(parse_iso_ms(status["posted"])),
        "id": int(status["id"]),
        "id_str": status["id"],
        "text": said.text,
        "source": SOURCE,
        "truncated": False,
        **_reply_members(status, reply_to_login),
        "user": render_user(status["uid"], status["login"], author),
        **_geo_members(status),
        "contributors": None,
        "is_quote_status": False,
        "retweet_count": status["reposts"],
        "favorite_count": status["likes"],
        **_render_entities(status, said),
        "favorited": False,
        "retweeted": False,
        "filter_level": FILTER_LEVEL,
        "lang": status["lang"],
    }


def _reply_members(status: Json, reply_to_login: str | None) -> Json:
    """Whom and what it answers, five members that are always there; a text that begins with a mention answers whom."""
    mentions = status["entities"]["mentions"]
    uid = status["in_reply_to_uid"]
    if uid is None and mentions and not status["message"][: mentions[0]["indices"][0]].strip():
        uid = mentions[0].get("id")
    if uid is not None and reply_to_login is None:
        reply_to_login = next((one["login"] for one in mentions if one.get("id") == uid), None)
    return {
        "in_reply_to_status_id": _to_int(status["in_reply_to"]),
        "in_reply_to_status_id_str": status["in_reply_to"],
        "in_reply_to_user_id": _to_int(uid),
        "in_reply_to_user_id_str": uid,
        "in_reply_to_screen_name": reply_to_login,
    }


def _to_int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _geo_members(status: Json) -> Json:
    """``geo`` is the older one, with the latitude first."""
    geo = coordinates = None
    if status["location"]:
        lon, lat = status["location"]["lon"], status["location"]["lat"]
        geo = {"type": "Point", "coordinates": [lat, lon]}
        coordinates = {"type": "Point", "coordinates": [lon, lat]}
    place = None if not status["place"] else _render_place(status["place"])
    return {"geo": geo, "coordinates": coordinates, "place": place}


def _render_place(place: Json) -> Json:
    """What the author wrote; the corners go round from the south-west."""
    country, box, region = place.get("country") or "", place.get("box"), None
    if box is not None:
        west, south, east, north = box
        region = {"type": "Polygon", "coordinates": [[[west, south], [east, south], [east, north], [west, north]]]}
    return {
        "id": place_id(place),
        "url": "",
        "place_type": "poi",
        "name": place["name"],
        "full_name": place["name"],
        "country_code": country.upper(),
        "country": country.upper(),
        "contained_within": [],
        "bounding_box": region,
        "attributes": {},
    }


def _render_entities(status: Json, status_words: StatusText) -> Json:
    """Mentions of nobody are no mentions there. Media stand behind the text, since they are no links in it."""
    found = status_words.entities
    media = [_render_media(one, len(status_words.text)) for one in status["media"] if one["type"] in MEDIA_TYPES]
    entities: Json = {
        "hashtags": [{"text": one["text"], "indices": one["indices"]} for one in found["hashtags"]],
        "symbols": [{"text": one["text"], "indices": one["indices"]} for one in found["cashtags"]],
        "urls": found["urls"],
        "user_mentions": [_render_mention(one) for one in found["mentions"] if one.get("id") is not None],
    }
    made: Json = {"entities": entities}
    if media:
        entities["media"] = [{**one, "type": "photo"} for one in media]
        made["extended_entities"] = {"media": media}
    if media or found["urls"]:
        made["possibly_sensitive"] = False
    return made


def _render_mention(mention: Json) -> Json:
    """The name is not in the status: the login stands for it."""
    uid, login = mention["id"], mention["login"]
    return {"screen_name": login, "name": login, "id": int(uid), "id_str": uid, "indices": mention["indices"]}


def _render_media(medium: Json, text_length: int) -> Json:
    url = medium["url"]
    number = _media_id(url)
    return {
        "id": number,
        "id_str": str(number),
        "indices": [text_length, text_length],
        "media_url": url,
        "media_url_https": url,
        "url": url,
        "display_url": url.partition("://")[2],
        "expanded_url": url,
        "type": MEDIA_TYPES[medium["type"]],
        "sizes": {size: {"w": 0, "h": 0, "resize": "fit"} for size in MEDIA_SIZES},
    }


def _media_id(url: str) -> int:
    """A link has no number: one is made of it, the same wherever it stands, of the 53 bits that clients can hold."""
    return int.from_bytes(hashlib.blake2b(url.encode(errors="surrogatepass"), digest_size=8).digest()) >> 11
