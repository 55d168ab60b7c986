"""Paged lists: the query parameters and answer members that many routes share, and how a handler answers one page."""

from typing import Annotated

import msgspec
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store import pagination as pages
from stream_server.web.http import query
from stream_server.web.http.fields import Cursor, Id
from stream_server.web.route import Request

MAX_IDS = 200
"""Most ids in the query of one request, and most items on one page."""

OlderThan = Annotated[str, Meta(description="the `next` of another page: returns the older items that follow it")]
NewerThan = Annotated[str, Meta(description="the `prev` of another page: returns the newer items before it")]


class IdsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of several objects by their ids, comma-separated. Objects that do not exist are left out of the answer."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_IDS, description="1 to 200 ids, comma-separated")]


class PageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of one page of a list: the items older than ``before``, or newer than ``after``, or else the newest."""

    count: Annotated[int, Meta(ge=1, le=MAX_IDS, description="maximum number of items")] = 30
    before: OlderThan | None = None
    after: NewerThan | None = None

    def __post_init__(self) -> None:
        if self.before is not None and self.after is not None:
            raise BadRequest("cannot be combined with before", code="conflicting_parameters", param="after")

    def page_request(self) -> pages.PageRequest:
        return pages.PageRequest(self.count, self.before, self.after)


class NumberedPageQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """Query of one page of a timeline, by cursor as in :class:`PageQuery`, or by page number. Page 1 is the newest."""

    page: (
        Annotated[int, Meta(ge=1, description="page number, 1 is the newest; cannot be combined with before or after")]
        | None
    ) = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.page is not None and (self.before is not None or self.after is not None):
            raise BadRequest("cannot be combined with before or after", code="conflicting_parameters", param="page")

    def page_request(self) -> pages.PageRequest:
        return pages.PageRequest(self.count, self.before, self.after, self.page)


class PageAnswer(msgspec.Struct):
    """Base of the answers that hold one page of a list."""

    next: Annotated[Cursor | None, Meta(description="pass it as `before` for the following items; null at the end")]
    prev: Annotated[Cursor | None, Meta(description="pass it as `after` for the preceding items; null at the start")]


def read_page_request(request: Request) -> pages.PageRequest:
    """Return the page request in the query. Raises TypeError unless the route's query is a :class:`PageQuery`."""
    return query.parsed_query(request, PageQuery).page_request()
