"""Mutes: hear no more of somebody, who is not told."""

from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def mute(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/mutes/{id}``: hear no more of them; they are not told; twice is once."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].mutes.mute(request[CLAIMS].sub, target, key)
    return encode_response({"muting": True})


async def unmute(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/mutes/{id}``: hear of them again."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].mutes.unmute(request[CLAIMS].sub, target, key)
    return encode_response({"muting": False})


async def list_mutes(request: web.Request) -> web.Response:
    """``GET /v1/users/me/mutes``: whom one mutes, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].mutes.list_muted)
