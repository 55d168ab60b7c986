"""Renders a status in v1.1 format, and the message that a status was deleted.

All functions are pure: they use only what the log entry has. Texts stay as written: ``&`` is not escaped and no text
is truncated. Indices count code points. A repost's text begins with ``RT @login:``.
"""

import hashlib

from stream_server.events.entry_fields import AuthorSnapshot, EntryFacts
from stream_server.web.dialects.status_text import Json, StatusText, place_id, status_text
from stream_server.web.dialects.v1_user import format_timestamp, parse_iso_ms, render_user

SOURCE = "web"
"""The app that posted a status. This server does not record it."""

FILTER_LEVEL = "low"
"""``filter_level`` of every status, because this server does not rate statuses."""

MEDIA_TYPES = {"image": "photo", "video": "video", "gif": "animated_gif"}
"""v1.1's name of each media type. It has none for audio."""

MEDIA_SIZES = ("thumb", "small", "medium", "large")
"""Sizes that v1.1 clients expect. Their width and height are 0, because the server does not fetch media."""


def render_tweet(status: Json, facts: EntryFacts) -> Json:
    """Return the status of a ``post`` entry in v1.1 format; ``status`` is its JSON in the native API."""
    tweet = _render_status(status, facts.author, facts.reply_to_login)
    original = status.get("original")
    if original and not status["message"]:
        tweet["retweeted_status"] = _render_status(original, facts.original_author, None)
    elif status["origin"] is not None:
        tweet |= {
            "is_quote_status": True,
            "quoted_status_id": int(status["origin"]),
            "quoted_status_id_str": status["origin"],
        }
        if original:
            tweet["quoted_status"] = _render_status(original, facts.original_author, None)
    tweet["timestamp_ms"] = str(parse_iso_ms(status["posted"]))
    return tweet


def render_delete(status: Json, deleted_ms: int) -> Json:
    """Return v1.1's ``delete`` message, which has ids only; ``deleted_ms`` is the time in ms since 1970."""
    ids = {
        "id": int(status["id"]),
        "id_str": status["id"],
        "user_id": int(status["uid"]),
        "user_id_str": status["uid"],
    }
    return {"delete": {"status": ids, "timestamp_ms": str(deleted_ms)}}


def _render_status(status: Json, author: AuthorSnapshot | None, reply_to_login: str | None) -> Json:
    """Return one status without embedded ones; ``reply_to_login`` is the login of the user it answers, if known."""
    words = status_text(status)
    return {
        "created_at": format_timestamp(parse_iso_ms(status["posted"])),
        "id": int(status["id"]),
        "id_str": status["id"],
        "text": words.text,
        "source": SOURCE,
        "truncated": False,
        **_reply_members(status, reply_to_login),
        "user": render_user(status["uid"], status["login"], author),
        **_geo_members(status),
        "contributors": None,
        "is_quote_status": False,
        "retweet_count": status["reposts"],
        "favorite_count": status["likes"],
        **_render_entities(status, words),
        "favorited": False,
        "retweeted": False,
        "filter_level": FILTER_LEVEL,
        "lang": status["lang"],
    }


def _reply_members(status: Json, reply_to_login: str | None) -> Json:
    """Return the five reply members. A status that begins with a mention also counts as a reply to that user."""
    mentions = status["entities"]["mentions"]
    uid = status["in_reply_to_uid"]
    if uid is None and mentions and not status["message"][: mentions[0]["indices"][0]].strip():
        uid = mentions[0].get("id")
    if uid is not None and reply_to_login is None:
        reply_to_login = next((mention["login"] for mention in mentions if mention.get("id") == uid), None)
    return {
        "in_reply_to_status_id": _to_int(status["in_reply_to"]),
        "in_reply_to_status_id_str": status["in_reply_to"],
        "in_reply_to_user_id": _to_int(uid),
        "in_reply_to_user_id_str": uid,
        "in_reply_to_screen_name": reply_to_login,
    }


def _to_int(text: str | None) -> int | None:
    """Return an id as a number; None stays None."""
    return None if text is None else int(text)


def _geo_members(status: Json) -> Json:
    """Return where a status was posted.

    The older member ``geo`` is latitude, longitude. The newer member ``coordinates`` is longitude, latitude.
    """
    geo = coordinates = None
    if status["location"]:
        lon, lat = status["location"]["lon"], status["location"]["lat"]
        geo = {"type": "Point", "coordinates": [lat, lon]}
        coordinates = {"type": "Point", "coordinates": [lon, lat]}
    place = None if not status["place"] else _render_place(status["place"])
    return {"geo": geo, "coordinates": coordinates, "place": place}


def _render_place(place: Json) -> Json:
    """Return a place in v1.1 format. The corners of its box go anticlockwise from the south-west."""
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
    """Return the entities of a status.

    Mentions of unknown logins are left out. The indices of media point behind the text, because the text has no link
    to them.
    """
    found = status_words.entities
    text_length = len(status_words.text)
    media = [_render_media(medium, text_length) for medium in status["media"] if medium["type"] in MEDIA_TYPES]
    entities: Json = {
        "hashtags": [{"text": tag["text"], "indices": tag["indices"]} for tag in found["hashtags"]],
        "symbols": [{"text": tag["text"], "indices": tag["indices"]} for tag in found["cashtags"]],
        "urls": found["urls"],
        "user_mentions": [_render_mention(mention) for mention in found["mentions"] if mention.get("id") is not None],
    }
    members: Json = {"entities": entities}
    if media:
        entities["media"] = [{**medium, "type": "photo"} for medium in media]
        members["extended_entities"] = {"media": media}
    if media or found["urls"]:
        members["possibly_sensitive"] = False
    return members


def _render_mention(mention: Json) -> Json:
    """Return a mention in v1.1 format. The entry does not have the user's name, so the login replaces it."""
    uid, login = mention["id"], mention["login"]
    return {"screen_name": login, "name": login, "id": int(uid), "id_str": uid, "indices": mention["indices"]}


def _render_media(medium: Json, text_length: int) -> Json:
    """Return a media link in v1.1 format, placed behind a text of ``text_length`` code points."""
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
    """Return an id for a media link: a hash of the URL, of 53 bits, the most that JavaScript numbers hold exactly."""
    return int.from_bytes(hashlib.blake2b(url.encode(errors="surrogatepass"), digest_size=8).digest()) >> 11
