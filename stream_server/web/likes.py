"""Likes: like, take it back, and who likes."""

from aiohttp import web

from stream_server.web import query
from stream_server.web.answers import encoded, page
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.shapes.queries import Piece


async def like(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/likes/{id}``: like a status; done twice is done once."""
    status = query.path_id(request)
    liked = await request.app[STORE].likes.like(request[CLAIMS].sub, status, request_key(request))
    return encoded(liked._asdict())


async def unlike(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/likes/{id}``: like a status no longer; done twice is done once."""
    status = query.path_id(request)
    liked = await request.app[STORE].likes.unlike(request[CLAIMS].sub, status, request_key(request))
    return encoded(liked._asdict())


async def has(request: web.Request) -> web.Response:
    """``GET /v1/users/me/likes/{id}``: whether one likes a status."""
    uid = request[CLAIMS].sub
    return encoded({"liked": await request.app[STORE].likes.has(uid, query.path_id(request), uid)})


async def likers(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/likes``: who likes a status, newest first, each with ``since``."""
    asked, status = query.given(request, Piece), query.path_id(request)
    found = await request.app[STORE].likes.page(request[CLAIMS].sub, status, asked.piece())
    return page("users", *found)
