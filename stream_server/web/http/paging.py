"""Pieces of lists: most of what is read is one, of something at the path's ``{id}`` or of one's own."""

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
"""Of users or statuses in one call."""

PageSize = Annotated[int, Meta(ge=1, le=MAX_IDS, description="how many at most")]


class IdsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Several things by their ids, comma-joined; what does not exist is left out of the answer."""

    ids: Annotated[list[Id], Meta(min_length=1, max_length=MAX_IDS, description="1 to 200 ids, comma-joined")]


class PageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of a list, newest first: older than ``before``, or newer than ``after``, or its beginning."""

    count: PageSize = 30
    before: Annotated[str, Meta(description="the `next` of a piece: what comes after it")] | None = None
    after: Annotated[str, Meta(description="the `prev` of a piece: what came before it")] | None = None

    def __post_init__(self) -> None:
        if self.before is not None and self.after is not None:
            raise BadRequest("not together with before", code="conflicting_parameters", param="after")

    def page_request(self) -> pages.PageRequest:
        """The same as the store takes it."""
        return pages.PageRequest(self.count, self.before, self.after)


class NumberedPageQuery(PageQuery, frozen=True, forbid_unknown_fields=True):
    """A piece of a timeline, which can also be asked for by number: the ``page``-th of ``count`` items each."""

    page: Annotated[int, Meta(ge=1, description="1 is the newest; not together with before or after")] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.page is not None and (self.before is not None or self.after is not None):
            raise BadRequest("not together with before or after", code="conflicting_parameters", param="page")

    def page_request(self) -> pages.PageRequest:
        return pages.PageRequest(self.count, self.before, self.after, self.page)


ReadPageOf = Callable[[str, str, pages.PageRequest], Awaitable[pages.Page]]
"""Who asks, whose or of what it is, the piece."""

ReadOwnPage = Callable[[str, pages.PageRequest], Awaitable[pages.Page]]
"""Who asks, the piece."""


async def page_of_path_id(request: web.Request, member: str, read_page: ReadPageOf) -> web.Response:
    """The piece that the query asks for, of what stands in the path."""
    asked, owner = query.parsed_query(request, PageQuery), query.read_path_id(request)
    return page_response(member, *await read_page(request[CLAIMS].sub, owner, asked.page_request()))


async def page_of_caller(request: web.Request, member: str, read_page: ReadOwnPage) -> web.Response:
    """The same of what is the asking user's own."""
    asked = query.parsed_query(request, PageQuery)
    return page_response(member, *await read_page(request[CLAIMS].sub, asked.page_request()))
