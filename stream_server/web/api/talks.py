"""Talks: private conversations among a fixed set of users, and their messages."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.fields import Body, DisplayName, Id, Login, Timestamp, check_text
from stream_server.web.http.idempotency import answer_write, read_keyed_body
from stream_server.web.http.responses import created_response, json_response

MAX_OTHERS = 49
MAX_MESSAGE_CHARS = 2000
_UNREAD = "messages after the read mark; counting stops at 100"
UnreadMessageCount = Annotated[int, Meta(ge=0, le=100, description=_UNREAD)]


class NewTalk(Body):
    """The body of ``POST /v1/talks``: the other users, and optionally a name for a talk of three or more users.

    Two users have only one talk with each other, without a name; a second request returns it. Each request for three or
    more users, counting the caller, makes a new talk.
    """

    people: Annotated[list[Id], Meta(min_length=1, max_length=MAX_OTHERS, description="the others, without the caller")]
    name: Annotated[DisplayName, Meta(description="only for a talk of more than two users")] | None = None


class NewTalkMessage(Body):
    """The body of ``POST /v1/talks/{id}/messages``: the text of the message."""

    message: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE_CHARS)]

    def __post_init__(self) -> None:
        """Raise ValueError for a blank message, and for control characters other than line feed and tab."""
        check_text("message", self.message, allowed_controls="\n\t", may_be_blank=False)


class TalkReadMark(Body):
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


class TalkMessagePage(paging.PageAnswer):
    """A page of the messages of a talk."""

    messages: list[TalkMessage]


class Talk(msgspec.Struct):
    """A private conversation. ``last_message`` is omitted if the talk has no message that the caller can see."""

    id: Id
    people: Annotated[list[Id], Meta(description="all users in the talk, first the one who opened it")]
    name: str | None
    created: Timestamp
    unread: UnreadMessageCount
    last_message: TalkMessage | UnsetType = UNSET


class TalkPage(paging.PageAnswer):
    """A page of talks."""

    talks: list[Talk]


class TalkReadState(msgspec.Struct):
    """The id of the newest message that the caller has read, and the number of unread messages."""

    read: Id
    unread: UnreadMessageCount


async def open_talk(request: web.Request) -> web.Response:
    """``POST /v1/talks``: open a talk; for two users who have a talk already, return that talk with status 200."""
    new_talk, key = await read_keyed_body(NewTalk, request)
    talk, is_new = await request.app[STORE].talks.open(request[CLAIMS].sub, new_talk.people, new_talk.name, key)
    return created_response(talk, "/v1/talks/") if is_new else json_response(talk)


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/talks``: list the caller's talks, the talk with the latest message first."""
    return await paging.page_of_caller(request, "talks", request.app[STORE].talks.list_talks)


async def list_requests(request: web.Request) -> web.Response:
    """``GET /v1/talks/requests``: list the talks that strangers opened with the caller, and that wait for an answer."""
    return await paging.page_of_caller(request, "talks", request.app[STORE].talks.list_requests)


async def accept(request: web.Request) -> web.Response:
    """``PUT /v1/talks/{id}/acceptance``: accept a talk that a stranger opened; a reply does this too."""
    return await answer_write(request, request.app[STORE].talks.accept)


async def refuse(request: web.Request) -> web.Response:
    """``DELETE /v1/talks/{id}/acceptance``: refuse a talk that a stranger opened; the caller no longer sees it."""
    return await answer_write(request, request.app[STORE].talks.refuse)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}``: read one talk that the caller is in."""
    return json_response(await request.app[STORE].talks.get(request[CLAIMS].sub, query.read_path_id(request)))


async def send_message(request: web.Request) -> web.Response:
    """``POST /v1/talks/{id}/messages``: send a message; the log has the message before the server answers."""
    talk_id = query.read_path_id(request)
    new_message, key = await read_keyed_body(NewTalkMessage, request)
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
    """``PUT /v1/talks/{id}/read``: mark the messages up to an id as read; an id below the read mark changes nothing."""
    talk_id = query.read_path_id(request)
    mark, key = await read_keyed_body(TalkReadMark, request)
    return json_response(await request.app[STORE].talks.mark_read(request[CLAIMS].sub, talk_id, mark.id, key))
