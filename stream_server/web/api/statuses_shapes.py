"""Statuses: post and read."""

import unicodedata
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.store.social import statuses
from stream_server.web.http.validation import (
    Cursor,
    HttpUrl,
    Id,
    Language,
    Latitude,
    Login,
    Longitude,
    NonNegativeInt,
    Timestamp,
    check_meta,
    check_name,
)

MAX_MEDIA = 4


def check_control_characters(message: str) -> None:
    """Raises ValueError for a text with characters that a line on a screen cannot show."""
    if any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in message):
        raise ValueError("`message`: no control characters but line feed and tab")


class GeoPoint(statuses.StatusLocation, frozen=True, forbid_unknown_fields=True):
    """A point, in degrees (WGS 84)."""

    lon: Longitude
    lat: Latitude


class NamedPlace(statuses.StatusPlace, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named place; ``box`` is west, south, east, north, with west > east across the date line."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    country: Annotated[str, Meta(pattern=r"^[A-Za-z]{2}$(?!\n)", description="ISO 3166-1 alpha-2")] | None = None
    box: tuple[Longitude, Latitude, Longitude, Latitude] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.box is not None and (self.box[1] >= self.box[3] or self.box[0] == self.box[2]):
            raise ValueError("`box`: south must be below north, and west not equal to east")


class MediaLink(statuses.StatusMedia, frozen=True, forbid_unknown_fields=True):
    """A link to what the author shows; it is not fetched."""

    url: HttpUrl
    type: Literal["image", "video", "gif", "audio"]


class NewStatus(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/statuses``; ``message`` may be empty only with ``origin``, which makes it a repost."""

    message: str = ""
    location: GeoPoint | None = None
    place: NamedPlace | None = None
    in_reply_to: Id | None = None
    origin: Id | None = None
    lang: Language | None = None
    media: Annotated[list[MediaLink], Meta(max_length=MAX_MEDIA)] = []
    meta: dict[str, Any] | None = None
    group: Annotated[Id, Meta(description="where it is posted; a reply is posted where its status is")] | None = None

    def __post_init__(self) -> None:
        check_control_characters(self.message)
        if self.meta is not None:
            check_meta(self.meta)


TextSpan = Annotated[tuple[NonNegativeInt, NonNegativeInt], Meta(description="from and to, in code points")]


class MentionEntity(msgspec.Struct):
    """``@login`` in a text; ``id`` is there if somebody is called so."""

    login: str
    indices: TextSpan
    id: Id | UnsetType = UNSET


class TagEntity(msgspec.Struct):
    """``#text`` or ``$text``."""

    text: str
    indices: TextSpan


class UrlEntity(msgspec.Struct):
    """A link in a text."""

    url: str
    display_url: str
    expanded_url: str
    indices: TextSpan


class StatusEntities(msgspec.Struct):
    """What was found in a text."""

    mentions: list[MentionEntity]
    hashtags: list[TagEntity]
    cashtags: list[TagEntity]
    urls: list[UrlEntity]


class EmbeddedStatus(msgspec.Struct):
    """A status inside another, which shows no third one."""

    id: Id
    uid: Id
    login: Login
    message: str
    posted: Timestamp
    location: GeoPoint | None
    place: NamedPlace | None
    lang: Annotated[str, Meta(description="BCP 47, `und` if unknown")]
    entities: StatusEntities
    in_reply_to: Id | None
    in_reply_to_uid: Id | None
    origin: Annotated[Id, Meta(description="what is reposted or quoted")] | None
    media: list[MediaLink]
    meta: dict[str, Any] | None
    group: Id | None
    conversation: Annotated[Id, Meta(description="the status with which the thread began")]
    likes: NonNegativeInt
    comments: NonNegativeInt
    reposts: NonNegativeInt


class Status(EmbeddedStatus, kw_only=True):
    """A status; ``original`` is there if it reposts or quotes one, and null where that is gone or not to be seen."""

    original: EmbeddedStatus | UnsetType | None = UNSET


class StatusesById(msgspec.Struct):
    """Those of the asked for that exist, in the order of the asking."""

    statuses: list[Status]


class StatusPage(msgspec.Struct):
    """A piece of a list of statuses; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    statuses: list[Status]
    next: Cursor | None
    prev: Cursor | None
