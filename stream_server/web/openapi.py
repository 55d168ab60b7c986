"""The URL table as OpenAPI 3.1 (``/openapi.json``), so that what is written about a route cannot differ from it."""

from collections import Counter
from functools import cache
from inspect import getmodule
from typing import Any

import msgspec
from aiohttp import web

from stream_server import __version__
from stream_server.web.answers import json_answer
from stream_server.web.keys import ROUTES
from stream_server.web.operations import Json, operation, portable, responses, shapes, tag
from stream_server.web.parameters import TICKET
from stream_server.web.route import Route

ABOUT = (
    "A real-time streaming API: write over HTTP, and every client whose filters match hears of it. "
    "Unknown parameters and members are refused, by name; answers may gain members."
)


async def document(request: web.Request) -> web.Response:
    """``GET /openapi.json``: this description of all routes but the dialects'."""
    return json_answer(_encoded(tuple(dict.fromkeys(request.app[ROUTES].values()))))


def described(rows: tuple[Route, ...]) -> Json:
    """The document of these rows but the dialects'. A row's noun, its tag, is the file that its handler stands in."""
    rows = tuple(row for row in rows if row.dialect is None)
    _, components = shapes(rows)
    names = _names(rows)
    paths: dict[str, Json] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = operation(row, names[row], components)
    queries = {row.query.__name__ for row in rows if row.query is not None}
    bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    ticket = {"type": "apiKey", "in": "query", "name": TICKET, "description": "of `POST /v1/streams/ticket`, used once"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "stream-server", "version": __version__, "description": ABOUT, "license": {"name": "MIT"}},
        "servers": [{"url": "/"}],
        "tags": _tags(rows),
        "paths": paths,
        "components": {
            "schemas": {name: one for name, one in components.items() if name not in queries},
            "responses": responses(),
            "securitySchemes": {"bearer": bearer, TICKET: ticket},
        },
    }


@cache
def _encoded(rows: tuple[Route, ...]) -> bytes:
    return msgspec.json.encode(described(rows))


def _names(rows: tuple[Route, ...]) -> dict[Route, str]:
    """Each row's operationId, ``statuses_post``; a handler of two rows tells them apart by their method."""
    plain = {row: f"{tag(row)}_{row.handler.__name__}" for row in rows}
    often = Counter(plain.values())
    return {row: f"{name}_{row.method.lower()}" if often[name] > 1 else name for row, name in plain.items()}


def _tags(rows: tuple[Route, ...]) -> list[dict[str, Any]]:
    modules = {tag(row): getmodule(row.handler) for row in rows}
    return [
        {"name": name, "description": portable((module.__doc__ or "").partition("\n")[0]) if module else ""}
        for name, module in modules.items()
    ]
