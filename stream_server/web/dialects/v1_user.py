"""A user as v1.1 shows one: all members that its clients look for, and nothing made up about anybody.

What this server does not know of a user is as it was for most people there: no picture, no time zone, the colours
that everyone began with. Counts that nobody keeps are 0.
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
"""The links of so many descriptions are kept: who posts once often posts again."""

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
"""The same for everybody. The last three depend on who asks, and these streams are the same for all who do."""


def render_user(uid: str, login: str, person: AuthorSnapshot | None) -> Json:
    """A user by id and login, and by what was known of them when the status was posted."""
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
    """A time, in ms since 1970, as ``Wed Aug 27 13:08:45 +0000 2008``, in English whatever the locale."""
    made = gmtime(ms // 1000)
    clock = f"{made.tm_hour:02}:{made.tm_min:02}:{made.tm_sec:02}"
    return f"{DAYS[made.tm_wday]} {MONTHS[made.tm_mon - 1]} {made.tm_mday:02} {clock} +0000 {made.tm_year}"


def parse_iso_ms(iso: str) -> int:
    """A time of ours, ISO 8601, in ms since 1970."""
    return round(datetime.fromisoformat(iso).timestamp() * 1000)


def render_link(url_entity: Url) -> Json:
    """A link in a text."""
    return {
        "url": url_entity.url,
        "expanded_url": url_entity.expanded_url,
        "display_url": url_entity.display_url,
        "indices": list(url_entity.indices),
    }


def _user_entities(person: AuthorSnapshot) -> Json:
    """The links of the description, and the user's own where there is one."""
    made: Json = {"description": {"urls": [render_link(found) for found in _bio_links(person.bio or "")]}}
    if person.url is not None:
        shown = person.url.partition("://")[2].removeprefix("www.").rstrip("/")
        own = Url(person.url, shown, person.url, (0, len(person.url)))
        made["url"] = {"urls": [render_link(own)]}
    return made


@lru_cache(MAX_CACHED_BIOS)
def _bio_links(bio: str) -> tuple[Url, ...]:
    return extract_entities(bio).urls
