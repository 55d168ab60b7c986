"""Talks: messages among people named beforehand."""

from aiohttp import web

from stream_server.web import pieces, query, schema
from stream_server.web.answers import created, json_answer
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, STORE
from stream_server.web.shapes.talks import NewMessage, NewTalk, TalkMark


async def begin(request: web.Request) -> web.Response:
    """``POST /v1/talks``: 201 and the talk; 200 and the one that two people have already."""
    new, body = await schema.read_body_as(NewTalk, request)
    key = request_key(request, body)
    talk, is_new = await request.app[STORE].talks.open(request[CLAIMS].sub, new.people, new.name, key)
    return created(talk, "/v1/talks/") if is_new else json_answer(talk)


async def mine(request: web.Request) -> web.Response:
    """``GET /v1/talks``: one's talks, those with the latest messages first."""
    return await pieces.mine(request, "talks", request.app[STORE].talks.of)


async def one(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}``: one talk, for those in it."""
    return json_answer(await request.app[STORE].talks.get(request[CLAIMS].sub, query.path_id(request)))


async def send(request: web.Request) -> web.Response:
    """``POST /v1/talks/{id}/messages``: 201 and the message, which is on the log by then."""
    talk = query.path_id(request)
    new, body = await schema.read_body_as(NewMessage, request)
    key = request_key(request, body)
    sent = await request.app[STORE].talks.send(request[CLAIMS].sub, talk, new.message, key)
    return created(sent, f"/v1/talks/{talk}/messages/")


async def message(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages/{message}``: one message, for those in the talk."""
    talk, message_id = query.path_id(request), query.path_id(request, "message")
    return json_answer(await request.app[STORE].talks.message(request[CLAIMS].sub, talk, message_id))


async def messages(request: web.Request) -> web.Response:
    """``GET /v1/talks/{id}/messages``: newest first, for those in the talk."""
    return await pieces.of(request, "messages", request.app[STORE].talks.messages)


async def read(request: web.Request) -> web.Response:
    """``PUT /v1/talks/{id}/read``: it is read up to a message; the mark never goes back."""
    talk = query.path_id(request)
    mark, body = await schema.read_body_as(TalkMark, request)
    key = request_key(request, body)
    return json_answer(await request.app[STORE].talks.read(request[CLAIMS].sub, talk, mark.id, key))
