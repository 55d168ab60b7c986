"""Statuses: posting, reading and deleting them."""

from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import BadRequest
from stream_server.store.social.statuses import StatusDraft, StatusLocation, StatusMedia, StatusPlace
from stream_server.web.http import fields, query
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.fields import (
    ForeignId,
    HttpUrl,
    Id,
    Language,
    Latitude,
    Login,
    Longitude,
    NonNegativeInt,
    Timestamp,
)
from stream_server.web.http.idempotency import answer_write, read_keyed_body
from stream_server.web.http.paging import IdsQuery
from stream_server.web.http.responses import created_response, json_response, list_response

MAX_MEDIA = 4


class GeoPoint(StatusLocation, frozen=True, forbid_unknown_fields=True):
    """A point on the Earth, longitude and latitude in degrees (WGS 84)."""

    lon: Longitude
    lat: Latitude


CountryCode = Annotated[str, Meta(pattern=r"^[A-Za-z]{2}$(?!\n)", description="an ISO 3166-1 alpha-2 country code")]


class NamedPlace(StatusPlace, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named place. ``box`` is west, south, east, north in degrees. A box with west > east crosses longitude 180."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    country: CountryCode | None = None
    box: tuple[Longitude, Latitude, Longitude, Latitude] | None = None

    def __post_init__(self) -> None:
        fields.check_name(self.name)
        if self.box is not None and (self.box[1] >= self.box[3] or self.box[0] == self.box[2]):
            raise ValueError("`box` must have south below north, and west different from east")


class MediaLink(StatusMedia, frozen=True, forbid_unknown_fields=True):
    """A link to an image, a video or a sound. The server does not fetch it."""

    url: HttpUrl
    type: Literal["image", "video", "gif", "audio"]


GroupToPostIn = Annotated[Id, Meta(description="the group to post in; a reply always goes to the group of its parent")]


class NewStatus(StatusDraft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /v1/statuses``: a plain status has ``message``, a repost ``origin``, a quote both."""

    message: str = ""
    location: GeoPoint | None = None
    place: NamedPlace | None = None
    in_reply_to: Id | None = None
    origin: Id | None = None
    lang: Language | None = None
    media: Annotated[list[MediaLink], Meta(max_length=MAX_MEDIA)] = msgspec.field(default_factory=list)
    meta: dict[str, Any] | None = None
    group: GroupToPostIn | None = None

    def __post_init__(self) -> None:
        fields.check_text("message", self.message, allowed_controls="\n\t")
        if self.meta is not None:
            fields.check_meta(self.meta)


_SPAN = "start and end in the text, in code points"
TextSpan = Annotated[tuple[NonNegativeInt, NonNegativeInt], Meta(description=_SPAN)]


class MentionEntity(msgspec.Struct):
    """``@login`` in a text; ``id`` is omitted if no user has this login."""

    login: str
    indices: TextSpan
    id: Id | UnsetType = UNSET


class TagEntity(msgspec.Struct):
    """A hashtag ``#text`` or a cashtag ``$text`` in a text."""

    text: str
    indices: TextSpan


class UrlEntity(msgspec.Struct):
    """A link in a text."""

    url: str
    display_url: str
    expanded_url: str
    indices: TextSpan


class StatusEntities(msgspec.Struct):
    """The mentions, tags and links that the server found in a text."""

    mentions: list[MentionEntity]
    hashtags: list[TagEntity]
    cashtags: list[TagEntity]
    urls: list[UrlEntity]


class EmbeddedStatus(msgspec.Struct):
    """The status that a repost or quote has as its ``original``. It does not contain an ``original`` itself."""

    id: Id
    uid: Id
    login: Login
    message: str
    posted: Timestamp
    location: GeoPoint | None
    place: NamedPlace | None
    lang: Annotated[str, Meta(description="a BCP 47 language tag, or `und` if the language is unknown")]
    entities: StatusEntities
    in_reply_to: Id | None
    in_reply_to_uid: Id | None
    origin: Annotated[Id, Meta(description="the status that this one reposts or quotes")] | None
    media: list[MediaLink]
    meta: dict[str, Any] | None
    group: Id | None
    conversation: Annotated[Id, Meta(description="the first status of the thread")]
    likes: NonNegativeInt
    comments: NonNegativeInt
    reposts: NonNegativeInt
    foreign_id: Annotated[ForeignId, Meta(description="only of a status of another site")] | UnsetType = UNSET


class Status(EmbeddedStatus, kw_only=True):
    """A status. ``original`` is the reposted or quoted status, or null if that is deleted or hidden from the caller."""

    original: EmbeddedStatus | UnsetType | None = UNSET


class StatusesById(msgspec.Struct):
    """The requested statuses that exist and that the caller may see, in the order of the request."""

    statuses: list[Status]


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses``: post a status; the log has the status before the server answers."""
    new_status, key = await read_keyed_body(NewStatus, request)
    check_message_text(new_status.message, request.app[CONFIG].message_max_chars)
    if not new_status.message and new_status.origin is None:
        raise BadRequest("a status needs a message, or an origin to repost", code="missing_parameter", param="message")
    status = await request.app[STORE].statuses.create(request[CLAIMS].sub, new_status, key)
    return created_response(status, "/v1/statuses/")


async def get(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}``: read one status."""
    return json_response(await request.app[STORE].statuses.get(request[CLAIMS].sub, query.read_path_id(request)))


async def get_many(request: web.Request) -> web.Response:
    """``GET /v1/statuses?ids=``: read several statuses in the requested order; those not found are left out."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("statuses", await request.app[STORE].statuses.get_many(request[CLAIMS].sub, ids))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/statuses/{id}``: delete one of the caller's own statuses."""
    return await answer_write(request, request.app[STORE].statuses.delete)


def check_message_text(message: str, max_chars: int, param: str = "message") -> None:
    """Raise BadRequest for only white space, or over ``max_chars`` code points. A repost's text is empty and valid."""
    if len(message) > max_chars:
        raise BadRequest(f"at most {max_chars} code points", param=param)
    if message and not message.strip():
        raise BadRequest("must not be only white space", param=param)
