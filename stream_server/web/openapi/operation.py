"""One row of the URL table as an operation of OpenAPI: what it takes, what it answers, every refusal that can occur.

Nothing is written here about a single route: what is true of one follows from its row.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from stream_server.errors import STATUS_BY_CODE
from stream_server.web.http.authentication import TICKET_PARAMETER
from stream_server.web.http.fields import Id, Login
from stream_server.web.http.idempotency import IDEMPOTENCY_KEY_HEADER
from stream_server.web.http.responses import ErrorResponse
from stream_server.web.openapi import stream_parameters
from stream_server.web.route import ANY_TOKEN, JSON_MEDIA_TYPE, NO_TOKEN, Route
from stream_server.web.streaming.framing import NDJSON, SSE

Json = dict[str, Any]

SCHEMA_REF = "#/components/schemas/{name}"

_PATH_PARAMETER = re.compile(r"\{(\w+)\}")
_METHOD_AND_PATH = re.compile(r"(``[^`]*``( and )?)+: ")
_NO_TRAILING_LINE_FEED = r"(?!\n)"


def operation_summary(row: Route) -> str:
    """The first line of the handler's docstring, without the method and path with which it begins."""
    first = (row.handler.__doc__ or "").strip().partition("\n")[0]
    told = _METHOD_AND_PATH.sub("", first, count=1).replace("``", "`")
    return told[:1].upper() + told[1:]


def operation_tag(row: Route) -> str:
    """The noun: a route belongs to the file of its handler."""
    return row.handler.__module__.rpartition(".")[2]


def accepts_idempotency_key(row: Route) -> bool:
    """Whether an Idempotency-Key means something: a write of a user, whom the key belongs to."""
    return row.method != "GET" and row.is_write and row.scope not in {NO_TOKEN, ANY_TOKEN} and not row.is_streaming


def component_schemas(rows: tuple[Route, ...]) -> tuple[dict[type, Json], dict[str, Json]]:
    """The JSON schemas of all that the rows ask and answer: by class what stands for it, by name the components."""
    kinds = {
        kind: None for row in rows for kind in (row.query, row.body, row.response, ErrorResponse) if kind is not None
    }
    in_order = sorted(kinds, key=lambda kind: kind.__name__)
    found, components = msgspec.json.schema_components(in_order, ref_template=SCHEMA_REF)
    return dict(zip(in_order, found, strict=True)), {name: portable_schema(one) for name, one in components.items()}


def portable_schema(schema: Any) -> Any:
    """A schema for others than Python, whose `$` matches before a last line feed as well; in Markdown.

    A pair says by `maxItems` how long it is. That nothing comes after it, `"items": false`, says the same again, and
    generators of clients that know no schema but objects give up at it.
    """
    if isinstance(schema, dict):
        bounded = "prefixItems" in schema and schema.get("maxItems") == len(schema["prefixItems"])
        told = {name: one for name, one in schema.items() if not (bounded and (name, one) == ("items", False))}
        return {name: portable_schema(one) for name, one in told.items()}
    if isinstance(schema, list):
        return [portable_schema(one) for one in schema]
    return schema.replace(_NO_TRAILING_LINE_FEED, "").replace("``", "`") if isinstance(schema, str) else schema


def build_operation(row: Route, operation_id: str, components: dict[str, Json]) -> Json:
    """The operation of a row; ``components`` are all shapes by name, from which a query is spread out."""
    asked = {} if row.query is None else components[row.query.__name__]
    made: Json = {"operationId": operation_id, "summary": operation_summary(row), "tags": [operation_tag(row)]}
    if row.scope not in {NO_TOKEN, ANY_TOKEN}:
        made["description"] = f"The token needs the scope `{row.scope}`."
    made["security"] = _security_requirements(row)
    parameters = [*_path_parameters(row), *_query_parameters(asked), *_special_parameters(row)]
    if parameters:
        made["parameters"] = parameters
    made |= _request_body(row)
    refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in error_statuses(row, components)}
    made["responses"] = {
        **{str(status): _success_response(row, status) for status in (row.status, *row.other_statuses)},
        **refused,
    }
    return made


def _security_requirements(row: Route) -> list[Json]:
    """Each of these alone will do."""
    if row.scope == NO_TOKEN:
        return []
    bearer = {"bearer": [] if row.scope == ANY_TOKEN else [row.scope]}
    return [bearer, {TICKET_PARAMETER: []}] if row.accepts_ticket else [bearer]


def error_statuses(row: Route, components: dict[str, Json]) -> list[int]:
    """Every status with which a row can refuse, in order."""
    asked = {} if row.query is None else components[row.query.__name__].get("properties", {})
    lists = any(one.get("type") == "array" for one in asked.values())
    found = {400, 500, *row.extra_error_statuses}
    if row.scope != NO_TOKEN:
        found |= {401, 403, 503}
    if row.path.startswith("/v1/"):
        found.add(503)
    if _PATH_PARAMETER.search(row.path) or _references_objects(row, asked, components):
        found.add(404)
    if accepts_idempotency_key(row):
        found.add(409)
    if row.body is not None or lists or row.query is None:
        found.add(413)
    if row.body is not None or (row.query is None and row.method == "POST"):
        found.add(415)
    if row.is_streaming and row.response is None:
        found.add(406)
    return sorted(found)


def error_responses() -> dict[str, Json]:
    """The refusals by status: one shape for all, with the codes that each can have."""
    codes: dict[int, list[str]] = {}
    for code, status in STATUS_BY_CODE.items():
        codes.setdefault(status, []).append(f"`{code}`")
    return {str(status): _error_response(status, ", ".join(named)) for status, named in codes.items()}


def _error_response(status: int, codes: str) -> Json:
    made: Json = {
        "description": f"Refused: {codes}.",
        "content": _json_content({"$ref": SCHEMA_REF.format(name=ErrorResponse.__name__)}),
    }
    if status == 401:
        made["headers"] = {"WWW-Authenticate": _header_object("the challenge of RFC 6750")}
    if status in {429, 503}:
        made["headers"] = {"Retry-After": _header_object("seconds", {"type": "integer", "minimum": 1})}
    return made


def _references_objects(row: Route, query_properties: Json, components: dict[str, Json]) -> bool:
    """Whether a body or a query names something that may not be there; a list of ids leaves that out instead."""
    pattern = _id_schema()["pattern"]
    body = {} if row.body is None else components[row.body.__name__]
    singles = [one for one in query_properties.values() if one.get("type") != "array"]
    return any(one.get("pattern") == pattern for one in _nested_objects([body, *singles]))


def _nested_objects(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _nested_objects(inner)


def _path_parameters(row: Route) -> list[Json]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _path_parameter_schema(name, allows_me=name == row.me_parameter),
        }
        for name in _PATH_PARAMETER.findall(row.path)
    ]


def _path_parameter_schema(name: str, *, allows_me: bool) -> Json:
    """By its name in the path; what is neither a login nor a tag is an id."""
    if name == "tag":
        return {"type": "string", "minLength": 1}
    if allows_me:
        return {"type": "string", "pattern": "^([0-9]{1,20}|me)$", "description": "a decimal number, or `me`"}
    return _login_schema() if name == "login" else _id_schema()


def _id_schema() -> Json:
    schema: Json = portable_schema(msgspec.json.schema(Id))
    return schema


def _login_schema() -> Json:
    schema: Json = portable_schema(msgspec.json.schema(Login))
    return schema


def _query_parameters(query_schema: Json) -> list[Json]:
    needed = query_schema.get("required", ())
    return [
        _query_parameter(name, one, required=name in needed) for name, one in query_schema.get("properties", {}).items()
    ]


def _query_parameter(name: str, schema: Json, *, required: bool) -> Json:
    """A parameter in the query; absent is absent there, and never null."""
    if "anyOf" in schema:
        (schema,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
    schema = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    made: Json = {"name": name, "in": "query", "required": required, "schema": schema}
    if "description" in schema:
        made["description"] = schema.pop("description")
    if schema.get("type") == "array":
        made |= {"style": "form", "explode": False}
    return made


def _special_parameters(row: Route) -> list[Json]:
    if row.query is None:
        return stream_parameters.describe_parameters(row)
    if not accepts_idempotency_key(row):
        return []
    schema = {"type": "string", "pattern": r"^[A-Za-z0-9_\-.:]{1,64}$"}
    told = "the same key makes the same write happen once within 24 hours"
    return [{"name": IDEMPOTENCY_KEY_HEADER, "in": "header", "required": False, "description": told, "schema": schema}]


def _request_body(row: Route) -> Json:
    if row.body is not None:
        return {
            "requestBody": {
                "required": True,
                "content": _json_content({"$ref": SCHEMA_REF.format(name=row.body.__name__)}),
            }
        }
    return stream_parameters.describe_request_body(row) if row.query is None and row.method == "POST" else {}


def _success_response(row: Route, status: int) -> Json:
    made: Json = {"description": _success_description(row)}
    if row.response is not None:
        made["content"] = _json_content({"$ref": SCHEMA_REF.format(name=row.response.__name__)})
        if status == 201 and "id" in row.response.__struct_fields__:
            made["headers"] = {"Location": _header_object("where it can be found")}
    elif row.is_streaming:
        made["content"] = {media: {"schema": {"type": "string"}} for media in (SSE, NDJSON)}
    elif row.media_type != JSON_MEDIA_TYPE:
        made["content"] = {row.media_type: {"schema": {"type": "string"}}}
    return made


def _success_description(row: Route) -> str:
    if row.response is None:
        return "The messages, for as long as the connection lasts." if row.is_streaming else "Done."
    return (row.response.__doc__ or "").partition("\n")[0].replace("``", "`")


def _json_content(schema: Json) -> Json:
    return {JSON_MEDIA_TYPE: {"schema": schema}}


def _header_object(description: str, schema: Json | None = None) -> Json:
    return {"description": description, "required": True, "schema": schema or {"type": "string"}}
