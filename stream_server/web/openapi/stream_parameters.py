"""Describes the parameters of streams for OpenAPI: those of the installed filters, and those common to all streams.

The handlers of streams read their parameters themselves, from the query or a body, so no msgspec struct describes them.
"""

from functools import cache
from typing import Any

from filters.registry import Registry
from stream_server.web.route import JSON_MEDIA_TYPE, Route
from stream_server.web.streaming.long_poll import LIMIT_BOUNDS, WAIT_SECONDS_BOUNDS
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE
from stream_server.web.streaming.stream_plan import LAST_EVENT_ID_HEADER

Json = dict[str, Any]
"""A JSON object."""

TEXT_SCHEMA: Json = {"type": "string"}
"""The schema of a parameter whose value is any text."""

SINCE_PARAMETER = {
    "since": ("a cursor (exclusive), an ISO 8601 time, or an age such as `-15m` (inclusive)", TEXT_SCHEMA)
}
"""Description and schema of ``since``."""

STREAM_PARAMETERS = {
    "explain": (
        "if true, the member `matched` of each message says why it matched",
        {"type": "boolean", "default": False},
    ),
    **SINCE_PARAMETER,
}
"""Description and schema of the parameters common to all filter streams, by name."""


def _number_schema(json_type: str, bounds: tuple[int, int, int]) -> Json:
    """Return the schema of a number with default, minimum and maximum."""
    default, minimum, maximum = bounds
    return {"type": json_type, "minimum": minimum, "maximum": maximum, "default": default}


POLL_PARAMETERS = {
    "cursor": ("another name of `since`", TEXT_SCHEMA),
    "wait": ("seconds until an empty answer", _number_schema("number", WAIT_SECONDS_BOUNDS)),
    "limit": ("maximum number of events", _number_schema("integer", LIMIT_BOUNDS)),
}
"""Description and schema of the parameters that only long polling has, by name."""

USER_STREAM_PARAMETERS = {"kinds": ("kinds of events, comma-separated; all if absent", TEXT_SCHEMA)}
"""Parameters of the user stream instead of filters: whom the caller follows decides what it delivers."""


def describe_parameters(row: Route) -> list[Json]:
    """Return the query parameters and the `Last-Event-ID` header of a stream.

    All are optional, because a body may hold them.
    """
    query = [
        {"name": name, "in": "query", "required": False, "description": about, "schema": schema}
        for name, (about, schema) in _parameters_of(row).items()
    ]
    about = "a cursor; takes precedence over `since`, because an EventSource repeats its URL"
    return [
        *query,
        {"name": LAST_EVENT_ID_HEADER, "in": "header", "required": False, "description": about, "schema": TEXT_SCHEMA},
    ]


def describe_request_body(row: Route) -> Json:
    """Return the request body of a stream: the same parameters as a form or as JSON, where a list may be an array."""
    members = {name: {"description": about} for name, (about, _) in _parameters_of(row).items()}
    form = {name: {**member, "type": "string"} for name, member in members.items()}
    single = ["string", "number", "boolean", "null"]
    json = {name: {**member, "type": [*single, "array"], "items": {"type": single}} for name, member in members.items()}
    content = {
        FORM_MEDIA_TYPE: {"schema": {"type": "object", "properties": form, "additionalProperties": False}},
        JSON_MEDIA_TYPE: {"schema": {"type": "object", "properties": json, "additionalProperties": False}},
    }
    return {"requestBody": {"required": False, "content": content}}


def _parameters_of(row: Route) -> dict[str, tuple[str, Json]]:
    """Return description and schema of each parameter that a row accepts, by name."""
    common = (
        {**USER_STREAM_PARAMETERS, **SINCE_PARAMETER}
        if row.path.endswith("/user")
        else {**_filter_parameters(), **STREAM_PARAMETERS}
    )
    return {**common, **(POLL_PARAMETERS if row.response is not None else {})}


@cache
def _filter_parameters() -> dict[str, tuple[str, Json]]:
    """Return the parameters of the installed filters. Cached, and loaded only when a client first needs them."""
    return {each.name: (each.help, TEXT_SCHEMA) for each in Registry.from_entry_points().all()}
