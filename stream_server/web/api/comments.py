"""Comments under statuses."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.web.api.statuses import StatusEntities, check_message_text
from stream_server.web.http import paging, query
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.fields import Body, Id, Login, Timestamp
from stream_server.web.http.idempotency import answer_write, read_keyed_body
from stream_server.web.http.responses import created_response, json_response


class NewComment(Body):
    """The body of ``POST /v1/statuses/{id}/comments``. ``message`` has the same limits as a status's ``message``."""

    message: Annotated[str, Meta(min_length=1)]


class Comment(msgspec.Struct):
    """A comment under a status."""

    id: Id
    uid: Id
    login: Login
    status: Id
    message: str
    posted: Timestamp
    entities: StatusEntities


class CommentPage(paging.PageAnswer):
    """A page of comments, oldest first."""

    comments: list[Comment]


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: comment on a status; the server answers after the comment is on the log."""
    status_id = query.read_path_id(request)
    new_comment, key = await read_keyed_body(NewComment, request)
    check_message_text(new_comment.message, request.app[CONFIG].message_max_chars)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status_id, new_comment.message, key)
    return created_response(comment, "/v1/comments/")


async def list_under_status(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/comments``: list the comments, oldest first, without those of blocked and muted users."""
    return await paging.page_of_path_id(request, "comments", request.app[STORE].comments.list_comments)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/comments/{id}``: read one comment."""
    return json_response(await request.app[STORE].comments.get(request[CLAIMS].sub, query.read_path_id(request)))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/comments/{id}``: delete a comment, as the author of the comment or of the status."""
    return await answer_write(request, request.app[STORE].comments.delete)
