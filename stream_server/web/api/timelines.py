"""Timelines: pieces of lists of statuses, each as the one who asks may see it."""

from aiohttp import web

from stream_server.web.api.timelines_shapes import HomeTimelineQuery
from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.paging_shapes import NumberedPageQuery
from stream_server.web.http.responses import page_response


async def home_timeline(request: web.Request) -> web.Response:
    """``GET /v1/timelines/home``: one's own statuses and those of everyone followed, by time or importance."""
    asked, viewer = query.parsed_query(request, HomeTimelineQuery), request[CLAIMS].sub
    timelines = request.app[STORE].timelines
    read = timelines.read_home_by_importance if asked.order == "importance" else timelines.read_home
    return page_response("statuses", *await read(viewer, asked.page_request()))


async def profile_timeline(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/statuses``: what a user wrote, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_profile)


async def liked_statuses(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/likes``: what a user likes, the latest like first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_liked)


async def mention_timeline(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mentions``: the recent statuses that mention one, newest first."""
    return await paging.page_of_caller(request, "statuses", request.app[STORE].timelines.read_mentions)


async def favorite_statuses(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites``: what one has kept and may still see, the latest first."""
    return await paging.page_of_caller(request, "statuses", request.app[STORE].timelines.read_favorites)


async def list_reposts(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/reposts``: reposts and quotes of a status, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_reposts)


async def list_replies(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/replies``: direct replies to a status, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_replies)


async def list_conversation(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/conversation``: the whole thread in which a status stands, oldest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_conversation)


async def hashtag_timeline(request: web.Request) -> web.Response:
    """``GET /v1/tags/{tag}/statuses``: the recent statuses with a hashtag, newest first."""
    asked, name = query.parsed_query(request, NumberedPageQuery), request.match_info["tag"]
    found = await request.app[STORE].timelines.read_tag(request[CLAIMS].sub, name, asked.page_request())
    return page_response("statuses", *found)


async def list_timeline(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/statuses``: what the members of a list wrote, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_list)


async def group_timeline(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/statuses``: what was posted in a group, newest first."""
    return await paging.page_of_path_id(request, "statuses", request.app[STORE].timelines.read_group)
