"""A request for a stream that a connection has read by itself, without aiohttp."""

import asyncio
import re
from typing import Any, NamedTuple

from aiohttp import HttpVersion11, hdrs, web
from multidict import CIMultiDict

from stream_server.web.http.app_keys import OPENING
from stream_server.web.http.connection import Connection
from stream_server.web.http.responses import date_header

MAX_USUAL_HEAD_BYTES = 16_384
"""Longest head that is read here. aiohttp reads longer ones, and refuses lines and fields that are too long."""

MAX_USUAL_FIELDS = 64

_NAME = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_FIELDS = rf"((?:{_NAME}:[\t ]*+[\t !-~]*+\r\n)*+)\r\n"
_FIELD = re.compile(rf"({_NAME}):([^\r]*+)\r\n")

UNUSUAL_FIELDS = frozenset({"content-length", "transfer-encoding", "expect", "trailer", "te"})
"""Header fields of a request that aiohttp handles, because they announce a body or another answer before."""


class _NothingWritten(NamedTuple):
    output_size: int = 0


class _Target(NamedTuple):
    """The part of a URL that checks of streams read. ``raw_query_string`` is percent-encoded."""

    raw_query_string: str


class StreamRequest(dict[Any, Any]):
    """A `GET` request for a stream. It has those parts of aiohttp's request that checks and handlers of streams use.

    It is the mapping of its values, too.

    Attributes:
        app: The app that serves the request.
        connection: The connection of the request.
        headers: The header fields, by their names in any case. No name occurs twice.
        match_info: The route.
        path: The path of the route.
        rel_url: The query.
        transport: The transport of the connection.
    """

    __slots__ = ("app", "connection", "headers", "match_info", "path", "rel_url", "transport")

    method = hdrs.METH_GET
    version = HttpVersion11
    body_exists = can_read_body = False
    writer = _NothingWritten()

    def __init__(
        self, connection: Connection, app: web.Application, match_info: web.UrlMappingMatchInfo, path: str,
        query_text: str, headers: CIMultiDict[str],
    ) -> None:  # fmt: skip
        super().__init__()
        self.app = app
        self.connection = connection
        self.headers = headers
        self.match_info = match_info
        self.path = path
        self.rel_url = _Target(query_text)
        self.transport = connection.transport

    @property
    def keep_alive(self) -> bool:
        """Whether the client wants to send another request behind this one."""
        options = self.headers.get(hdrs.CONNECTION, "").lower().split(",")
        return "close" not in map(str.strip, options)


def is_of_the_door(request: object) -> bool:
    """Return whether the front door has read a request, and not aiohttp."""
    return isinstance(request, StreamRequest)


async def begin_to_ask(request: web.Request | None) -> None:
    """Wait for the turn of a stream that must ask Redis, or wait for anything else, before it can open.

    The front door lets a stream begin without a task, because most streams never wait. Each function that a stream
    runs through awaits this one before it awaits anything that may take time. What is no request of the front door
    passes at once. Raises Unavailable if the turn does not come in time.
    """
    if request is not None and is_of_the_door(request):
        if OPENING not in request:
            await asyncio.sleep(0)  # to the front door, which goes on in a task, with a place among those that ask
        await request[OPENING].__aenter__()


class StreamRoutes:
    """The routes of streams, whose requests are read without aiohttp if they are as usual."""

    def __init__(self, app: web.Application, routes: dict[str, web.UrlMappingMatchInfo]) -> None:
        """``routes`` are the routes of streams by their paths."""
        self._app = app
        self._routes = routes
        paths = "|".join(map(re.escape, sorted(routes)))
        self.begins = tuple(f"GET {path}{end}".encode() for path in routes for end in "? ")
        self._head = re.compile(rf"GET ({paths})(?:\?([!\"$-~]*+))? HTTP/1\.1\r\n{_FIELDS}")

    def read(self, connection: Connection, head: bytes) -> StreamRequest | None:
        """Return the request of a whole head, or None if aiohttp must read it: it is unusual or invalid."""
        if len(head) > MAX_USUAL_HEAD_BYTES or not head.isascii():
            return None
        found = self._head.fullmatch(head.decode())
        if found is None:
            return None
        fields = [(name, value.strip("\t ")) for name, value in _FIELD.findall(found[3])]
        names = {name.lower() for name, _ in fields}
        is_usual = len(names) == len(fields) <= MAX_USUAL_FIELDS and "host" in names
        if not is_usual or not UNUSUAL_FIELDS.isdisjoint(names):
            return None
        route, headers = self._routes[found[1]], CIMultiDict(fields)
        return StreamRequest(connection, self._app, route, found[1], found[2] or "", headers)


def connection_of(request: web.Request) -> Connection:
    """Return the connection of a request, which aiohttp or the connection itself has read."""
    connection: Connection | None = getattr(request, "connection", None)
    return connection or request.protocol.connection  # type: ignore[attr-defined]  # our Handler has it


def encode_answer(response: web.StreamResponse, *, keep_alive: bool) -> bytes:
    """Return an answer as aiohttp would send it. Its body is in memory."""
    body = response.body if isinstance(response, web.Response) else None
    text = body if isinstance(body, bytes) else b""
    headers = response.headers
    headers[hdrs.CONTENT_LENGTH] = str(len(text))
    headers.setdefault(hdrs.DATE, date_header())
    if not keep_alive:
        headers[hdrs.CONNECTION] = "close"
    lines = [f"HTTP/1.1 {response.status} {response.reason}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + text
