"""Builds the OpenAPI 3.1 document of all routes from the URL table."""

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
    "A real-time streaming API: clients write over HTTP, and every stream with matching filters receives the event. "
    "The server refuses unknown parameters and members, and names them. Answers may gain members."
)
"""The text that introduces the API."""


def build_document(rows: tuple[Route, ...]) -> Json:
    """Build the document of ``rows``, without the routes of dialects.

    A route's tag is the name of its handler's module.
    """
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
        "description": "a single-use ticket from `POST /v1/streams/ticket`",
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
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "responses": error_responses(),
            "securitySchemes": {"bearer": bearer, TICKET_PARAMETER: ticket},
        },
    }


@cache
def encoded_document(rows: tuple[Route, ...]) -> bytes:
    """Return the document of ``rows`` as JSON. Cached, because the table does not change."""
    return msgspec.json.encode(build_document(rows))


def _operation_ids(rows: tuple[Route, ...]) -> dict[Route, str]:
    """Return each row's operationId, such as ``statuses_create``.

    If rows share a handler, the method makes it unique.
    """
    plain = {row: f"{operation_tag(row)}_{row.handler.__name__}" for row in rows}
    uses = Counter(plain.values())
    return {row: f"{name}_{row.method.lower()}" if uses[name] > 1 else name for row, name in plain.items()}


def _tag_descriptions(rows: tuple[Route, ...]) -> list[dict[str, Any]]:
    """Return the tags with the first line of their module's docstring."""
    modules = {operation_tag(row): getmodule(row.handler) for row in rows}
    return [
        {"name": name, "description": portable_schema((module.__doc__ or "").partition("\n")[0]) if module else ""}
        for name, module in modules.items()
    ]
