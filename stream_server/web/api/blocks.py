"""Blocks: neither of two sees the other, nor follows the other."""

from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def block(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/blocks/{id}``: they and oneself see and follow each other no longer; twice is once."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].blocks.block(request[CLAIMS].sub, target, key)
    return encode_response({"blocking": True})


async def unblock(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/blocks/{id}``: no longer; what was cut stays cut."""
    target, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].blocks.unblock(request[CLAIMS].sub, target, key)
    return encode_response({"blocking": False})


async def list_blocks(request: web.Request) -> web.Response:
    """``GET /v1/users/me/blocks``: whom one blocks, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].blocks.list_blocked)
