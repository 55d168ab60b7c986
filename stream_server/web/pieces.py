"""Pieces of lists: most of what is read is one, of something at the path's ``{id}`` or of one's own."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from stream_server.store import page as pages
from stream_server.web import query
from stream_server.web.answers import page
from stream_server.web.keys import CLAIMS
from stream_server.web.shapes.queries import Piece

ReadOf = Callable[[str, str, pages.Piece], Awaitable[pages.Page]]
"""Who asks, whose or of what it is, the piece."""

ReadMine = Callable[[str, pages.Piece], Awaitable[pages.Page]]
"""Who asks, the piece."""


async def of(request: web.Request, noun: str, read: ReadOf) -> web.Response:
    """The piece that the query asks for, of what stands in the path."""
    asked, owner = query.given(request, Piece), query.path_id(request)
    return page(noun, *await read(request[CLAIMS].sub, owner, asked.piece()))


async def mine(request: web.Request, noun: str, read: ReadMine) -> web.Response:
    """The same of what is the asking user's own."""
    asked = query.given(request, Piece)
    return page(noun, *await read(request[CLAIMS].sub, asked.piece()))
