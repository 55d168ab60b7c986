"""Notifications: what others did that concerns the caller, and the caller's read mark."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.api.comments import Comment
from stream_server.web.api.statuses import Status
from stream_server.web.api.users import User
from stream_server.web.http import paging
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body, Id, NonNegativeInt, Timestamp
from stream_server.web.http.idempotency import read_keyed_body
from stream_server.web.http.responses import encode_response

_UNREAD = "notifications above the read mark; beyond 100, hidden ones count too"
UnreadNumber = Annotated[NonNegativeInt, Meta(description=_UNREAD)]


class ReadMark(Body):
    """The body of ``PUT /v1/notifications/read``: the id of the newest notification that the caller has read."""

    id: Id


class UnreadCount(msgspec.Struct):
    """The answer of ``PUT /v1/notifications/read``: the number of notifications that are still unread."""

    unread: UnreadNumber


class Notification(msgspec.Struct):
    """An act of another user that concerns the caller, with the status or comment that it created or liked."""

    id: Id
    kind: Literal["mention", "reply", "like", "comment", "repost", "quote", "follow", "request", "approve"]
    source: Annotated[User, Meta(description="the user who acted")]
    posted: Timestamp
    read: bool
    status: Status | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET


class NotificationPage(paging.PageAnswer):
    """A page of notifications."""

    notifications: list[Notification]
    unread: UnreadNumber


async def list_notifications(request: web.Request) -> web.Response:
    """``GET /v1/notifications``: list the caller's notifications, newest first, and count the unread ones."""
    list_page = request.app[STORE].notifications.list_with_unread_count
    page, unread = await list_page(request[CLAIMS].sub, paging.read_page_request(request))
    items = [msgspec.Raw(item) for item in page.items]
    return encode_response({"notifications": items, "next": page.next, "prev": page.prev, "unread": unread})


async def mark_read(request: web.Request) -> web.Response:
    """``PUT /v1/notifications/read``: mark the notifications up to an id as read; the read mark never moves back."""
    mark, key = await read_keyed_body(ReadMark, request)
    unread = await request.app[STORE].notifications.mark_read(request[CLAIMS].sub, mark.id, key)
    return encode_response({"unread": unread})
