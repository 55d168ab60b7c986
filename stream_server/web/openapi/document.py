"""The URL table as OpenAPI 3.1 (``/openapi.json``), so that what is written about a route cannot differ from it."""

from collections import Counter
from functools import cache
from inspect import getmodule
from typing import Any

import msgspec

from stream_server import __version__
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.openapi.operation import (
    Json,
    build_operation,
    component_schemas,
    error_responses,
    operation_tag,
    portable_schema,
)
from stream_server.web.route import Route

API_DESCRIPTION = (
    "A real-time streaming API: write over HTTP, and every client whose filters match hears of it. "
    "Unknown parameters and members are refused, by name; answers may gain members."
)


def build_document(rows: tuple[Route, ...]) -> Json:
    """The document of these rows but the dialects'. A row's noun, its tag, is the file that its handler stands in."""
    rows = tuple(row for row in rows if row.dialect is None)
    _, components = component_schemas(rows)
    names = _operation_ids(rows)
    paths: dict[str, Json] = {}
    for row in rows:
        paths.setdefault(row.path, {})[row.method.lower()] = build_operation(row, names[row], components)
    queries = {row.query.__name__ for row in rows if row.query is not None}
    bearer = {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}
    ticket = {
        "type": "apiKey",
        "in": "query",
        "name": TICKET_PARAMETER,
        "description": "of `POST /v1/streams/ticket`, used once",
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "stream-server",
            "version": __version__,
            "description": API_DESCRIPTION,
            "license": {"name": "MIT"},
        },
        "servers": [{"url": "/"}],
        "tags": _tag_descriptions(rows),
        "paths": paths,
        "components": {
            "schemas": {name: one for name, one in components.items() if name not in queries},
            "responses": error_responses(),
            "securitySchemes": {"bearer": bearer, TICKET_PARAMETER: ticket},
        },
    }


@cache
def encoded_document(rows: tuple[Route, ...]) -> bytes:
    return msgspec.json.encode(build_document(rows))


def _operation_ids(rows: tuple[Route, ...]) -> dict[Route, str]:
    """Each row's operationId, ``statuses_post``; a handler of two rows tells them apart by their method."""
    plain = {row: f"{operation_tag(row)}_{row.handler.__name__}" for row in rows}
    often = Counter(plain.values())
    return {row: f"{name}_{row.method.lower()}" if often[name] > 1 else name for row, name in plain.items()}


def _tag_descriptions(rows: tuple[Route, ...]) -> list[dict[str, Any]]:
    modules = {operation_tag(row): getmodule(row.handler) for row in rows}
    return [
        {"name": name, "description": portable_schema((module.__doc__ or "").partition("\n")[0]) if module else ""}
        for name, module in modules.items()
    ]
