r"""Renders statuses and encodes messages in Twitter's v1.1 format: JSON and ``\r\n``. A heartbeat is ``\r\n``.

Encoded JSON contains no carriage return, so clients can split messages at ``\r\n``. With ``delimited=length`` a line
before each message has the number of its bytes, including its ``\r\n``. Texts stay as written: ``&`` is not escaped and
no text is truncated. Indices count code points. Members of users that this server does not know have Twitter's
defaults: no picture, no time zone, the initial colours, and 0 for counts.
"""

from functools import cache, lru_cache
from time import asctime, gmtime
from typing import NamedTuple

import msgspec

from filters.entities import Url, extract_entities
from filters.event import MAX_CACHED_BIOS
from stream_server.events.content import AuthorSnapshot, EntryFacts
from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json
from stream_server.events.position import created_ms, parse_iso_ms
from stream_server.hub.messages import ControlMessage, Framing
from stream_server.web.dialects.status_text import (
    Json,
    StatusText,
    answered_user,
    encode_or_log,
    media_id,
    place_id,
    reposted_status,
    shown_media,
    status_text,
)
from stream_server.web.streaming.framing import wrap_chunk, wrap_raw

MEDIA_TYPES = {"image": "photo", "video": "video", "gif": "animated_gif"}
DEFAULT_USER_MEMBERS: Json = {
    "listed_count": 0, "favourites_count": 0,
    "utc_offset": None, "time_zone": None, "geo_enabled": True, "verified": False,
    "contributors_enabled": False, "is_translator": False, "is_translation_enabled": False,
    "profile_background_color": "C0DEED", "profile_background_image_url": "",
    "profile_background_image_url_https": "", "profile_background_tile": False,
    "profile_image_url": "", "profile_image_url_https": "", "profile_link_color": "1DA1F2",
    "profile_sidebar_border_color": "C0DEED", "profile_sidebar_fill_color": "DDEEF6",
    "profile_text_color": "333333", "profile_use_background_image": True,
    "default_profile": True, "default_profile_image": True,
    "following": None, "follow_request_sent": None, "notifications": None,
}  # fmt: skip
"""Members that are equal for all users. Twitter's last three depend on the viewer; here all clients share the bytes."""


def render_tweet(status: Json, facts: EntryFacts) -> Json:
    """Return a posted status in v1.1 format. ``facts`` has what its native JSON lacks, such as its author's profile."""
    tweet = _render_status(status, facts.author, facts.reply_to_login)
    original = status.get("original")
    if original:
        member = "quoted_status" if status["message"] else "retweeted_status"
        tweet[member] = _render_status(original, facts.original_author, None)
    tweet["timestamp_ms"] = str(parse_iso_ms(status["posted"]))
    return tweet


def render_delete(status: Json, deleted_ms: int) -> Json:
    """Return v1.1's ``delete`` message, which has ids only. ``deleted_ms`` is the time of deletion (ms since 1970)."""
    ids = {**_id_members("id", status["id"]), **_id_members("user_id", status["uid"])}
    return {"delete": {"status": ids, "timestamp_ms": str(deleted_ms)}}


def _render_status(status: Json, author: AuthorSnapshot | None, reply_to_login: str | None) -> Json:
    """Return a status in v1.1 format without its original. ``reply_to_login``: login of the user whom it answers."""
    words, answered = status_text(status), answered_user(status, reply_to_login)
    shown = reposted_status(status) or status
    is_quote = shown["origin"] is not None and bool(shown["message"])
    return {
        "created_at": format_timestamp(parse_iso_ms(status["posted"])),
        **_id_members("id", status["id"]),
        "text": words.text,
        "source": "web",  # the app that posted a status, which this server does not record
        "truncated": False,
        **_id_members("in_reply_to_status_id", status["in_reply_to"]),
        **_id_members("in_reply_to_user_id", None if answered is None else answered.uid),
        "in_reply_to_screen_name": None if answered is None else answered.login,
        "user": render_user(status["uid"], status["login"], author),
        **_geo_members(status),
        "contributors": None,
        "is_quote_status": is_quote,
        **(_id_members("quoted_status_id", shown["origin"]) if is_quote else {}),
        "quote_count": 0,
        "reply_count": status["comments"],
        "retweet_count": status["reposts"],
        "favorite_count": status["likes"],
        **_render_entities(status, words),
        "favorited": False,
        "retweeted": False,
        "filter_level": "low",  # this server does not rate statuses
        "lang": status["lang"],
    }


def _id_members(name: str, text: str | None) -> Json:
    """Return the two members by which v1.1 writes an id: ``{name}`` with a number, ``{name}_str`` with the text."""
    return {name: None if text is None else int(text), f"{name}_str": text}


def _geo_members(status: Json) -> Json:
    """Return where a status was posted: ``geo`` has latitude, longitude; ``coordinates`` has longitude, latitude."""
    geo = coordinates = None
    if status["location"]:
        lon, lat = status["location"]["lon"], status["location"]["lat"]
        geo = {"type": "Point", "coordinates": [lat, lon]}
        coordinates = {"type": "Point", "coordinates": [lon, lat]}
    place = None if not status["place"] else _render_place(status["place"])
    return {"geo": geo, "coordinates": coordinates, "place": place}


def _render_place(place: Json) -> Json:
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
    """Return the entities and media of a status. Mentions of logins that no user has are left out."""
    found, text_length = status_words.entities, len(status_words.text)
    original = reposted_status(status)
    source: Json = {}  # whose media a repost shows
    if original is not None:
        source = _id_members("source_status_id", original["id"]) | _id_members("source_user_id", original["uid"])
    shown = [medium for medium in shown_media(status) if medium["type"] in MEDIA_TYPES]
    media = [_render_media(medium, text_length) | source for medium in shown]
    entities: Json = {
        "hashtags": [{"text": tag["text"], "indices": tag["indices"]} for tag in found["hashtags"]],
        "symbols": [{"text": tag["text"], "indices": tag["indices"]} for tag in found["cashtags"]],
        "urls": found["urls"],
        "user_mentions": [  # log entries have no names of mentioned users
            {
                "screen_name": mention["login"],
                "name": mention["login"],
                **_id_members("id", mention["id"]),
                "indices": mention["indices"],
            }
            for mention in found["mentions"]
            if mention.get("id") is not None
        ],
    }
    members: Json = {"entities": entities}
    if media:
        entities["media"] = [{**medium, "type": "photo"} for medium in media]
        members["extended_entities"] = {"media": media}
    if media or found["urls"]:
        members["possibly_sensitive"] = False
    return members


def _render_media(medium: Json, text_length: int) -> Json:
    """Return a media link in v1.1 format. It is not in the text, so both indices point to the end of the text."""
    url = medium["url"]
    return {
        **_id_members("id", str(media_id(url))),
        "indices": [text_length, text_length],
        **dict.fromkeys(("media_url", "media_url_https", "url", "expanded_url"), url),
        "display_url": url.partition("://")[2],
        "type": MEDIA_TYPES[medium["type"]],
        # The width and height are 0, because the server does not fetch media.
        "sizes": {size: {"w": 0, "h": 0, "resize": "fit"} for size in ("thumb", "small", "medium", "large")},
    }


def render_user(uid: str, login: str, person: AuthorSnapshot | None) -> Json:
    """Return a user in v1.1 format. ``person`` is the profile that the user had at the time of the rendered status."""
    known = AuthorSnapshot(uid, login, login) if person is None else person
    return {
        **_id_members("id", uid),
        "name": known.name,
        "screen_name": login,
        "location": known.place or "",
        "description": known.bio or "",
        "url": known.url,
        "entities": _user_entities(known),
        "protected": known.protected,
        "followers_count": known.followers,
        "friends_count": known.following,
        "statuses_count": known.posts,
        "lang": known.lang,
        "created_at": format_timestamp(parse_iso_ms(known.signup) if known.signup else created_ms(int(uid))),
        **DEFAULT_USER_MEMBERS,
    }


def format_timestamp(ms: int) -> str:
    """Return a time in ms since 1970 as ``Wed Aug 27 13:08:45 +0000 2008``, in English for every locale."""
    weekday, month, day, clock, year = asctime(gmtime(ms // 1000)).split()
    return f"{weekday} {month} {day:0>2} {clock} +0000 {year}"


def _render_link(link: Url) -> Json:
    members = {"url": link.url, "expanded_url": link.expanded_url, "display_url": link.display_url}
    return {**members, "indices": list(link.indices)}


def _user_entities(person: AuthorSnapshot) -> Json:
    entities: Json = {"description": {"urls": [_render_link(link) for link in _bio_links(person.bio or "")]}}
    if person.url is not None:
        shown = person.url.partition("://")[2].removeprefix("www.").rstrip("/")
        own = Url(person.url, shown, person.url, (0, len(person.url)))
        entities["url"] = {"urls": [_render_link(own)]}
    return entities


@lru_cache(MAX_CACHED_BIOS)
def _bio_links(bio: str) -> tuple[Url, ...]:
    return extract_entities(bio).urls


LINE_END = b"\r\n"

DISCONNECT_CODES = {
    "shutdown": 1,
    "taken_over": 2,  # duplicate stream; streams of v1.1 read no subscription
    "rebalanced": 2,
    "too_slow": 4,  # stall
    "closed_by_user": 5,  # normal
    **dict.fromkeys(("token_expired", "token_revoked", "suspended", "account_deleted"), 6),  # token revoked
    **dict.fromkeys(("too_many_streams", "closed_by_operator"), 7),  # admin logout
    "backfill_done": 9,  # the end of a stream with a negative count
    "resync": 12,  # shed load
}
"""Twitter v1.1's disconnect code for each goodbye code, with Twitter's name for it. Others become 10 (exception)."""


class V1FramingOptions(NamedTuple):
    """The message format that a client requests. ``delimited`` puts a line with the length before each message."""

    stream: str
    delimited: bool = False
    stall_warnings: bool = False
    chunked: bool = True


@cache
def select_v1_framing(options: V1FramingOptions) -> Framing:
    """Return the framing (how to encode messages) for these options. Clients with equal options share the object."""
    encode = encode_delimited if options.delimited else encode_plain
    return Framing("v1.1", encode, V1ControlEncoder(options), wrap_chunk if options.chunked else wrap_raw)


def encode_plain(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - v1.1 does not send what matched
    """Encode a log entry as lines of v1.1 JSON, or as b"" if Twitter's v1.1 has no message for it."""
    return b"".join(body + LINE_END for body in _encode_bodies(entry))


def encode_delimited(entry: Entry, matched: bytes | None) -> bytes:  # noqa: ARG001 - see encode_plain
    """Encode a log entry like :func:`encode_plain`, each line after one with the length of the message in bytes."""
    return b"".join(map(_with_length, _encode_bodies(entry)))


def _with_length(body: bytes) -> bytes:
    return b"%d\r\n%b\r\n" % (len(body) + len(LINE_END), body)


def _encode_bodies(entry: Entry) -> list[bytes]:
    """Return the messages of a log entry as v1.1 JSON: none for kinds that v1.1 has not, and if a member is missing.

    Twitter's v1.1 had no edits. So an edited status is deleted, and comes again if it still matches. A client that
    obeys deletes then keeps no text that its author replaced, whatever it does with an id that it knows.
    """
    renderings = {"post": [_render_status_entry], "delete": [_render_removal]}
    renderings["edit"] = [_render_removal] if entry.is_removal else [_render_removal, _render_status_entry]
    return [body for render in renderings.get(entry.kind, ()) if (body := encode_or_log(entry, "v1.1", render))]


def _render_status_entry(wire: Json, entry: Entry) -> Json:
    return render_tweet(wire["status"], entry.facts)


def _render_removal(wire: Json, entry: Entry) -> Json:
    return render_delete(wire["left"] if "left" in wire else wire["status"], entry.position.ms)


class V1ControlEncoder:
    """Encodes control messages, such as heartbeats and gaps, in Twitter's v1.1 format."""

    def __init__(self, options: V1FramingOptions) -> None:
        self._options = options

    def __call__(self, control: ControlMessage) -> bytes:
        """Encode a control message: `hello` and `heartbeat` as an empty line, problems as JSON, all others as b""."""
        if control.kind in {"hello", "heartbeat"}:
            return LINE_END
        body = self._render(control.kind, msgspec.json.decode(control.data))
        if body is None:
            return b""
        encoded = encode_json(body)
        return _with_length(encoded) if self._options.delimited else encoded + LINE_END

    def _render(self, kind: str, message: Json) -> Json | None:
        if kind == "goodbye":
            code = DISCONNECT_CODES.get(message["code"], 10)
            return {"disconnect": {"code": code, "stream_name": self._options.stream, "reason": message["reason"]}}
        if kind == "gap":  # Twitter sends a running total; here clients share the bytes, so it is this gap's
            return {"limit": {"track": message["count"] or 0, "timestamp_ms": str(parse_iso_ms(message["at"]))}}
        if kind == "warning" and self._options.stall_warnings:
            name = str(message["code"]).upper()
            fullness = {"percent_full": message["percent"]} if "percent" in message else {}  # of the send buffer
            text = message.get("message") or name.replace("_", " ").capitalize()
            return {"warning": {"code": name, "message": text, **fullness}}
        return None
