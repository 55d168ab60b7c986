"""Comments."""

from typing import Annotated

import msgspec
from msgspec import Meta

from stream_server.web.api.statuses_shapes import StatusEntities
from stream_server.web.http.fields import Cursor, Id, Login, Timestamp, check_text


class NewComment(msgspec.Struct, forbid_unknown_fields=True):
    """``POST /v1/statuses/{id}/comments``; the rules of its text are those of a status."""

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
    """A piece of the comments, oldest first; ``next`` is for ``before``, ``prev`` for ``after``, null at the end."""

    comments: list[Comment]
    next: Cursor | None
    prev: Cursor | None
