"""Talks, and the messages in them."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http.fields import Cursor, DisplayName, Id, Login, Timestamp, check_name, check_text

MAX_OTHERS = 49
MAX_MESSAGE_CHARS = 2000

UnreadMessageCount = Annotated[int, Meta(ge=0, le=100, description="messages after the read mark, counted up to 100")]


class NewTalk(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/talks``: with one other it is the one talk of the two, which has no name; with several a new one."""

    people: Annotated[list[Id], Meta(min_length=1, max_length=MAX_OTHERS, description="the others, not oneself")]
    name: Annotated[DisplayName, Meta(description="of a talk of several")] | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)


class NewTalkMessage(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/talks/{id}/messages``."""

    message: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARS)]

    def __post_init__(self) -> None:
        check_text("message", self.message, allowed_controls="\n\t", may_be_blank=False)


class TalkReadMark(msgspec.Struct, forbid_unknown_fields=True):
    """``PUT /v1/talks/{id}/read``: the newest message that was read."""

    id: Id


class TalkMessage(msgspec.Struct):
    """A message, which only those in the talk ever see."""

    id: Id
    talk: Id
    uid: Id
    login: Login
    message: str
    posted: Timestamp


class TalkMessagePage(msgspec.Struct):
    """A piece of a talk; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    messages: list[TalkMessage]
    next: Cursor | None
    prev: Cursor | None


class Talk(msgspec.Struct):
    """Messages among people named beforehand; ``last_message`` is there if there is one to be seen."""

    id: Id
    people: Annotated[list[Id], Meta(description="everyone in it, who opened it first")]
    name: str | None
    created: Timestamp
    unread: UnreadMessageCount
    last_message: TalkMessage | UnsetType = UNSET


class TalkPage(msgspec.Struct):
    """A piece of one's talks; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    talks: list[Talk]
    next: Cursor | None
    prev: Cursor | None


class TalkReadState(msgspec.Struct):
    """Up to which message a talk is read now, and how many are not."""

    read: Id
    unread: UnreadMessageCount
