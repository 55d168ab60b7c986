"""Likes: like, take it back, and who likes."""

from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def like(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/likes/{id}``: like a status; done twice is done once."""
    status = query.read_path_id(request)
    liked = await request.app[STORE].likes.like(request[CLAIMS].sub, status, read_idempotency_key(request))
    return encode_response(liked._asdict())


async def unlike(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/likes/{id}``: like a status no longer; done twice is done once."""
    status = query.read_path_id(request)
    liked = await request.app[STORE].likes.unlike(request[CLAIMS].sub, status, read_idempotency_key(request))
    return encode_response(liked._asdict())


async def get_like(request: web.Request) -> web.Response:
    """``GET /v1/users/me/likes/{id}``: whether one likes a status."""
    uid = request[CLAIMS].sub
    return encode_response({"liked": await request.app[STORE].likes.has_liked(uid, query.read_path_id(request), uid)})


async def list_likers(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/likes``: who likes a status, newest first, each with ``since``."""
    return await paging.page_of_path_id(request, "users", request.app[STORE].likes.list_likers)
