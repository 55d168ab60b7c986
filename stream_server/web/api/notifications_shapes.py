"""Notifications and their read mark."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.api.comments_shapes import Comment
from stream_server.web.api.statuses_shapes import Status
from stream_server.web.api.users_shapes import User
from stream_server.web.http.fields import Cursor, Id, NonNegativeInt, Timestamp

UnreadNumber = Annotated[
    NonNegativeInt, Meta(description="above the read mark; beyond 100, hidden ones are counted too")
]


class ReadMark(msgspec.Struct, forbid_unknown_fields=True):
    """``PUT /v1/notifications/read``: all up to this id are read."""

    id: Id


class UnreadCount(msgspec.Struct):
    """How many are not read."""

    unread: UnreadNumber


class Notification(msgspec.Struct):
    """What somebody did; ``status`` and ``comment`` are there for the kinds that are about one."""

    id: Id
    kind: Literal["mention", "reply", "like", "comment", "repost", "quote", "follow", "request", "approve"]
    source: Annotated[User, Meta(description="who did it")]
    posted: Timestamp
    read: bool
    status: Status | UnsetType = UNSET
    comment: Comment | UnsetType = UNSET


class NotificationPage(msgspec.Struct):
    """A piece of one's notifications; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    notifications: list[Notification]
    next: Cursor | None
    prev: Cursor | None
    unread: UnreadNumber
