"""Describes one row of the URL table as an OpenAPI operation: parameters, body, answers, and every possible error.

The parameters of streams come from the installed filters: the handlers parse them, so no msgspec struct has them.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeAlias

import msgspec

from filters.registry import Registry
from stream_server.store.social.subscriptions import NAME_PATTERN
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.fields import Id, Login
from stream_server.web.http.validation import IDEMPOTENCY_KEY_HEADER
from stream_server.web.openapi.messages import (
    MESSAGE,
    MESSAGE_STRUCTS,
    SCHEMA_REF,
    STREAM_ITEMS,
    Json,
    Version,
    items_content,
    message_schema,
    reference,
    union_schemas,
    with_alternatives,
)
from stream_server.web.route import ANY_TOKEN, JSON_MEDIA_TYPE, NO_TOKEN, PATH_PARAMETER, Route
from stream_server.web.streaming.long_poll import LIMIT_BOUNDS, WAIT_SECONDS_BOUNDS
from stream_server.web.streaming.parameters import FORM_MEDIA_TYPE, LAST_EVENT_ID_PARAMETER
from stream_server.web.streaming.stream_plan import LAST_EVENT_ID_HEADER
from stream_server.web.streaming.subscription_parser import MAX_SUMMARY_SECONDS
from stream_server.web.webhooks.requests import REQUEST_STRUCTS
from stream_server.wire.errors import STATUS_BY_CODE, ErrorResponse
from stream_server.wire.messages import Event
from stream_server.wire.objects import Answer

Shape: TypeAlias = type[Answer] | type[Event]
"""A struct of the wire, which names the members that the server may leave out."""

TEXT_SCHEMA: Json = {"type": "string"}
SINCE_PARAMETER = {
    "since": ("a cursor (exclusive), an ISO 8601 time, or an age such as `-15m` (inclusive)", TEXT_SCHEMA)
}
STREAM_PARAMETERS = {
    "explain": (
        "if true, the member `matched` of each message says why it matched",
        {"type": "boolean", "default": False},
    ),
    **SINCE_PARAMETER,
    "summary": (
        "seconds: the stream sends one message `count` for each period of this length, in the place of its events",
        {"type": "integer", "minimum": 1, "maximum": MAX_SUMMARY_SECONDS},
    ),
    "subscription": (
        "the name of a subscription, instead of all filters and `since`: the stream begins behind its cursor",
        {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
    ),
    "worker": (
        "of a shared subscription: a name by which this reader is the same over its connections; a poll must have one",
        {"type": "string", "pattern": f"^{NAME_PATTERN}$"},
    ),
}
"""Description and schema of the parameters common to all filter streams, by name."""


def _number_schema(json_type: str, bounds: tuple[int, int, int]) -> Json:
    default, minimum, maximum = bounds
    return {"type": json_type, "minimum": minimum, "maximum": maximum, "default": default}


POLL_PARAMETERS = {
    "cursor": ("another name of `since`", TEXT_SCHEMA),
    "connection": ("beside `cursor`, of a shared subscription: `connection` of the answer that had it", TEXT_SCHEMA),
    "before": ("the newest events before this cursor, ISO 8601 time or age, without waiting", TEXT_SCHEMA),
    "wait": ("seconds until an empty answer", _number_schema("number", WAIT_SECONDS_BOUNDS)),
    "limit": ("maximum number of events", _number_schema("integer", LIMIT_BOUNDS)),
}
"""Description and schema of the parameters that only long polling has, by name."""


def _describe_stream_parameters(row: Route) -> list[Json]:
    """Return OpenAPI objects for a stream's query parameters and `Last-Event-ID` header, all of them optional.

    The query parameter ``lastEventId`` is only named: in generated code it would be a second argument of one name.
    """
    header = (
        "a cursor; takes precedence over `since`, because an EventSource repeats its URL. Polyfills of EventSource "
        f"append it to the URL as `{LAST_EVENT_ID_PARAMETER}`"
    )
    members = [(name, "query", *described) for name, described in _stream_parameters(row).items()]
    members.append((LAST_EVENT_ID_HEADER, "header", header, TEXT_SCHEMA))
    return [
        {"name": name, "in": place, "required": False, "description": about, "schema": schema}
        for name, place, about, schema in members
    ]


def _describe_stream_body(row: Route) -> Json:
    """Return OpenAPI's object for a stream's body: the parameters as a form, or as JSON, where values may be arrays."""
    members = {name: {"description": about} for name, (about, _) in _stream_parameters(row).items()}
    form = {name: {**member, "type": "string"} for name, member in members.items()}
    single = ["string", "number", "boolean", "null"]
    json = {name: {**member, "type": [*single, "array"], "items": {"type": single}} for name, member in members.items()}
    content = {
        media_type: {"schema": {"type": "object", "properties": properties, "additionalProperties": False}}
        for media_type, properties in ((FORM_MEDIA_TYPE, form), (JSON_MEDIA_TYPE, json))
    }
    return {"requestBody": {"required": False, "content": content}}


def _stream_parameters(row: Route) -> dict[str, tuple[str, Json]]:
    """Return the parameters of a stream's route by name, each with its description and its JSON schema."""
    if row.path.endswith("/user"):
        return {"kinds": ("kinds of events, comma-separated; all if absent", TEXT_SCHEMA), **SINCE_PARAMETER}
    return {**_filter_parameters(), **STREAM_PARAMETERS, **(POLL_PARAMETERS if row.response is not None else {})}


@cache
def _filter_parameters() -> dict[str, tuple[str, Json]]:
    """Return the parameters of the installed filters. The first call loads the filters, then the result is cached."""
    return {each.name: (each.help, TEXT_SCHEMA) for each in Registry.from_entry_points().all()}


_METHOD_AND_PATH = re.compile(r"(``[^`]*``( and )?)+: ")


def operation_summary(row: Route) -> str:
    """Return a route's summary: its own, else its handler's first docstring line, without method and path."""
    if row.summary:
        return row.summary
    first = (row.handler.__doc__ or "").strip().partition("\n")[0]
    summary = _METHOD_AND_PATH.sub("", first, count=1).replace("``", "`")
    return summary[:1].upper() + summary[1:]


def operation_tag(row: Route) -> str:
    """Return the OpenAPI tag of a route: the noun of its name, else the name of its handler's module."""
    return row.name.partition(".")[0] or row.handler.__module__.rpartition(".")[2]


def component_schemas(rows: tuple[Route, ...]) -> dict[str, Json]:
    """Return the JSON schemas of the structs of ``rows``, of the messages of streams, and of the requests of webhooks.

    They have the names of their classes.
    """
    named = {kind for row in rows for kind in (row.query, row.body, row.response, ErrorResponse, *row.lines)}
    named |= {*MESSAGE_STRUCTS, *REQUEST_STRUCTS}
    kinds = [kind for kind in named if kind is not None]
    in_order = sorted(kinds, key=lambda kind: kind.__name__)
    _, components = msgspec.json.schema_components(in_order, ref_template=SCHEMA_REF)
    for struct in MESSAGE_STRUCTS:
        components[struct.__name__] = message_schema(struct, components[struct.__name__])
    structs: tuple[Shape, ...] = (*_answers(Answer), *MESSAGE_STRUCTS)
    shapes = {struct.__name__: struct for struct in structs}
    strict = {
        name: portable_schema(_strict(schema, shapes[name]) if name in shapes else schema)
        for name, schema in components.items()
    }
    for struct in MESSAGE_STRUCTS:
        strict[struct.__name__] = with_alternatives(strict[struct.__name__], struct)
    return {**strict, **union_schemas()}


def _answers(base: type[Answer]) -> Iterator[type[Answer]]:
    """Yield the shapes of answers. A subclass that refuses unknown members is the shape of a body."""
    for kind in base.__subclasses__():
        if not kind.__struct_config__.forbid_unknown_fields:
            yield kind
        yield from _answers(kind)


def _strict(schema: Json, kind: Shape) -> Json:
    """Return the schema of an answer or a message with all members required that the server always sends.

    Those are all but the members in ``left_out``.
    """
    members = {name: dict(member) for name, member in schema["properties"].items()}
    for name, member in members.items():
        member.pop("default", None)
        if name in kind.left_out - kind.null_too and "anyOf" in member:
            present = [option for option in member.pop("anyOf") if option != {"type": "null"}]
            member.update(present[0] if len(present) == 1 else {"anyOf": present})
    return {**schema, "properties": members, "required": [name for name in members if name not in kind.left_out]}


def portable_schema(schema: Any) -> Any:
    r"""Return a schema of msgspec in a form that all languages can use, with descriptions in Markdown.

    Removes the look-ahead `(?!\n)`, which only Python's `$` needs, and `"items": false` beside `maxItems`, which some
    client generators cannot read. An object without named members may have any: some generators take it for empty.
    """
    if isinstance(schema, dict):
        bounded = "prefixItems" in schema and schema.get("maxItems") == len(schema["prefixItems"])
        kept = {name: part for name, part in schema.items() if not (bounded and (name, part) == ("items", False))}
        is_free = schema.get("type") == "object" and not {"properties", "additionalProperties"} & schema.keys()
        more = {"additionalProperties": True} if is_free else {}
        return {name: portable_schema(part) for name, part in kept.items()} | more
    if isinstance(schema, list):
        return [portable_schema(part) for part in schema]
    return schema.replace(r"(?!\n)", "").replace("``", "`") if isinstance(schema, str) else schema


def build_operation(row: Route, operation_id: str, components: dict[str, Json], version: Version) -> Json:
    """Build the OpenAPI operation of a route. ``components`` has the schemas of all structs by class name."""
    query = {} if row.query is None else components[row.query.__name__]
    operation: Json = {"operationId": operation_id, "summary": operation_summary(row), "tags": [operation_tag(row)]}
    if row.scope not in {NO_TOKEN, ANY_TOKEN}:
        readers = " It may be a reader token." if row.is_for_readers else ""
        operation["description"] = f"The token needs the scope `{row.scope}`.{readers}"
    operation["security"] = _security_requirements(row)
    required = query.get("required", ())
    parameters = [
        *(_path_parameter(name, allows_me=name == row.me_parameter) for name in PATH_PARAMETER.findall(row.path)),
        *(
            _query_parameter(name, schema, required=name in required)
            for name, schema in query.get("properties", {}).items()
        ),
        *_special_parameters(row),
    ]
    if parameters:
        operation["parameters"] = parameters
    operation |= _request_body(row, version)
    successes = {str(status): _success_response(row, status, version) for status in (row.status, *row.other_statuses)}
    if row.websocket is not None:
        successes["101"] = {"description": "With `Upgrade: websocket`: the messages as text frames, and operations."}
    errors = {str(status): {"$ref": f"#/components/responses/{status}"} for status in error_statuses(row, components)}
    return {**operation, "responses": {**successes, **errors}}


def _security_requirements(row: Route) -> list[Json]:
    """Return how a client can authenticate for a route: not at all, with a token, or with a token or a ticket."""
    if row.scope == NO_TOKEN:
        return []
    bearer = {"bearer": [] if row.scope == ANY_TOKEN else [row.scope]}
    return [bearer, {TICKET_PARAMETER: []}] if row.accepts_ticket else [bearer]


def error_statuses(row: Route, components: dict[str, Json]) -> list[int]:
    """Return each error status that the route can answer, in ascending order."""
    query = {} if row.query is None else components[row.query.__name__].get("properties", {})
    has_list = any(schema.get("type") == "array" for schema in query.values())
    statuses = {400, 500, *row.extra_error_statuses}
    if row.scope != NO_TOKEN:
        statuses |= {401, 403, 503}
    if row.path.startswith("/v1/"):
        statuses.add(503)
    if row.rate_limits:
        statuses.add(429)
    if PATH_PARAMETER.search(row.path) or _references_objects(row, query, components):
        statuses.add(404)
    if row.accepts_idempotency_key:
        statuses.add(409)
    if row.body is not None or has_list or row.query is None:
        statuses.add(413)
    if row.body is not None or (row.query is None and row.method == "POST"):
        statuses.add(415)
    if row.is_streaming and row.response is None:
        statuses.add(406)
    if row.websocket is not None:
        statuses.add(426)
    return sorted(statuses)


def error_responses() -> dict[str, Json]:
    """Return the OpenAPI response for each error status. Its description lists the error codes with that status."""
    codes: dict[int, list[str]] = {}
    for code, status in STATUS_BY_CODE.items():
        codes.setdefault(status, []).append(f"`{code}`")
    content = _json_content(ErrorResponse)
    responses: dict[str, Json] = {
        str(status): {"description": f"Refused: {', '.join(named)}.", "content": content}
        for status, named in codes.items()
    }
    responses["401"]["headers"] = {"WWW-Authenticate": _header_object("the challenge of RFC 6750")}
    for later in ("429", "503"):
        seconds = _header_object("seconds", {"type": "integer", "minimum": 1})
        responses[later]["headers"] = {"Retry-After": seconds}
    return responses


def _references_objects(row: Route, query_properties: Json, components: dict[str, Json]) -> bool:
    """Return whether the body or query has an object id. If that object does not exist, the route answers 404."""
    pattern = portable_schema(msgspec.json.schema(Id))["pattern"]
    body = {} if row.body is None else components[row.body.__name__]
    singles = [schema for schema in query_properties.values() if schema.get("type") != "array"]
    return any(part.get("pattern") == pattern for part in _nested_objects([body, *singles]))


def _nested_objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nested_objects(inner)


def _path_parameter(name: str, *, allows_me: bool) -> Json:
    """Return the OpenAPI object of a path parameter: a text, a login, or an id. ``allows_me`` also allows `me`."""
    schema: Json = {"type": "string", "minLength": 1}
    if allows_me:
        schema = {"type": "string", "pattern": "^([0-9]{1,20}|me)$", "description": "a decimal number, or `me`"}
    elif name not in {"path", "tag"}:
        schema = portable_schema(msgspec.json.schema(Login if name == "login" else Id))
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query_parameter(name: str, schema: Json, *, required: bool) -> Json:
    """Return the OpenAPI object of a query parameter. Its schema has no `null`, because a query cannot send null."""
    if "anyOf" in schema:
        (schema,) = [option for option in schema["anyOf"] if option != {"type": "null"}]
    schema = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    parameter: Json = {"name": name, "in": "query", "required": required, "schema": schema}
    if "description" in schema:
        parameter["description"] = schema.pop("description")
    if schema.get("type") == "array":
        parameter |= {"style": "form", "explode": False}
    return parameter


def _special_parameters(row: Route) -> list[Json]:
    """Return the OpenAPI parameters that no query struct describes: those of streams, and the Idempotency-Key."""
    if row.query is None:
        return _describe_stream_parameters(row)
    if not row.accepts_idempotency_key:
        return []
    schema = {"type": "string", "pattern": r"^[A-Za-z0-9_\-.:]{1,64}$"}
    about = "a write repeated with the same key within 24 hours takes effect only once"
    return [{"name": IDEMPOTENCY_KEY_HEADER, "in": "header", "required": False, "description": about, "schema": schema}]


def _request_body(row: Route, version: Version) -> Json:
    if row.body is not None:
        return {"requestBody": {"required": True, "content": _json_content(row.body)}}
    if row.lines:
        line = {"oneOf": [reference(kind.__name__) for kind in row.lines]}
        about = "One JSON object a line. The schema is that of a line."
        content = items_content({row.media_type: line}, version)
        return {"requestBody": {"required": True, "description": about, "content": content}}
    return _describe_stream_body(row) if row.query is None and row.method == "POST" else {}


def _success_response(row: Route, status: int, version: Version) -> Json:
    """Return the OpenAPI response for a success. The first docstring line of the answer's class describes it."""
    messages = f"The messages, each a `{MESSAGE}`, for as long as the connection lasts."
    response: Json = {"description": messages if row.is_streaming else "Done."}
    if row.response is not None:
        response["description"] = (row.response.__doc__ or "").partition("\n")[0].replace("``", "`")
        response["content"] = (
            items_content({row.media_type: reference(row.response.__name__)}, version)
            if row.lines
            else _json_content(row.response)
        )
        if status == 201 and "id" in row.response.__struct_fields__:
            response["headers"] = {"Location": _header_object("the path of the new object")}
    elif row.is_streaming:
        response["content"] = items_content({media: reference(name) for media, name in STREAM_ITEMS.items()}, version)
    elif row.media_type != JSON_MEDIA_TYPE:
        response["content"] = {row.media_type: {"schema": {"type": "string"}}}
    return response


def _json_content(struct_type: type[msgspec.Struct]) -> Json:
    return {JSON_MEDIA_TYPE: {"schema": reference(struct_type.__name__)}}


def _header_object(description: str, schema: Json | None = None) -> Json:
    return {"description": description, "required": True, "schema": schema or {"type": "string"}}
