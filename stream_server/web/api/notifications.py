"""Notifications: what others did that concerns the caller, and the caller's read mark."""

from typing import Annotated, Literal

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.api.comments import Comment
from stream_server.web.api.statuses import Status
from stream_server.web.api.users import User
from stream_server.web.http import query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Cursor, Id, NonNegativeInt, Timestamp
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.paging import PageQuery
from stream_server.web.http.responses import encode_response

UnreadNumber = Annotated[
    NonNegativeInt, Meta(description="notifications above the read mark; beyond 100, hidden ones count too")
]


class ReadMark(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PUT /v1/notifications/read``: the id of the newest notification that the caller has read."""

    id: Id


class UnreadCount(msgspec.Struct):
    """The number of unread notifications."""

    unread: UnreadNumber


class Notification(msgspec.Struct):
    """An act of another user. ``status`` and ``comment`` are present if the kind concerns one."""

    id: Id
    kind: Literal["mention", "reply", "like", "comment", "repost", "quote", "follow", "request", "approve"]
    source: Annotated[User, Meta(description="the user who acted")]
    posted: Timestamp
    read: bool
    status: Status | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET


class NotificationPage(msgspec.Struct):
    """A page of notifications. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    notifications: list[Notification]
    next: Cursor | None
    prev: Cursor | None
    unread: UnreadNumber


async def list_notifications(request: web.Request) -> web.Response:
    """``GET /v1/notifications``: list the caller's notifications, newest first, and count the unread ones."""
    page_request, uid = query.parsed_query(request, PageQuery).page_request(), request[CLAIMS].sub
    page, unread = await request.app[STORE].notifications.list_with_unread_count(uid, page_request)
    items = [msgspec.Raw(item) for item in page.items]
    return encode_response({"notifications": items, "next": page.next, "prev": page.prev, "unread": unread})


async def mark_read(request: web.Request) -> web.Response:
    """``PUT /v1/notifications/read``: mark notifications as read, up to an id; the mark never moves back."""
    mark, body = await validation.read_body_as(ReadMark, request)
    key = read_idempotency_key(request, body)
    return encode_response(
        {"unread": await request.app[STORE].notifications.mark_read(request[CLAIMS].sub, mark.id, key)}
    )
