"""Likes: like, take it back, and who likes."""

from aiohttp import web

from stream_server.web import pieces, query
from stream_server.web.answers import encoded
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE


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
    return await pieces.of(request, "users", request.app[STORE].likes.page)
