"""Timelines: pieces of lists of statuses, each as the one who asks may see it."""

from aiohttp import web

from stream_server.web import pieces, query
from stream_server.web.answers import page
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.shapes.queries import Paged
from stream_server.web.shapes.timelines import Home


async def home(request: web.Request) -> web.Response:
    """``GET /v1/timelines/home``: one's own statuses and those of everyone followed, by time or importance."""
    asked, viewer = query.given(request, Home), request[CLAIMS].sub
    timelines = request.app[STORE].timelines
    read = timelines.importance if asked.order == "importance" else timelines.home
    return page("statuses", *await read(viewer, asked.piece()))


async def profile(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/statuses``: what a user wrote, newest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.profile)


async def liked(request: web.Request) -> web.Response:
    """``GET /v1/users/{id}/likes``: what a user likes, the latest like first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.liked)


async def mentions(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mentions``: the recent statuses that mention one, newest first."""
    return await pieces.mine(request, "statuses", request.app[STORE].timelines.mentions)


async def favorites(request: web.Request) -> web.Response:
    """``GET /v1/users/me/favorites``: what one has kept and may still see, the latest first."""
    return await pieces.mine(request, "statuses", request.app[STORE].timelines.favorites)


async def reposts(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/reposts``: reposts and quotes of a status, newest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.reposts)


async def replies(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/replies``: direct replies to a status, newest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.replies)


async def conversation(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/conversation``: the whole thread in which a status stands, oldest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.conversation)


async def tag(request: web.Request) -> web.Response:
    """``GET /v1/tags/{tag}/statuses``: the recent statuses with a hashtag, newest first."""
    asked, name = query.given(request, Paged), request.match_info["tag"]
    found = await request.app[STORE].timelines.tag(request[CLAIMS].sub, name, asked.piece())
    return page("statuses", *found)


async def of_list(request: web.Request) -> web.Response:
    """``GET /v1/lists/{id}/statuses``: what the members of a list wrote, newest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.list)


async def of_group(request: web.Request) -> web.Response:
    """``GET /v1/groups/{id}/statuses``: what was posted in a group, newest first."""
    return await pieces.of(request, "statuses", request.app[STORE].timelines.group)
