"""Mutes: hear no more of somebody, who is not told."""

from aiohttp import web

from stream_server.web import pieces, query
from stream_server.web.answers import encoded
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE


async def mute(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/mutes/{id}``: hear no more of them; they are not told; twice is once."""
    target, key = query.path_id(request), request_key(request)
    await request.app[STORE].mutes.mute(request[CLAIMS].sub, target, key)
    return encoded({"muting": True})


async def unmute(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/mutes/{id}``: hear of them again."""
    target, key = query.path_id(request), request_key(request)
    await request.app[STORE].mutes.unmute(request[CLAIMS].sub, target, key)
    return encoded({"muting": False})


async def listed(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mutes``: whom one mutes, newest first, each with ``since``."""
    return await pieces.mine(request, "users", request.app[STORE].mutes.page)
