"""Comments under statuses."""

from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.web.api.statuses import StatusEntities, check_message_text
from stream_server.web.http import paging, query, validation
from stream_server.web.http.app_keys import CLAIMS, CONFIG, STORE
from stream_server.web.http.fields import Cursor, Id, Login, Timestamp, check_text
from stream_server.web.http.idempotency import read_idempotency_key
from stream_server.web.http.responses import created_response, json_response


class NewComment(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/statuses/{id}/comments``; its text has the same limits as that of a status."""

    message: Annotated[str, Meta(min_length=1)]

    def __post_init__(self) -> None:
        check_text("message", self.message, allowed_controls="\n\t")


class Comment(msgspec.Struct):
    """A comment under a status."""

    id: Id
    uid: Id
    login: Login
    status: Id
    message: str
    posted: Timestamp
    entities: StatusEntities


class CommentPage(msgspec.Struct):
    """A page of comments, oldest first. Pass ``next`` as ``before``, ``prev`` as ``after``; null at the end."""

    comments: list[Comment]
    next: Cursor | None
    prev: Cursor | None


async def post(request: web.Request) -> web.Response:
    """``POST /v1/statuses/{id}/comments``: comment on a status; the log has the comment before the answer."""
    status_id = query.read_path_id(request)
    new_comment, body = await validation.read_body_as(NewComment, request)
    check_message_text(new_comment.message, request.app[CONFIG].message_max_chars)
    key = read_idempotency_key(request, body)
    comment = await request.app[STORE].comments.create(request[CLAIMS].sub, status_id, new_comment.message, key)
    return created_response(comment, "/v1/comments/")


async def list_under_status(request: web.Request) -> web.Response:
    """``GET /v1/statuses/{id}/comments``: list the comments, oldest first, without those of blocked and muted users."""
    return await paging.page_of_path_id(request, "comments", request.app[STORE].comments.list_comments)


async def get(request: web.Request) -> web.Response:
    """``GET /v1/comments/{id}``: read one comment."""
    return json_response(await request.app[STORE].comments.get(request[CLAIMS].sub, query.read_path_id(request)))


async def delete(request: web.Request) -> web.Response:
    """``DELETE /v1/comments/{id}``: delete a comment; its author may, and the author of the status."""
    comment_id, key = query.read_path_id(request), read_idempotency_key(request)
    await request.app[STORE].comments.delete(request[CLAIMS].sub, comment_id, key)
    return web.Response(status=204)
