"""What a stream is asked, for its description: the parameters of the installed filters, and those of every stream.

Its handler reads them by itself, from the query or from a body, so that no shape of ours has them.
"""

from functools import cache
from typing import Any

from filters.registry import Registry
from stream_server.web.route import JSON_MEDIA_TYPE, Route
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE
from stream_server.web.streaming.stream_plan import LAST_EVENT_ID_HEADER

Json = dict[str, Any]

TEXT_SCHEMA: Json = {"type": "string"}

SINCE_PARAMETER = {
    "since": ("a cursor (exclusive), an ISO 8601 time, or an age such as `-15m` (inclusive)", TEXT_SCHEMA)
}

STREAM_PARAMETERS = {
    "explain": ("whether `matched` says why each message matched", {"type": "boolean", "default": False}),
    **SINCE_PARAMETER,
}

POLL_PARAMETERS = {
    "cursor": ("another name of `since`", TEXT_SCHEMA),
    "wait": ("seconds until an empty answer", {"type": "number", "minimum": 0, "maximum": 60, "default": 25}),
    "limit": ("how many events at most", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
}

USER_STREAM_PARAMETERS = {"kinds": ("kinds of events, comma-joined; all if absent", TEXT_SCHEMA)}
"""Instead of filters: what goes to one's own stream is decided by whom one follows."""


def describe_parameters(row: Route) -> list[Json]:
    """The query of a stream, none of which is needed in it where there may be a body; and where to go on."""
    query = [
        {"name": name, "in": "query", "required": False, "description": told, "schema": schema}
        for name, (told, schema) in _parameters_of(row).items()
    ]
    told = "a cursor; wins over `since`, since an EventSource repeats its URL"
    return [
        *query,
        {"name": LAST_EVENT_ID_HEADER, "in": "header", "required": False, "description": told, "schema": TEXT_SCHEMA},
    ]


def describe_request_body(row: Route) -> Json:
    """The same parameters in a form or as JSON, where lists may be lists."""
    members = {name: {"description": told} for name, (told, _) in _parameters_of(row).items()}
    form = {name: {**one, "type": "string"} for name, one in members.items()}
    single = ["string", "number", "boolean", "null"]
    free = {name: {**one, "type": [*single, "array"], "items": {"type": single}} for name, one in members.items()}
    content = {
        FORM_MEDIA_TYPE: {"schema": {"type": "object", "properties": form, "additionalProperties": False}},
        JSON_MEDIA_TYPE: {"schema": {"type": "object", "properties": free, "additionalProperties": False}},
    }
    return {"requestBody": {"required": False, "content": content}}


def _parameters_of(row: Route) -> dict[str, tuple[str, Json]]:
    asked = (
        {**USER_STREAM_PARAMETERS, **SINCE_PARAMETER}
        if row.path.endswith("/user")
        else {**_filter_parameters(), **STREAM_PARAMETERS}
    )
    return {**asked, **(POLL_PARAMETERS if row.response is not None else {})}


@cache
def _filter_parameters() -> dict[str, tuple[str, Json]]:
    """Every installed filter; none is imported before somebody asks."""
    return {one.name: (one.help, TEXT_SCHEMA) for one in Registry.from_entry_points().all()}
