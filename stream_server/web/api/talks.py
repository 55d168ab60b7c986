"""Talks: messages among people named beforehand."""

from aiohttp import web

from stream_server.web.api.talks_shapes import NewTalk, NewTalkMessage, TalkReadMark
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response


async def open_talk(request: web.Request) -> web.Response:
    """``POST /v1/talks``: 201 and the talk; 200 and the one that two people have already."""
    new, body = await validation.read_body_as(NewTalk, request)
    key = read_idempotency_key(request, body)
    talk, is_new = await request.app[STORE].talks.open(request[CLAIMS].sub, new.people, new.name, key)
    return created_response(talk, "/v1/talks/") if is_new else json_response(talk)


async def list_own(request: web.Request) -> web.Response:
    """``GET /v1/talks``: one's talks, those with the latest messages first."""
    return await paging.page_of_caller(request, "talks", request.app[STORE].talks.list_talks)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}``: one talk, for those in it."""
    return json_response(await request.app[STORE].talks.get(request[CLAIMS].sub, query.read_path_id(request)))


async def send_message(request: web.Request) -> web.Response:
    """``POST /v1/talks/{id}/messages``: 201 and the message, which is on the log by then."""
    talk = query.read_path_id(request)
    new, body = await validation.read_body_as(NewTalkMessage, request)
    key = read_idempotency_key(request, body)
    sent = await request.app[STORE].talks.send_message(request[CLAIMS].sub, talk, new.message, key)
    return created_response(sent, f"/v1/talks/{talk}/messages/")


async def get_message(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages/{message}``: one message, for those in the talk."""
    talk, message_id = query.read_path_id(request), query.read_path_id(request, "message")
    return json_response(await request.app[STORE].talks.get_message(request[CLAIMS].sub, talk, message_id))


async def list_messages(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages``: newest first, for those in the talk."""
    return await paging.page_of_path_id(request, "messages", request.app[STORE].talks.list_messages)


async def mark_read(request: web.Request) -> web.Response:
    """``PUT /v1/talks/{id}/read``: it is read up to a message; the mark never goes back."""
    talk = query.read_path_id(request)
    mark, body = await validation.read_body_as(TalkReadMark, request)
    key = read_idempotency_key(request, body)
    return json_response(await request.app[STORE].talks.mark_read(request[CLAIMS].sub, talk, mark.id, key))
