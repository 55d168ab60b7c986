"""Describes the parameters of streams for OpenAPI. The stream handlers parse them, so no msgspec struct has them."""

from functools import cache
from typing import Any

from filters.registry import Registry
from stream_server.web.route import JSON_MEDIA_TYPE, Route
from stream_server.web.streaming.long_poll import LIMIT_BOUNDS, WAIT_SECONDS_BOUNDS
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE, LAST_EVENT_ID_PARAMETER
from stream_server.web.streaming.stream_plan import LAST_EVENT_ID_HEADER

Json = dict[str, Any]
TEXT_SCHEMA: Json = {"type": "string"}
_SINCE = "a cursor (exclusive), an ISO 8601 time, or an age such as `-15m` (inclusive)"
SINCE_PARAMETER = {"since": (_SINCE, TEXT_SCHEMA)}
_EXPLAIN = "if true, the member `matched` of each message says why it matched"
STREAM_PARAMETERS = {"explain": (_EXPLAIN, {"type": "boolean", "default": False}), **SINCE_PARAMETER}
"""Description and schema of the parameters common to all filter streams, by name."""


def _number_schema(json_type: str, bounds: tuple[int, int, int]) -> Json:
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
    """Return OpenAPI objects for a stream's query parameters and `Last-Event-ID` header, all of them optional."""
    header = "a cursor; takes precedence over `since`, because an EventSource repeats its URL"
    appended = "the same in the URL, as polyfills of EventSource append it; the header takes precedence"
    members = [(name, "query", *described) for name, described in _parameters_of(row).items()]
    members.append((LAST_EVENT_ID_PARAMETER, "query", appended, TEXT_SCHEMA))
    members.append((LAST_EVENT_ID_HEADER, "header", header, TEXT_SCHEMA))
    return [
        {"name": name, "in": place, "required": False, "description": about, "schema": schema}
        for name, place, about, schema in members
    ]


def describe_request_body(row: Route) -> Json:
    """Return OpenAPI's object for a stream's body: the parameters as a form, or as JSON, where values may be arrays."""
    members = {name: {"description": about} for name, (about, _) in _parameters_of(row).items()}
    form = {name: {**member, "type": "string"} for name, member in members.items()}
    single = ["string", "number", "boolean", "null"]
    json = {name: {**member, "type": [*single, "array"], "items": {"type": single}} for name, member in members.items()}
    content = {
        media_type: {"schema": {"type": "object", "properties": properties, "additionalProperties": False}}
        for media_type, properties in ((FORM_MEDIA_TYPE, form), (JSON_MEDIA_TYPE, json))
    }
    return {"requestBody": {"required": False, "content": content}}


def _parameters_of(row: Route) -> dict[str, tuple[str, Json]]:
    """Return the parameters of a stream's route by name, each with its description and its JSON schema."""
    if row.path.endswith("/user"):
        return {**USER_STREAM_PARAMETERS, **SINCE_PARAMETER}
    return {**_filter_parameters(), **STREAM_PARAMETERS, **(POLL_PARAMETERS if row.response is not None else {})}


@cache
def _filter_parameters() -> dict[str, tuple[str, Json]]:
    """Return the parameters of the installed filters. The first call loads the filters, then the result is cached."""
    return {each.name: (each.help, TEXT_SCHEMA) for each in Registry.from_entry_points().all()}
