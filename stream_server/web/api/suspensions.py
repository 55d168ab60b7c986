"""Suspensions: an administrator takes and gives back a user's good standing."""

from aiohttp import web

from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging_shapes import PageQuery
from stream_server.web.http.responses import json_response, page_response


async def suspend(request: web.Request) -> web.Response:
    """``PUT /v1/admin/suspensions/{id}``: suspend a user, whose streams end; done twice is done once."""
    uid = query.read_path_id(request)
    key, admin = read_idempotency_key(request), request[CLAIMS].sub
    return json_response(await request.app[STORE].suspensions.suspend(admin, uid, key))


async def reinstate(request: web.Request) -> web.Response:
    """``DELETE /v1/admin/suspensions/{id}``: reinstate a user; done twice is done once."""
    uid = query.read_path_id(request)
    key, admin = read_idempotency_key(request), request[CLAIMS].sub
    return json_response(await request.app[STORE].suspensions.reinstate(admin, uid, key))


async def list_suspended(request: web.Request) -> web.Response:
    """``GET /v1/admin/suspensions``: the suspended users, newest first, each with ``since``."""
    asked = query.parsed_query(request, PageQuery)
    return page_response("users", *await request.app[STORE].suspensions.list_suspended(asked.page_request()))
