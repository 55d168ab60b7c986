"""Pieces of lists: most of what is read is one, of something at the path's ``{id}`` or of one's own."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from stream_server.store import pagination as pages
from stream_server.web.http import query
from stream_server.web.http.app_keys import CLAIMS
from stream_server.web.http.paging_shapes import PageQuery
from stream_server.web.http.responses import page_response

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
