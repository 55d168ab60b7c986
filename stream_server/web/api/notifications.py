"""Notifications and their read mark."""

import msgspec
from aiohttp import web

from stream_server.web.api.notifications_shapes import ReadMark
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging_shapes import PageQuery
from stream_server.web.http.responses import encode_response


async def list_notifications(request: web.Request) -> web.Response:
    """``GET /v1/notifications``: what others did that concerns one, newest first, and how much of it is unread."""
    asked, uid = query.parsed_query(request, PageQuery), request[CLAIMS].sub
    found, unread = await request.app[STORE].notifications.list_with_unread_count(uid, asked.page_request())
    items = [msgspec.Raw(item) for item in found.items]
    return encode_response({"notifications": items, "next": found.next, "prev": found.prev, "unread": unread})


async def mark_read(request: web.Request) -> web.Response:
    """``PUT /v1/notifications/read``: all up to an id are read; the mark never goes back."""
    mark, body = await validation.read_body_as(ReadMark, request)
    key = read_idempotency_key(request, body)
    unread = await request.app[STORE].notifications.mark_read(request[CLAIMS].sub, mark.id, key)
    return encode_response({"unread": unread})
