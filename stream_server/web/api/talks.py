"""Talks: private conversations among fixed users, and their messages."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Cursor, DisplayName, Id, Login, Timestamp, check_name, check_text
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response

MAX_OTHERS = 49
"""Most users that a talk has beside the one who opens it."""

MAX_MESSAGE_CHARS = 2000
"""Longest message, in code points."""

UnreadMessageCount = Annotated[
    int, Meta(ge=0, le=100, description="messages after the read mark; counting stops at 100")
]


class NewTalk(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/talks``. Two users have one talk without a name; more users get a new talk each time."""

    people: Annotated[list[Id], Meta(min_length=1, max_length=MAX_OTHERS, description="the others, without the caller")]
    name: Annotated[DisplayName, Meta(description="only for a talk of more than two users")] | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)


class NewTalkMessage(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/talks/{id}/messages``."""

    message: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARS)]

    def __post_init__(self) -> None:
        check_text("message", self.message, allowed_controls="\n\t", may_be_blank=False)


class TalkReadMark(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PUT /v1/talks/{id}/read``: the id of the newest message that the caller has read."""

    id: Id


class TalkMessage(msgspec.Struct):
    """A message in a talk. Only the users in the talk see it."""

    id: Id
    talk: Id
    uid: Id
    login: Login
    message: str
    posted: Timestamp


class TalkMessagePage(msgspec.Struct):
    """A page of messages. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    messages: list[TalkMessage]
    next: Cursor | None
    prev: Cursor | None


class Talk(msgspec.Struct):
    """A talk. ``last_message`` is omitted if the caller can see no message in it."""

    id: Id
    people: Annotated[list[Id], Meta(description="all users in the talk, first the one who opened it")]
    name: str | None
    created: Timestamp
    unread: UnreadMessageCount
    last_message: TalkMessage | UnsetType = UNSET


class TalkPage(msgspec.Struct):
    """A page of talks. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    talks: list[Talk]
    next: Cursor | None
    prev: Cursor | None


class TalkReadState(msgspec.Struct):
    """The newest message that the caller has read, and the number of unread messages."""

    read: Id
    unread: UnreadMessageCount


async def open_talk(request: web.Request) -> web.Response:
    """``POST /v1/talks``: open a talk; two users who have one already get it back with status 200."""
    new_talk, body = await validation.read_body_as(NewTalk, request)
    key = read_idempotency_key(request, body)
    talk, is_new = await request.app[STORE].talks.open(request[CLAIMS].sub, new_talk.people, new_talk.name, key)
    return created_response(talk, "/v1/talks/") if is_new else json_response(talk)


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/talks``: list the caller's talks, those with the latest message first."""
    return await paging.page_of_caller(request, "talks", request.app[STORE].talks.list_talks)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}``: read one talk that the caller is in."""
    return json_response(await request.app[STORE].talks.get(request[CLAIMS].sub, query.read_path_id(request)))


async def send_message(request: web.Request) -> web.Response:
    """``POST /v1/talks/{id}/messages``: send a message; the log has the message before the server answers."""
    talk_id = query.read_path_id(request)
    new_message, body = await validation.read_body_as(NewTalkMessage, request)
    key = read_idempotency_key(request, body)
    message = await request.app[STORE].talks.send_message(request[CLAIMS].sub, talk_id, new_message.message, key)
    return created_response(message, f"/v1/talks/{talk_id}/messages/")


async def get_message(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages/{message}``: read one message of a talk that the caller is in."""
    talk_id, message_id = query.read_path_id(request), query.read_path_id(request, "message")
    return json_response(await request.app[STORE].talks.get_message(request[CLAIMS].sub, talk_id, message_id))


async def list_messages(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages``: list the messages of a talk that the caller is in, newest first."""
    return await paging.page_of_path_id(request, "messages", request.app[STORE].talks.list_messages)


async def mark_read(request: web.Request) -> web.Response:
    """``PUT /v1/talks/{id}/read``: mark messages as read, up to an id; the mark never moves back."""
    talk_id = query.read_path_id(request)
    mark, body = await validation.read_body_as(TalkReadMark, request)
    key = read_idempotency_key(request, body)
    return json_response(await request.app[STORE].talks.mark_read(request[CLAIMS].sub, talk_id, mark.id, key))
