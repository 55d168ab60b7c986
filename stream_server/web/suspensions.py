"""Suspensions: an administrator takes and gives back a user's good standing."""

from aiohttp import web

from stream_server.web import query
from stream_server.web.answers import json_answer, page
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.shapes.queries import Piece


async def suspend(request: web.Request) -> web.Response:
    """``PUT /v1/admin/suspensions/{id}``: suspend a user, whose streams end; done twice is done once."""
    uid = query.path_id(request)
    key, admin = request_key(request), request[CLAIMS].sub
    return json_answer(await request.app[STORE].suspensions.suspend(admin, uid, key))


async def reinstate(request: web.Request) -> web.Response:
    """``DELETE /v1/admin/suspensions/{id}``: reinstate a user; done twice is done once."""
    uid = query.path_id(request)
    key, admin = request_key(request), request[CLAIMS].sub
    return json_answer(await request.app[STORE].suspensions.reinstate(admin, uid, key))


async def suspended(request: web.Request) -> web.Response:
    """``GET /v1/admin/suspensions``: the suspended users, newest first, each with ``since``."""
    asked = query.given(request, Piece)
    return page("users", *await request.app[STORE].suspensions.page(asked.piece()))
