"""What a stream is asked, for its description: the parameters of the installed filters, and those of every stream.

Its handler reads them by itself, from the query or from a body, so that no shape of ours has them.
"""

from functools import cache
from typing import Any

from filters.registry import Registry
from stream_server.web.parameters import FORM
from stream_server.web.route import JSON, Route
from stream_server.web.subscription import LAST_EVENT_ID

Json = dict[str, Any]

TEXT: Json = {"type": "string"}

SINCE = {"since": ("a cursor (exclusive), an ISO 8601 time, or an age such as `-15m` (inclusive)", TEXT)}

ALL = {
    "explain": ("whether `matched` says why each message matched", {"type": "boolean", "default": False}),
    **SINCE,
}

POLLING = {
    "cursor": ("another name of `since`", TEXT),
    "wait": ("seconds until an empty answer", {"type": "number", "minimum": 0, "maximum": 60, "default": 25}),
    "limit": ("how many events at most", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}),
}

OWN = {"kinds": ("kinds of events, comma-joined; all if absent", TEXT)}
"""Instead of filters: what goes to one's own stream is decided by whom one follows."""


def parameters(row: Route) -> list[Json]:
    """The query of a stream, none of which is needed in it where there may be a body; and where to go on."""
    query = [
        {"name": name, "in": "query", "required": False, "description": told, "schema": schema}
        for name, (told, schema) in _asked(row).items()
    ]
    told = "a cursor; wins over `since`, since an EventSource repeats its URL"
    return [*query, {"name": LAST_EVENT_ID, "in": "header", "required": False, "description": told, "schema": TEXT}]


def body(row: Route) -> Json:
    """The same parameters in a form or as JSON, where lists may be lists."""
    members = {name: {"description": told} for name, (told, _) in _asked(row).items()}
    form = {name: {**one, "type": "string"} for name, one in members.items()}
    single = ["string", "number", "boolean", "null"]
    free = {name: {**one, "type": [*single, "array"], "items": {"type": single}} for name, one in members.items()}
    content = {
        FORM: {"schema": {"type": "object", "properties": form, "additionalProperties": False}},
        JSON: {"schema": {"type": "object", "properties": free, "additionalProperties": False}},
    }
    return {"requestBody": {"required": False, "content": content}}


def _asked(row: Route) -> dict[str, tuple[str, Json]]:
    asked = {**OWN, **SINCE} if row.path.endswith("/user") else {**_filters(), **ALL}
    return {**asked, **(POLLING if row.answer is not None else {})}


@cache
def _filters() -> dict[str, tuple[str, Json]]:
    """Every installed filter; none is imported before somebody asks."""
    return {one.name: (one.help, TEXT) for one in Registry.from_entry_points().all()}
