"""Comments under statuses."""

from aiohttp import web

from stream_server.web import pieces, query, schema
from stream_server.web.answers import created, json_answer
from stream_server.web.idempotency import request_key
from stream_server.web.keys import CLAIMS, CONFIG, STORE
from stream_server.web.shapes.comments import NewComment
from stream_server.web.statuses import check_text


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: 201 and the comment, which is on the log by then."""
    status = query.path_id(request)
    new, body = await schema.read_body_as(NewComment, request)
    check_text(new.message, request.app[CONFIG].message_max_chars)
    key = request_key(request, body)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status, new.message, key)
    return created(comment, "/v1/comments/")


async def under(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/comments``: oldest first, without those of people whom one does not want to hear."""
    return await pieces.of(request, "comments", request.app[STORE].comments.page)


async def one(request: web.Request) -> web.Response:
    """``GET /v1/comments/{id}``: one comment."""
    return json_answer(await request.app[STORE].comments.get(request[CLAIMS].sub, query.path_id(request)))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/comments/{id}``: 204; by its author, or by the author of the status."""
    await request.app[STORE].comments.delete(request[CLAIMS].sub, query.path_id(request), request_key(request))
    return web.Response(status=204)
