"""Comments under statuses."""

from aiohttp import web

from stream_server.web.api.comments_shapes import NewComment
from stream_server.web.api.statuses import check_message_text
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: 201 and the comment, which is on the log by then."""
    status = query.read_path_id(request)
    new, body = await validation.read_body_as(NewComment, request)
    check_message_text(new.message, request.app[CONFIG].message_max_chars)
    key = read_idempotency_key(request, body)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status, new.message, key)
    return created_response(comment, "/v1/comments/")


async def list_under_status(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/comments``: oldest first, without those of people whom one does not want to hear."""
    return await paging.page_of_path_id(request, "comments", request.app[STORE].comments.list_comments)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/comments/{id}``: one comment."""
    return json_response(await request.app[STORE].comments.get(request[CLAIMS].sub, query.read_path_id(request)))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/comments/{id}``: 204; by its author, or by the author of the status."""
    await request.app[STORE].comments.delete(
        request[CLAIMS].sub, query.read_path_id(request), read_idempotency_key(request)
    )
    return web.Response(status=204)
