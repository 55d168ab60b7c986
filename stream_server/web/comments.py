"""Comments under statuses."""

from aiohttp import web

from stream_server.web import pieces, query, schema
from stream_server.web.answers import created_response, json_response
from stream_server.web.idempotency import read_idempotency_key
from stream_server.web.keys import CLAIMS, CONFIG, STORE
from stream_server.web.shapes.comments import NewComment
from stream_server.web.statuses import check_message_text


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: 201 and the comment, which is on the log by then."""
    status = query.read_path_id(request)
    new, body = await schema.read_body_as(NewComment, request)
    check_message_text(new.message, request.app[CONFIG].message_max_chars)
    key = read_idempotency_key(request, body)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status, new.message, key)
    return created_response(comment, "/v1/comments/")


async def list_under_status(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/comments``: oldest first, without those of people whom one does not want to hear."""
    return await pieces.page_of_path_id(request, "comments", request.app[STORE].comments.list_comments)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/comments/{id}``: one comment."""
    return json_response(await request.app[STORE].comments.get(request[CLAIMS].sub, query.read_path_id(request)))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/comments/{id}``: 204; by its author, or by the author of the status."""
    await request.app[STORE].comments.delete(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return web.Response(status=204)
