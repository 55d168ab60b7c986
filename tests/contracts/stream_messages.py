"""The messages of streams, and the requests of webhooks, against the OpenAPI document.

Its objects have here no other members than it names.
"""

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema_rs

from stream_server.web import routes
from stream_server.web.openapi import document

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@cache
def _document() -> Any:
    return document.build_document(routes.ROUTE_TABLE)


@cache
def _validator(name: str) -> Any:
    """Return what checks a value by a component of the document. A text with JSON in it stays a text."""
    schemas = copy.deepcopy(_document()["components"]["schemas"])
    for schema in schemas.values():
        if "properties" in schema:
            schema["unevaluatedProperties"] = False
    whole = {"$schema": DRAFT, "components": {"schemas": schemas}, "$ref": f"#/components/schemas/{name}"}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


def violations(name: str, value: object) -> list[str]:
    """Return what in ``value`` is not as the component ``name`` of the document says."""
    return [str(error) for error in _validator(name).iter_errors(value)]


def message_violations(message: dict[str, Any]) -> list[str]:
    """Return what in a message of a stream is not as the document says of its kind, and of any message."""
    schemas = _document()["components"]["schemas"]
    name = schemas["StreamMessage"]["discriminator"]["mapping"][message["kind"]].rpartition("/")[2]
    return [*violations(name, message), *violations("StreamMessage", message)]


def webhook_violations(body: dict[str, Any], headers: Mapping[str, str]) -> list[str]:
    """Return what in a request to an endpoint is not as the document says of its type, and of its headers."""
    operation = _document()["webhooks"]["subscription"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    found = violations(schema["discriminator"]["mapping"][body["type"]].rpartition("/")[2], body)
    for header in operation["parameters"]:
        text = jsonschema_rs.validator_for(header["schema"])
        found += [f"{header['name']}: {error}" for error in text.iter_errors(headers.get(header["name"]))]
    return found
