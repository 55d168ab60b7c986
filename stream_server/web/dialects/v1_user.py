"""Renders a user in v1.1 format, with all members that v1.1 clients read.

Members that this server does not know have Twitter's defaults: no picture, no time zone, the initial colours. Counts
that the server does not keep are 0.
"""

from datetime import datetime
from functools import lru_cache
from time import gmtime

from filters.entities import Url, extract_entities
from stream_server.events.entry_fields import AuthorSnapshot
from stream_server.events.position import created_ms
from stream_server.web.dialects.status_text import Json

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

MAX_CACHED_BIOS = 1024
"""Descriptions whose links are cached, because authors post repeatedly."""

DEFAULT_USER_MEMBERS: Json = {
    "listed_count": 0,
    "favourites_count": 0,
    "utc_offset": None,
    "time_zone": None,
    "geo_enabled": True,
    "verified": False,
    "contributors_enabled": False,
    "is_translator": False,
    "is_translation_enabled": False,
    "profile_background_color": "C0DEED",
    "profile_background_image_url": "",
    "profile_background_image_url_https": "",
    "profile_background_tile": False,
    "profile_image_url": "",
    "profile_image_url_https": "",
    "profile_link_color": "1DA1F2",
    "profile_sidebar_border_color": "C0DEED",
    "profile_sidebar_fill_color": "DDEEF6",
    "profile_text_color": "333333",
    "profile_use_background_image": True,
    "default_profile": True,
    "default_profile_image": True,
    "following": None,
    "follow_request_sent": None,
    "notifications": None,
}
"""Members that are equal for all users. Twitter's last three depend on the viewer; here all clients share the bytes."""


def render_user(uid: str, login: str, person: AuthorSnapshot | None) -> Json:
    """Return a user in v1.1 format; ``person`` is the user as of posting, or None if the entry does not have it."""
    known = AuthorSnapshot(uid, login, login) if person is None else person
    return {
        "id": int(uid),
        "id_str": uid,
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
    utc = gmtime(ms // 1000)
    clock = f"{utc.tm_hour:02}:{utc.tm_min:02}:{utc.tm_sec:02}"
    return f"{DAYS[utc.tm_wday]} {MONTHS[utc.tm_mon - 1]} {utc.tm_mday:02} {clock} +0000 {utc.tm_year}"


def parse_iso_ms(iso: str) -> int:
    """Return a time in ISO 8601 as ms since 1970."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def render_link(url_entity: Url) -> Json:
    """Return a link of a text in v1.1 format."""
    return {
        "url": url_entity.url,
        "expanded_url": url_entity.expanded_url,
        "display_url": url_entity.display_url,
        "indices": list(url_entity.indices),
    }


def _user_entities(person: AuthorSnapshot) -> Json:
    """Return the links in the description, and the link to the user's own page if there is one."""
    entities: Json = {"description": {"urls": [render_link(link) for link in _bio_links(person.bio or "")]}}
    if person.url is not None:
        shown = person.url.partition("://")[2].removeprefix("www.").rstrip("/")
        own = Url(person.url, shown, person.url, (0, len(person.url)))
        entities["url"] = {"urls": [render_link(own)]}
    return entities


@lru_cache(MAX_CACHED_BIOS)
def _bio_links(bio: str) -> tuple[Url, ...]:
    """Return the links in a description; the cache avoids parsing it for each status."""
    return extract_entities(bio).urls
