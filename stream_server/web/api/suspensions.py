"""Suspensions: an administrator suspends and reinstates users."""

import msgspec
from aiohttp import web

from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import json_response, page_response


class SuspensionState(msgspec.Struct):
    """Whether the user is suspended now."""

    suspended: bool


async def suspend(request: web.Request) -> web.Response:
    """``PUT /v1/admin/suspensions/{id}``: suspend a user and end the user's streams; repeating has no effect."""
    uid, key = query.read_path_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].suspensions.suspend(request[CLAIMS].sub, uid, key))


async def reinstate(request: web.Request) -> web.Response:
    """``DELETE /v1/admin/suspensions/{id}``: end the suspension of a user; repeating has no effect."""
    uid, key = query.read_path_id(request), read_idempotency_key(request)
    return json_response(await request.app[STORE].suspensions.reinstate(request[CLAIMS].sub, uid, key))


async def list_suspended(request: web.Request) -> web.Response:
    """``GET /v1/admin/suspensions``: list the suspended users, newest first, each with ``since``."""
    page = query.parsed_query(request, PageQuery).page_request()
    return page_response("users", *await request.app[STORE].suspensions.list_suspended(page))
