"""Requests to follow a protected user. They are withdrawn by unfollowing."""

from aiohttp import web

from stream_server.web import pieces, query
from stream_server.web.answers import encoded
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE


async def received(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests``: who asks to follow oneself, newest first, each with ``since``."""
    return await pieces.mine(request, "users", request.app[STORE].follow_requests.received)


async def sent(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests/sent``: whom one asks to follow, newest first, each with ``since``."""
    return await pieces.mine(request, "users", request.app[STORE].follow_requests.sent)


async def approve(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/requests/{id}``: let them follow; 404 where they do not ask to."""
    source, key = query.path_id(request), request_key(request)
    await request.app[STORE].follow_requests.approve(request[CLAIMS].sub, source, key)
    return encoded({"followed_by": True, "requested_by": False})


async def refuse(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/requests/{id}``: do not let them follow; 404 where they do not ask to."""
    source, key = query.path_id(request), request_key(request)
    await request.app[STORE].follow_requests.refuse(request[CLAIMS].sub, source, key)
    return encoded({"followed_by": False, "requested_by": False})
