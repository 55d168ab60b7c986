"""Statuses, comments, likes (which others see) and favorites (which only their user sees), timelines, and trends."""

from typing import Annotated, Any, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.errors import BadRequest, Forbidden
from stream_server.events.position import format_iso_time
from stream_server.store.social.statuses import StatusDraft
from stream_server.trends.counter import MAX_TRENDS, primary_language
from stream_server.web.api.people import UserPage
from stream_server.web.api.rows import TEXT_LIMITS, get, page, write
from stream_server.web.http import fields, paging, query
from stream_server.web.http.app_keys import CLAIMS, CONFIG, HUB, STORE, TRENDS
from stream_server.web.http.fields import (
    Body,
    HttpUrl,
    Id,
    Language,
    Latitude,
    Longitude,
    NonNegativeInt,
    PatchBody,
    Timestamp,
)
from stream_server.web.http.paging import IdsQuery, NumberedPageQuery, PageAnswer
from stream_server.web.http.responses import (
    created_response,
    encode_response,
    json_response,
    list_response,
)
from stream_server.web.http.validation import read_keyed_body
from stream_server.web.route import Request, Route
from stream_server.wire.objects import Comment, LikeCount, Location, Media, Place, Status


class GeoPoint(Location, frozen=True, forbid_unknown_fields=True):
    """A point on the Earth, longitude and latitude in degrees (WGS 84)."""

    lon: Longitude
    lat: Latitude


class NamedPlace(Place, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named place. ``box`` is west, south, east, north in degrees. A box with west > east crosses longitude 180."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    country: (
        Annotated[str, Meta(pattern=r"^[A-Za-z]{2}$(?!\n)", description="an ISO 3166-1 alpha-2 country code")] | None
    ) = None
    box: tuple[Longitude, Latitude, Longitude, Latitude] | None = None

    def __post_init__(self) -> None:
        fields.check_name(self.name)
        if self.box is not None and (self.box[1] >= self.box[3] or self.box[0] == self.box[2]):
            raise ValueError("`box` must have south below north, and west different from east")


class MediaLink(Media, frozen=True, forbid_unknown_fields=True):
    """A link to an image, a video or a sound. The server does not fetch it."""

    url: HttpUrl
    type: Literal["image", "video", "gif", "audio"]


class NewStatus(StatusDraft, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /v1/statuses``: a plain status has ``message``, a repost ``origin``, a quote both."""

    message: str = ""
    location: GeoPoint | None = None
    place: NamedPlace | None = None
    in_reply_to: Id | None = None
    origin: Id | None = None
    lang: Language | None = None
    media: Annotated[list[MediaLink], Meta(max_length=4)] = msgspec.field(default_factory=list)
    meta: dict[str, Any] | None = None
    group: (
        Annotated[Id, Meta(description="the group to post in; a reply always goes to the group of its parent")] | None
    ) = None

    def __post_init__(self) -> None:
        fields.check_text("message", self.message, allowed_controls="\n\t")
        if self.meta is not None:
            fields.check_meta(self.meta)


class StatusesById(msgspec.Struct):
    """The requested statuses that exist and that the caller may see, in the order of the request."""

    statuses: list[Status]


async def post(request: Request) -> web.Response:
    """``POST /v1/statuses``: post a status; the log has the status before the server answers."""
    new_status, key = await read_keyed_body(NewStatus, request)
    check_message_text(new_status.message, request.app[CONFIG].message_max_chars)
    if not new_status.message and new_status.origin is None:
        raise BadRequest("a status needs a message, or an origin to repost", code="missing_parameter", param="message")
    status = await request.app[STORE].statuses.create(request[CLAIMS].sub, new_status, key)
    return created_response(status, "/v1/statuses/")


class StatusChanges(PatchBody):
    """The body of ``PATCH /v1/statuses/{id}``. Omitted members stay as they are; null clears one.

    A new ``message`` gets its language detected, unless ``lang`` comes with it.
    """

    message: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    location: GeoPoint | UnsetType | None = UNSET
    place: NamedPlace | UnsetType | None = UNSET
    lang: Language | UnsetType = UNSET
    media: Annotated[list[MediaLink], Meta(max_length=4)] | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        """Raise ValueError for a text or ``meta`` that no status may have."""
        if isinstance(self.message, str):
            fields.check_text("message", self.message, allowed_controls="\n\t")
        if isinstance(self.meta, dict):
            fields.check_meta(self.meta)


async def edit(request: Request) -> web.Response:
    """``PATCH /v1/statuses/{id}``: edit a status of the caller. All who could see it get an `edit` event."""
    status_id = query.read_path_id(request)
    changes, key = await read_keyed_body(StatusChanges, request)
    seconds = request.app[CONFIG].edit_seconds
    if not seconds:
        raise Forbidden("nobody edits statuses on this server", code="too_late")
    if isinstance(changes.message, str):
        check_message_text(changes.message, request.app[CONFIG].message_max_chars)
    edited = request.app[STORE].statuses.edit(
        request[CLAIMS].sub, status_id, changes.present_members(), key, round(seconds * 1000)
    )
    return json_response(await edited)


async def get_statuses(request: Request) -> web.Response:
    """``GET /v1/statuses?ids=``: read several statuses in the requested order; those not found are left out."""
    ids = query.parsed_query(request, IdsQuery).ids
    return list_response("statuses", await request.app[STORE].statuses.get_many(request[CLAIMS].sub, ids))


def check_message_text(message: str, max_chars: int, param: str = "message") -> None:
    """Raise BadRequest for only white space, or over ``max_chars`` code points. A repost's text is empty and valid."""
    if len(message) > max_chars:
        raise BadRequest(f"at most {max_chars} code points", param=param)
    if message and not message.strip():
        raise BadRequest("must not be only white space", param=param)


class NewComment(Body):
    """The body of ``POST /v1/statuses/{id}/comments``. ``message`` has the same limits as a status's ``message``."""

    message: Annotated[str, Meta(min_length=1)]


class CommentPage(paging.PageAnswer):
    """A page of comments, oldest first."""

    comments: list[Comment]


async def post_comment(request: Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: comment on a status; the server answers after the comment is on the log."""
    status_id = query.read_path_id(request)
    new_comment, key = await read_keyed_body(NewComment, request)
    check_message_text(new_comment.message, request.app[CONFIG].message_max_chars)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status_id, new_comment.message, key)
    return created_response(comment, "/v1/comments/")


class LikeState(msgspec.Struct):
    """The answer of ``GET /v1/users/me/likes/{id}``: whether the caller likes the status."""

    liked: bool


class FavoriteState(msgspec.Struct):
    """Whether the status is a favorite of the caller."""

    favorite: bool


class HomeTimelineQuery(NumberedPageQuery, frozen=True, forbid_unknown_fields=True):
    """The query of one page of the home timeline. ``order`` sorts the statuses by time or by importance."""

    order: Annotated[
        Literal["time", "importance"],
        Meta(
            description="newest first, or by the reactions of other users; "
            "a cursor of one order is invalid for the other"
        ),
    ] = "time"


class StatusPage(PageAnswer):
    """A page of statuses."""

    statuses: list[Status]


Authors = Annotated[int, Meta(ge=0, description="authors of counted posts; one counts once in an hour of the clock")]


class TrendsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The query of ``GET /v1/trends``."""

    kind: Literal["tag", "word"] = "tag"
    lang: Language | None = None
    count: Annotated[int, Meta(ge=1, le=MAX_TRENDS)] = 20


class TrendAnswer(msgspec.Struct):
    """A tag (without ``#``) or a word, in lower case, that grows."""

    text: str
    count: Authors
    before: Annotated[int, Meta(ge=0, description="the same in the hour before")]
    growth: Annotated[float, Meta(ge=0, description="`count` divided by what was to be expected from the hour before")]


class Trends(msgspec.Struct, rename={"from_": "from"}):
    """The trends of the present hour, the strongest first."""

    from_: Annotated[Timestamp, Meta(description="since when posts are counted: up to an hour ago")]
    to: Timestamp
    posts: Annotated[int, Meta(ge=0, description="public posts in this time, estimated above 50 events a second")]
    counted: Annotated[int, Meta(ge=0, description="posts of which the words were counted: up to 50 a second")]
    max_undercount: Annotated[NonNegativeInt, Meta(description="by how much a count may be too low")]
    trends: list[TrendAnswer]


async def get_trends(request: Request) -> web.Response:
    """``GET /v1/trends``: list the tags or words that more people use than an hour ago."""
    asked = query.parsed_query(request, TrendsQuery)
    language = "" if asked.lang is None else primary_language(asked.lang)
    report, now_ms = request.app[TRENDS].report(asked.kind, language), request.app[HUB].now_ms()
    return encode_response(
        Trends(
            format_iso_time(min(report.from_ms or now_ms, now_ms)), format_iso_time(now_ms), report.posts,
            report.counted, report.max_undercount, [TrendAnswer(*trend) for trend in report.trends[: asked.count]],
        )
    )  # fmt: skip


def _timeline(path: str, name: str, summary: str, call: str = "") -> Route:
    """Return the row of the URL table for a timeline, whose pages are read by cursor or by number."""
    return page(path, name, summary, StatusPage, NumberedPageQuery, call=call)


# fmt: off
ROWS: tuple[Route, ...] = (
    Route("POST", "/v1/statuses", post, "write", body=NewStatus, response=Status, status=201,
          limits=TEXT_LIMITS),
    Route("GET", "/v1/statuses", get_statuses, "read", IdsQuery, response=StatusesById, name="statuses.get_many"),
    get("/v1/statuses/{id}", "statuses.get", "Read one status.", Status),
    Route("PATCH", "/v1/statuses/{id}", edit, "write", body=StatusChanges, response=Status, limits=TEXT_LIMITS,
          keeps_appended=True),
    write("DELETE", "/v1/statuses/{id}", "statuses.delete", "Delete one of the caller's own statuses."),
    page("/v1/statuses/{id}/likes", "likes.list_likers",
         "List the users who like a status with the time of the like, newest first.", UserPage),
    write("PUT", "/v1/users/me/likes/{id}", "likes.like", "Like a status; repeating has no effect.",
          response=LikeCount),
    write("DELETE", "/v1/users/me/likes/{id}", "likes.unlike",
          "Remove the caller's like of a status; repeating has no effect.", response=LikeCount),
    get("/v1/users/me/likes/{id}", "likes.get_like", "Tell whether the caller likes a status.", LikeState,
        call="likes.has_liked"),
    write("PUT", "/v1/users/me/favorites/{id}", "favorites.add",
          "Add a status to the caller's favorites; other users do not see it.", FavoriteState(favorite=True)),
    write("DELETE", "/v1/users/me/favorites/{id}", "favorites.remove",
          "Remove a status from the caller's favorites, even a deleted status.", FavoriteState(favorite=False)),
    get("/v1/users/me/favorites/{id}", "likes.get_favorite",
        "Tell whether a status is a favorite of the caller.", FavoriteState, call="favorites.is_favorite"),
    Route("POST", "/v1/statuses/{id}/comments", post_comment, "write", body=NewComment, response=Comment, status=201,
          limits=TEXT_LIMITS, name="comments.post"),
    page("/v1/statuses/{id}/comments", "comments.list_comments",
         "List the comments, oldest first, without those of blocked and muted users.", CommentPage),
    get("/v1/comments/{id}", "comments.get", "Read one comment.", Comment),
    write("DELETE", "/v1/comments/{id}", "comments.delete",
          "Delete a comment, as the author of the comment or of the status."),
    page("/v1/timelines/home", "timelines.home_timeline",
         "List the caller's statuses and those of followed users, by time or importance.", StatusPage,
         HomeTimelineQuery, call="timelines.read_home"),
    _timeline("/v1/users/me/mentions", "timelines.read_mentions",
              "List the recent statuses that mention the caller, newest first."),
    _timeline("/v1/users/me/favorites", "timelines.read_favorites",
              "List the caller's favorites that are still visible, last added first."),
    _timeline("/v1/users/{id}/statuses", "timelines.read_profile", "List the statuses of a user, newest first."),
    _timeline("/v1/users/{id}/likes", "timelines.read_liked",
              "List the statuses that a user likes, the latest like first."),
    _timeline("/v1/statuses/{id}/reposts", "timelines.read_reposts",
              "List the reposts and quotes of a status, newest first."),
    _timeline("/v1/statuses/{id}/replies", "timelines.read_replies",
              "List the direct replies to a status, newest first."),
    _timeline("/v1/statuses/{id}/conversation", "timelines.read_conversation",
              "List the thread to which a status belongs, oldest status first."),
    Route("GET", "/v1/trends", get_trends, "read", TrendsQuery, response=Trends,
          name="trends.get"),
    _timeline("/v1/tags/{tag}/statuses", "timelines.hashtag_timeline",
              "List the recent statuses with a hashtag, newest first.", call="timelines.read_tag"),
    _timeline("/v1/lists/{id}/statuses", "timelines.read_list",
              "List the statuses of the members of a list, newest first."),
    _timeline("/v1/groups/{id}/statuses", "timelines.read_group", "List the statuses posted in a group, newest first."),
)
# fmt: on
