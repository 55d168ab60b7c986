"""A request that a connection has read by itself: a head as usual, and the whole body.

aiohttp makes a reader, a writer and a parser's message for each request, which cost as much as a short answer. It gets
what is unusual: another version, `Expect`, a body in chunks or one that has not come with its head, an unknown path.
"""

import re
from collections.abc import Mapping
from typing import Any

from aiohttp import HttpVersion11, web
from multidict import CIMultiDict

from stream_server.web.http.app_keys import BODY, OPENING
from stream_server.web.http.body import MAX_BODY_BYTES, NAME_PATTERN
from stream_server.web.http.connection import Connection
from stream_server.web.http.responses import date_header
from stream_server.web.route import PATH_PARAMETER, AppValues, Request, Route, Target

MAX_USUAL_HEAD_BYTES = 16_384
"""Longest head that is read here. aiohttp reads longer ones, and refuses lines and fields that are too long."""

FIELDS = rf"((?:{NAME_PATTERN}:[\t !-~]*\r\n)*)\r\n"
"""The usual header fields, as one group, and the blank line behind them."""

_FIELD = re.compile(rf"({NAME_PATTERN}):([^\r]*)\r\n")

_UNUSUAL_OF_STREAM = frozenset({"transfer-encoding", "expect", "trailer", "te", "content-length"})
_UNUSUAL_OF_API = frozenset({"transfer-encoding", "expect", "trailer", "te", "content-encoding", "upgrade"})
"""Header fields of a request that aiohttp handles, because they announce a body or another answer before."""

_NUMBER = re.compile(r"(?<=/)[0-9]{1,20}(?![^/])")
_LENGTH = re.compile(r"[0-9]{1,6}")

NO_PARAMETERS: Mapping[str, str] = {}


class UsualRequest(dict[Any, Any]):
    """A request that the connection has read. It has those parts of aiohttp's request that checks and handlers use.

    It is the dict of the values that belong to the request, by their keys.

    Attributes:
        app: The values of the app that serves the request.
        body_exists: Whether the request has a body.
        connection: The connection of the request.
        headers: The header fields, by their names in any case. No name occurs twice.
        keep_alive: Whether the client wants to send another request behind this one.
        match_info: The parameters in the path.
        method: The method, in capitals.
        path: The path of the request.
        rel_url: The path and the query.
        route: The row of the URL table.
    """

    __slots__ = (
        "app", "body_exists", "connection", "headers", "keep_alive", "match_info", "method", "path", "rel_url", "route",
    )  # fmt: skip

    version = HttpVersion11
    can_read_body = False

    def __init__(
        self, connection: Connection, app: AppValues, route: Route, path: str, query_text: str,
        fields: dict[str, str], parameters: Mapping[str, str] = NO_PARAMETERS, body: bytes = b"",
    ) -> None:  # fmt: skip
        """``fields`` are the header fields, and ``parameters`` are those in the path. `BODY` has the ``body``."""
        self[BODY] = body
        self.body_exists = bool(body)
        self.app = app
        self.connection = connection
        self.headers = CIMultiDict(fields)
        options = fields.get("connection")
        self.keep_alive = options is None or "close" not in map(str.strip, options.lower().split(","))
        self.match_info = parameters
        self.method = route.method
        self.path = path
        self.rel_url = Target(path, query_text)
        self.route = route


async def hold_slot(request: Request | None) -> None:
    """Return when a request that opens a stream may wait for Redis or for anything else: see `Opening.hold_slot`.

    Every other request may wait at any time, also ``request`` None.
    """
    if request is not None and OPENING in request:
        await request[OPENING].hold_slot()


class StreamRoutes:
    """The routes of streams, whose requests are read without aiohttp if they are as usual."""

    def __init__(self, app: AppValues, routes: dict[str, Route]) -> None:
        """``routes`` are the rows of streams by their paths."""
        self._app = app
        self._routes = routes
        paths = "|".join(map(re.escape, sorted(routes)))
        self.begins = tuple(f"GET {path}{end}".encode() for path in routes for end in "? ")
        self._head = re.compile(rf"GET ({paths})(?:\?([!\"$-~]*))? HTTP/1\.1\r\n{FIELDS}")

    def read(self, connection: Connection, head: bytes) -> UsualRequest | None:
        """Return the request of a whole head, or None if aiohttp must read it: it is unusual or invalid."""
        if len(head) > MAX_USUAL_HEAD_BYTES or not head.isascii():
            return None
        found = self._head.fullmatch(head.decode())
        if found is None:
            return None
        fields = read_fields(found[3], _UNUSUAL_OF_STREAM)
        if fields is None:
            return None
        return UsualRequest(connection, self._app, self._routes[found[1]], found[1], found[2] or "", fields)


class ApiRoutes:
    """The routes that are no streams, whose requests are read without aiohttp if they are as usual."""

    def __init__(self, app: AppValues, routes: Mapping[web.AbstractRoute, Route]) -> None:
        """``routes`` are all rows of the URL table."""
        self._app = app
        self._rows: dict[str, tuple[Route, tuple[str, ...]]] = {}
        for found, row in routes.items():
            if not row.is_streaming and not row.lines and found.method == row.method:
                names = tuple(PATH_PARAMETER.findall(row.path))
                self._rows[f"{row.method} {PATH_PARAMETER.sub('{}', row.path)}"] = row, names
        line = r"((?:GET|POST|PUT|PATCH|DELETE) (/[0-9A-Za-z/_.-]*))(?:\?([!\"$-~]*))? HTTP/1\.1\r\n"
        self._head = re.compile(line + FIELDS)

    def read(self, connection: Connection, head: bytes) -> UsualRequest | None:
        """Return the request of a whole head and take its body. None if aiohttp must read it: nothing is taken then."""
        found = self._head.fullmatch(head.decode("latin-1")) if len(head) <= MAX_USUAL_HEAD_BYTES else None
        if found is None:
            return None
        (line, path), parameters = found.group(1, 2), dict[str, str]()
        known = self._rows.get(line)
        if known is None:  # the usual parameters of paths are ids
            known = self._rows.get(_NUMBER.sub("{}", line))
            if known is None:
                return None
            parameters = dict(zip(known[1], _NUMBER.findall(path), strict=True))
        fields = read_fields(found[4], _UNUSUAL_OF_API)
        if fields is None:
            return None
        length = fields.get("content-length", "0")
        if _LENGTH.fullmatch(length) is None or int(length) > min(MAX_BODY_BYTES, len(connection.cycle.held)):
            return None
        size, held = int(length), connection.cycle.held
        body = bytes(held[:size])
        del held[:size]
        return UsualRequest(connection, self._app, known[0], path, found[3] or "", fields, parameters, body)


def read_fields(text: str, unusual: frozenset[str]) -> dict[str, str] | None:
    """Return the header fields in a text of the pattern `FIELDS`, by their names in lower case.

    None if aiohttp must read the head: it repeats a field, has one of the ``unusual`` ones, many, or no `Host`.
    """
    pairs = _FIELD.findall(text)
    fields = {name.lower(): value.strip("\t ") for name, value in pairs}
    is_usual = len(fields) == len(pairs) <= 64 and "host" in fields
    return fields if is_usual and unusual.isdisjoint(fields) else None


def encode_answer(response: web.StreamResponse, *, keep_alive: bool) -> bytes:
    """Return an answer as aiohttp would send it. Its body is in memory."""
    body = response.body if isinstance(response, web.Response) else None
    text = body if isinstance(body, bytes) else b""
    fields = "".join([f"{name}: {value}\r\n" for name, value in response.headers.items()])
    # Answers with these statuses have neither a body nor a length of one (RFC 9110 §8.6).
    length = "" if response.status in {204, 304} else f"Content-Length: {len(text)}\r\n"
    end = "" if keep_alive else "Connection: close\r\n"
    status = f"HTTP/1.1 {response.status} {response.reason}\r\n"
    return f"{status}{fields}{length}Date: {date_header()}\r\n{end}\r\n".encode() + text
