"""Suspensions: an administrator suspends and reinstates users."""

import msgspec
from aiohttp import web

from stream_server.web.http import paging
from stream_server.web.http.app_keys import STORE
from stream_server.web.http.idempotency import write_by_path_id
from stream_server.web.http.responses import json_response, page_response


class SuspensionState(msgspec.Struct):
    """The answer to a suspension or reinstatement: whether the user is suspended now."""

    suspended: bool


async def suspend(request: web.Request) -> web.Response:
    """``PUT /v1/admin/suspensions/{id}``: suspend a user and end the user's streams; repeating has no effect."""
    return json_response(await write_by_path_id(request, request.app[STORE].suspensions.suspend))


async def reinstate(request: web.Request) -> web.Response:
    """``DELETE /v1/admin/suspensions/{id}``: end the suspension of a user; repeating has no effect."""
    return json_response(await write_by_path_id(request, request.app[STORE].suspensions.reinstate))


async def list_suspended(request: web.Request) -> web.Response:
    """``GET /v1/admin/suspensions``: list the suspended users, last suspended first, with the time of suspension."""
    page = paging.read_page_request(request)
    return page_response("users", *await request.app[STORE].suspensions.list_suspended(page))
