"""One row of the URL table as an operation of OpenAPI: what it takes, what it answers, every refusal that can occur.

Nothing is written here about a single route: what is true of one follows from its row.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from stream_server.errors import CODES
from stream_server.web import streamed
from stream_server.web.framing import NDJSON, SSE
from stream_server.web.idempotency import IDEMPOTENCY_KEY
from stream_server.web.parameters import TICKET
from stream_server.web.route import ANY, JSON, OPEN, Route
from stream_server.web.schema import Id, Login
from stream_server.web.shapes.errors import Refusal

Json = dict[str, Any]

REF = "#/components/schemas/{name}"

_PATH_NAME = re.compile(r"\{(\w+)\}")
_PROMISE = re.compile(r"(``[^`]*``( and )?)+: ")
_NOT_A_LINE_END = r"(?!\n)"


def summary(row: Route) -> str:
    """The first line of the handler's docstring, without the method and path with which it begins."""
    first = (row.handler.__doc__ or "").strip().partition("\n")[0]
    told = _PROMISE.sub("", first, count=1).replace("``", "`")
    return told[:1].upper() + told[1:]


def tag(row: Route) -> str:
    """The noun: a route belongs to the file of its handler."""
    return row.handler.__module__.rpartition(".")[2]


def keyed(row: Route) -> bool:
    """Whether an Idempotency-Key means something: a write of a user, whom the key belongs to."""
    return row.method != "GET" and row.writes and row.needs not in {OPEN, ANY} and not row.streams


def shapes(rows: tuple[Route, ...]) -> tuple[dict[type, Json], dict[str, Json]]:
    """The JSON schemas of all that the rows ask and answer: by class what stands for it, by name the components."""
    kinds = {kind: None for row in rows for kind in (row.query, row.body, row.answer, Refusal) if kind is not None}
    in_order = sorted(kinds, key=lambda kind: kind.__name__)
    found, components = msgspec.json.schema_components(in_order, ref_template=REF)
    return dict(zip(in_order, found, strict=True)), {name: portable(one) for name, one in components.items()}


def portable(schema: Any) -> Any:
    """A schema for others than Python, whose `$` matches before a last line feed as well; in Markdown.

    A pair says by `maxItems` how long it is. That nothing comes after it, `"items": false`, says the same again, and
    generators of clients that know no schema but objects give up at it.
    """
    if isinstance(schema, dict):
        bounded = "prefixItems" in schema and schema.get("maxItems") == len(schema["prefixItems"])
        told = {name: one for name, one in schema.items() if not (bounded and (name, one) == ("items", False))}
        return {name: portable(one) for name, one in told.items()}
    if isinstance(schema, list):
        return [portable(one) for one in schema]
    return schema.replace(_NOT_A_LINE_END, "").replace("``", "`") if isinstance(schema, str) else schema


def operation(row: Route, name: str, components: dict[str, Json]) -> Json:
    """The operation of a row; ``components`` are all shapes by name, from which a query is spread out."""
    asked = {} if row.query is None else components[row.query.__name__]
    made: Json = {"operationId": name, "summary": summary(row), "tags": [tag(row)]}
    if row.needs not in {OPEN, ANY}:
        made["description"] = f"The token needs the scope `{row.needs}`."
    made["security"] = _security(row)
    parameters = [*_path(row), *_query(asked), *_headers(row)]
    if parameters:
        made["parameters"] = parameters
    made |= _body(row)
    refused = {str(status): {"$ref": f"#/components/responses/{status}"} for status in refusals(row, components)}
    made["responses"] = {**{str(status): _answer(row, status) for status in (row.status, *row.also)}, **refused}
    return made


def _security(row: Route) -> list[Json]:
    """Each of these alone will do."""
    if row.needs == OPEN:
        return []
    bearer = {"bearer": [] if row.needs == ANY else [row.needs]}
    return [bearer, {TICKET: []}] if row.ticket else [bearer]


def refusals(row: Route, components: dict[str, Json]) -> list[int]:
    """Every status with which a row can refuse, in order."""
    asked = {} if row.query is None else components[row.query.__name__].get("properties", {})
    lists = any(one.get("type") == "array" for one in asked.values())
    found = {400, 500, *row.refuses}
    if row.needs != OPEN:
        found |= {401, 403, 503}
    if row.path.startswith("/v1/"):
        found.add(503)
    if _PATH_NAME.search(row.path) or _names_others(row, asked, components):
        found.add(404)
    if keyed(row):
        found.add(409)
    if row.body is not None or lists or row.query is None:
        found.add(413)
    if row.body is not None or (row.query is None and row.method == "POST"):
        found.add(415)
    if row.streams and row.answer is None:
        found.add(406)
    return sorted(found)


def responses() -> dict[str, Json]:
    """The refusals by status: one shape for all, with the codes that each can have."""
    codes: dict[int, list[str]] = {}
    for code, status in CODES.items():
        codes.setdefault(status, []).append(f"`{code}`")
    return {str(status): _refusal(status, ", ".join(named)) for status, named in codes.items()}


def _refusal(status: int, codes: str) -> Json:
    made: Json = {"description": f"Refused: {codes}.", "content": _json({"$ref": REF.format(name=Refusal.__name__)})}
    if status == 401:
        made["headers"] = {"WWW-Authenticate": _header("the challenge of RFC 6750")}
    if status in {429, 503}:
        made["headers"] = {"Retry-After": _header("seconds", {"type": "integer", "minimum": 1})}
    return made


def _names_others(row: Route, asked: Json, components: dict[str, Json]) -> bool:
    """Whether a body or a query names something that may not be there; a list of ids leaves that out instead."""
    pattern = _id()["pattern"]
    body = {} if row.body is None else components[row.body.__name__]
    singles = [one for one in asked.values() if one.get("type") != "array"]
    return any(one.get("pattern") == pattern for one in _within([body, *singles]))


def _within(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _within(inner)


def _path(row: Route) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _path_schema(name, or_me=name == row.me)}
        for name in _PATH_NAME.findall(row.path)
    ]


def _path_schema(name: str, *, or_me: bool) -> Json:
    """By its name in the path; what is neither a login nor a tag is an id."""
    if name == "tag":
        return {"type": "string", "minLength": 1}
    if or_me:
        return {"type": "string", "pattern": "^([0-9]{1,20}|me)$", "description": "a decimal number, or `me`"}
    return _login() if name == "login" else _id()


def _id() -> Json:
    schema: Json = portable(msgspec.json.schema(Id))
    return schema


def _login() -> Json:
    schema: Json = portable(msgspec.json.schema(Login))
    return schema


def _query(asked: Json) -> list[Json]:
    needed = asked.get("required", ())
    return [_parameter(name, one, needed=name in needed) for name, one in asked.get("properties", {}).items()]


def _parameter(name: str, schema: Json, *, needed: bool) -> Json:
    """A parameter in the query; absent is absent there, and never null."""
    if "anyOf" in schema:
        (schema,) = [one for one in schema["anyOf"] if one != {"type": "null"}]
    schema = {name: value for name, value in schema.items() if (name, value) != ("default", None)}
    made: Json = {"name": name, "in": "query", "required": needed, "schema": schema}
    if "description" in schema:
        made["description"] = schema.pop("description")
    if schema.get("type") == "array":
        made |= {"style": "form", "explode": False}
    return made


def _headers(row: Route) -> list[Json]:
    if row.query is None:
        return streamed.parameters(row)
    if not keyed(row):
        return []
    schema = {"type": "string", "pattern": r"^[A-Za-z0-9_\-.:]{1,64}$"}
    told = "the same key makes the same write happen once within 24 hours"
    return [{"name": IDEMPOTENCY_KEY, "in": "header", "required": False, "description": told, "schema": schema}]


def _body(row: Route) -> Json:
    if row.body is not None:
        return {"requestBody": {"required": True, "content": _json({"$ref": REF.format(name=row.body.__name__)})}}
    return streamed.body(row) if row.query is None and row.method == "POST" else {}


def _answer(row: Route, status: int) -> Json:
    made: Json = {"description": _described(row)}
    if row.answer is not None:
        made["content"] = _json({"$ref": REF.format(name=row.answer.__name__)})
        if status == 201 and "id" in row.answer.__struct_fields__:
            made["headers"] = {"Location": _header("where it can be found")}
    elif row.streams:
        made["content"] = {media: {"schema": {"type": "string"}} for media in (SSE, NDJSON)}
    elif row.media != JSON:
        made["content"] = {row.media: {"schema": {"type": "string"}}}
    return made


def _described(row: Route) -> str:
    if row.answer is None:
        return "The messages, for as long as the connection lasts." if row.streams else "Done."
    return (row.answer.__doc__ or "").partition("\n")[0].replace("``", "`")


def _json(schema: Json) -> Json:
    return {JSON: {"schema": schema}}


def _header(told: str, schema: Json | None = None) -> Json:
    return {"description": told, "required": True, "schema": schema or {"type": "string"}}
