"""Timelines: lists of statuses. Each page has only the statuses that the caller may see."""

from typing import Annotated, Literal

from aiohttp import web
from msgspec import Meta

from stream_server.web.api.statuses import Status
from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.paging import NumberedPageQuery, PageAnswer
from stream_server.web.http.responses import page_response

_ORDERS = "newest first, or by the reactions of other users; a cursor of one order is invalid for the other"
TimelineOrder = Annotated[Literal["time", "importance"], Meta(description=_ORDERS)]


class HomeTimelineQuery(NumberedPageQuery, frozen=True, forbid_unknown_fields=True):
    """The query of one page of the home timeline. ``order`` sorts the statuses by time or by importance."""

    order: TimelineOrder = "time"


class StatusPage(PageAnswer):
    """A page of statuses."""

    statuses: list[Status]


async def home_timeline(request: web.Request) -> web.Response:
    """``GET /v1/timelines/home``: list the caller's statuses and those of followed users, by time or importance."""
    asked, viewer = query.parsed_query(request, HomeTimelineQuery), request[CLAIMS].sub
    timelines = request.app[STORE].timelines
    read = timelines.read_home_by_importance if asked.order == "importance" else timelines.read_home
    return page_response("statuses", *await read(viewer, asked.page_request()))


async def profile_timeline(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/statuses``: list the statuses of a user, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_profile)


async def liked_statuses(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/likes``: list the statuses that a user likes, the latest like first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_liked)


async def mention_timeline(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mentions``: list the recent statuses that mention the caller, newest first."""
    return await paging.page_of_caller(request, "statuses", request.app[STORE].timelines.read_mentions)


async def favorite_statuses(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites``: list the caller's favorites that are still visible, last added first."""
    return await paging.page_of_caller(request, "statuses", request.app[STORE].timelines.read_favorites)


async def list_reposts(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/reposts``: list the reposts and quotes of a status, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_reposts)


async def list_replies(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/replies``: list the direct replies to a status, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_replies)


async def list_conversation(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/conversation``: list the thread to which a status belongs, oldest status first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_conversation)


async def hashtag_timeline(request: web.Request) -> web.Response:
    """``GET /v1/tags/{tag}/statuses``: list the recent statuses with a hashtag, newest first."""
    read_tag, tag = request.app[STORE].timelines.read_tag, request.match_info["tag"]
    return page_response("statuses", *await read_tag(request[CLAIMS].sub, tag, paging.read_page_request(request)))


async def list_timeline(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/statuses``: list the statuses of the members of a list, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_list)


async def group_timeline(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/statuses``: list the statuses posted in a group, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_group)
