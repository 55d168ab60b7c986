"""Paged lists: the query parameters that many routes share, and the helpers that answer one page."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec
from aiohttp import web
from msgspec import Meta

from stream_server.errors import BadRequest
from stream_server.store import pagination as pages
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS
from stream_server.web.http.fields import Id
from stream_server.web.http.responses import page_response

MAX_IDS = 200
"""Most ids in the query of one request, and most items on one page."""

PageSize = Annotated[int, Meta(ge=1, le=MAX_IDS, description="maximum number of items")]
"""Type of the ``count`` parameter: the number of items on a page."""


class IdsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of several objects by their ids, comma-separated. Objects that do not exist are left out of the answer."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_IDS, description="1 to 200 ids, comma-separated")]


class PageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Query of one page of a list, newest first: older than ``before``, newer than ``after``, or the newest items."""

    count: PageSize = 30
    before: (
        Annotated[str, Meta(description="the `next` of another page: returns the older items that follow it")] | None
    ) = None
    after: Annotated[str, Meta(description="the `prev` of another page: returns the newer items before it")] | None = (
        None
    )

    def __post_init__(self) -> None:
        """Raise BadRequest if the query has both ``before`` and ``after``."""
        if self.before is not None and self.after is not None:
            raise BadRequest("cannot be combined with before", code="conflicting_parameters", param="after")

    def page_request(self) -> pages.PageRequest:
        """Convert the query to the page request of the store."""
        return pages.PageRequest(self.count, self.before, self.after)


class NumberedPageQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """Query of one page of a timeline, by cursor as in :class:`PageQuery`, or by number.

    Page 1 holds the newest ``count`` items, page 2 the next ones.
    """

    page: (
        Annotated[int, Meta(ge=1, description="page number, 1 is the newest; cannot be combined with before or after")]
        | None
    ) = None

    def __post_init__(self) -> None:
        """Raise BadRequest if the query has ``page`` together with a cursor."""
        super().__post_init__()
        if self.page is not None and (self.before is not None or self.after is not None):
            raise BadRequest("cannot be combined with before or after", code="conflicting_parameters", param="page")

    def page_request(self) -> pages.PageRequest:
        """Convert the query to the page request of the store."""
        return pages.PageRequest(self.count, self.before, self.after, self.page)


ReadPageOf = Callable[[str, str, pages.PageRequest], Awaitable[pages.Page]]
"""Reads a page of a list that belongs to another object: takes the caller's user id, the object's id and the page
request.
"""

ReadOwnPage = Callable[[str, pages.PageRequest], Awaitable[pages.Page]]
"""Reads a page of a list that belongs to the caller: takes the caller's user id and the page request."""


async def page_of_path_id(request: web.Request, member: str, read_page: ReadPageOf) -> web.Response:
    """Answer one page of a list of the object whose id stands in the path.

    The list is called ``member`` in the JSON.
    """
    page_query, owner = query.parsed_query(request, PageQuery), query.read_path_id(request)
    return page_response(member, *await read_page(request[CLAIMS].sub, owner, page_query.page_request()))


async def page_of_caller(request: web.Request, member: str, read_page: ReadOwnPage) -> web.Response:
    """Answer one page of the caller's own list, which is called ``member`` in the JSON."""
    page_query = query.parsed_query(request, PageQuery)
    return page_response(member, *await read_page(request[CLAIMS].sub, page_query.page_request()))
