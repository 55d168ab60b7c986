"""An ordinary request that a connection has read by itself: a head as usual, and the whole body.

aiohttp makes a reader, a writer and a parser's message for each request, which cost as much as a short answer. It gets
what is unusual: another version, `Expect`, a body in chunks or one that has not come with its head, an unknown path.
"""

import re
from collections.abc import Mapping

from aiohttp import web

from stream_server.web.http.body import MAX_BODY_BYTES
from stream_server.web.http.connection import Connection
from stream_server.web.http.stream_request import FIELDS, MAX_USUAL_HEAD_BYTES, StreamRequest, read_fields
from stream_server.web.route import Route

UNUSUAL_FIELDS = frozenset({"content-encoding", "expect", "te", "trailer", "transfer-encoding", "upgrade"})
"""Header fields of a request that aiohttp handles."""

_NUMBER = re.compile(r"(?<=/)[0-9]{1,20}(?![^/])")
_PARAMETER = re.compile(r"\{(\w+)\}")
_LENGTH = re.compile(r"[0-9]{1,6}")


class ApiRoutes:
    """The routes that are no streams, whose requests are read without aiohttp if they are as usual."""

    def __init__(self, app: web.Application, routes: Mapping[web.AbstractRoute, Route]) -> None:
        """``routes`` are all rows of the URL table."""
        self._app = app
        self._rows: dict[str, tuple[Route, tuple[str, ...]]] = {}
        for found, row in routes.items():
            if not row.is_streaming and not row.lines and found.method == row.method:
                names = tuple(_PARAMETER.findall(row.path))
                self._rows[f"{row.method} {_PARAMETER.sub('{}', row.path)}"] = row, names
        line = r"((?:GET|POST|PUT|PATCH|DELETE) (/[0-9A-Za-z/_.-]*+))(?:\?([!\"$-~]*+))? HTTP/1\.1\r\n"
        self._head = re.compile(line + FIELDS)

    def read(self, connection: Connection, head: bytes) -> StreamRequest | None:
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
        fields = read_fields(found[4], UNUSUAL_FIELDS)
        if fields is None:
            return None
        length = fields.get("content-length", "0")
        if _LENGTH.fullmatch(length) is None or int(length) > min(MAX_BODY_BYTES, len(connection.held)):
            return None
        size, held = int(length), connection.held
        body = bytes(held[:size])
        del held[:size]
        return StreamRequest(connection, self._app, known[0], path, found[3] or "", fields, parameters, body)
