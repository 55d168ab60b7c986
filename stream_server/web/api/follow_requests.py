"""Requests to follow a protected user. They are withdrawn by unfollowing."""

from aiohttp import web

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import encode_response


async def list_received_requests(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests``: who asks to follow oneself, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].follow_requests.list_received)


async def list_sent_requests(request: web.Request) -> web.Response:
    """``GET /v1/users/me/requests/sent``: whom one asks to follow, newest first, each with ``since``."""
    return await paging.page_of_caller(request, "users", request.app[STORE].follow_requests.list_sent)


async def approve_request(request: web.Request) -> web.Response:
    """``PUT /v1/users/me/requests/{id}``: let them follow; 404 where they do not ask to."""
    source, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].follow_requests.approve(request[CLAIMS].sub, source, key)
    return encode_response({"followed_by": True, "requested_by": False})


async def refuse_request(request: web.Request) -> web.Response:
    """``DELETE /v1/users/me/requests/{id}``: do not let them follow; 404 where they do not ask to."""
    source, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].follow_requests.refuse(request[CLAIMS].sub, source, key)
    return encode_response({"followed_by": False, "requested_by": False})
