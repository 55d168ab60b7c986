"""Reads a JSON body as one of the API's structs. If the body is invalid, names the invalid member and the reason.

It also reads the `Idempotency-Key`, which makes a repeated write take effect once.

msgspec checks the body. This module turns msgspec's message into an API error that names the member and says in words
of JSON what the member must be: "`password` must have at least 8 characters". Messages never repeat what the client
sent.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec

from filters.suggestion import did_you_mean
from stream_server.errors import ApiError, BadRequest, TooLarge
from stream_server.store.idempotency import SERVER_TTL_MS, IdempotencyKey
from stream_server.web.http.app_keys import CLAIMS, WAIVED
from stream_server.web.http.body import MAX_BODY_BYTES, normalise_json, read_json_body
from stream_server.web.route import Request

BodyType = TypeVar("BodyType", bound=msgspec.Struct)

Json = dict[str, Any]

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"

_KEY_PATTERN = re.compile(r"[A-Za-z0-9_\-.:]{1,64}")


_TYPE_NAMES = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
    "array": "an array",
    "object": "an object",
}
_json_schema = cache(msgspec.json.schema)
_BOUND_NAMES = {">=": "at least ", "<=": "at most ", None: ""}


async def read_body_as(body_type: type[BodyType], request: Request) -> BodyType:
    """Return the request's JSON body as a ``body_type``. Raises ApiError for an invalid body."""
    return decode_body(body_type, await read_json_body(request, MAX_BODY_BYTES))


def read_idempotency_key(request: Request, body: bytes = b"") -> IdempotencyKey:
    """Return the key of the `Idempotency-Key` header, or a new random key if the request has no such header.

    A client's key belongs to one request: Redis refuses the key if the same user sends it with another method, URL or
    body. Raises BadRequest if the header is invalid.

    Redis keeps it for a minute only if the user has used up a limit of bytes. Else the writes that these limits do not
    refuse would fill Redis with keys.
    """
    key = request.headers.get(IDEMPOTENCY_KEY_HEADER)
    if key is None:
        return IdempotencyKey.generate()
    if not _KEY_PATTERN.fullmatch(key):
        raise BadRequest("1 to 64 letters, digits or _-.:", param=IDEMPOTENCY_KEY_HEADER)
    target = f"{request.method} {request.rel_url.raw_path_qs}\n".encode("utf-8", "surrogateescape")
    found = IdempotencyKey.from_client(request[CLAIMS].sub, key, target + body)
    return found._replace(ttl_ms=SERVER_TTL_MS) if WAIVED in request else found


async def read_keyed_body(body_type: type[BodyType], request: Request) -> tuple[BodyType, IdempotencyKey]:
    """Return the request's body as a ``body_type``, and its idempotency key. Raises ApiError if either is invalid."""
    body = await read_json_body(request, MAX_BODY_BYTES)
    return decode_body(body_type, body), read_idempotency_key(request, body)


def decode_body(body_type: type[BodyType], body: bytes) -> BodyType:
    """Decode ``body`` as a ``body_type``. Raises BadRequest if invalid, TooLarge if an array has too many items."""
    body = normalise_json(body)
    try:
        return msgspec.json.decode(body, type=body_type)
    except msgspec.ValidationError as error:
        raise to_api_error(str(error), body_type) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadRequest("the body is not JSON in UTF-8", code="malformed_body") from None


def to_api_error(text: str, struct_type: type) -> ApiError:
    """Turn ``text``, msgspec's message about an invalid ``struct_type``, into an API error that names the member."""
    located = re.match(r"(?P<text>.*) - at `\$\.?(?P<path>[^`]*)`\Z", text, re.DOTALL)
    text, path = (located["text"], located["path"]) if located else (text, "")
    if unknown := re.match(r"Object contains unknown field `(.*)`\Z", text, re.DOTALL):
        known = [name for schema in _schemas_at(struct_type, path) for name in schema.get("properties", ())]
        message = f"unknown member{did_you_mean(unknown[1], known)}"
        return BadRequest(message, code="unknown_parameter", param=_join_path(path, unknown[1]))
    if missing := re.match(r"Object missing required field `(.*)`\Z", text, re.DOTALL):
        return BadRequest("this member is required", code="missing_parameter", param=_join_path(path, missing[1]))
    if named := re.match(r"`(\w+)` (must .*)\Z", text, re.DOTALL):
        param = _join_path(path, named[1])
        return BadRequest(f"`{param}` {named[2]}", param=param)
    if not path:
        return BadRequest("the body must be a JSON object", code="malformed_body")
    message = f"`{path}` {_describe_violation(text, struct_type, path)}"
    if text.startswith("Expected `array` of length <="):
        return TooLarge(message, code="too_many", param=path)
    return BadRequest(message, param=path)


def _join_path(path: str, member: str) -> str:
    """Return the path of ``member`` below ``path``, such as ``location.lat``. A name is cut to 64 characters."""
    return f"{path}.{member[:64]}" if path else member[:64]


def _describe_violation(text: str, struct_type: type, path: str) -> str:
    """Return what the member at ``path`` must be, in words such as "must be a string, not null"."""
    if wrong := re.match(r"Expected `([^`]*)`, got `([^`]*)`", text):
        return f"must be {_name_types(wrong[1])}, not {_name_types(wrong[2])}"
    if length := re.match(r"Expected `(str|array|object)` of length (?:(>=|<=) )?(\d+)", text):
        unit = "character" if length[1] == "str" else "item"
        return f"must have {_BOUND_NAMES[length[2]]}{length[3]} {unit}{'' if length[3] == '1' else 's'}"
    if bound := re.match(r"Expected `(?:int|float)` (>=|<=) (-?\d+)", text):
        return f"must be {_BOUND_NAMES[bound[1]]}{bound[2]}"
    schemas = _schemas_at(struct_type, path)
    for schema in schemas:
        if "enum" in schema and text.startswith("Invalid enum value"):
            one_of = "one of " if len(schema["enum"]) > 1 else ""
            values = one_of + ", ".join(str(value) for value in schema["enum"])
            others = (other["type"] for other in schemas if "enum" not in other and other.get("type") != "null")
            return f"must be {' or '.join([values, *map(_name_types, others)])}"
        if "description" in schema and "pattern" in schema and "matching regex" in text:
            return f"must be {schema['description']}"
    return "is invalid"


def _name_types(types: str) -> str:
    return " or ".join(_TYPE_NAMES.get(name, name) for name in types.split(" | "))


def _schemas_at(struct_type: type, path: str) -> list[Json]:
    """Return the JSON schemas that the body type allows for the member at ``path``, for example ``media[0].type``."""
    root_schema = _json_schema(struct_type)
    schemas = list(_resolve_alternatives(root_schema, root_schema))
    for step in re.finditer(r"([^.\[\]]+)|\[([^\]]*)\]", path):
        members = [
            schema.get("items") if step[1] is None else schema.get("properties", {}).get(step[1]) for schema in schemas
        ]
        schemas = [
            found for member in members if isinstance(member, dict)
            for found in _resolve_alternatives(member, root_schema)
        ]  # fmt: skip
    return schemas


def _resolve_alternatives(schema: Json, root_schema: Json) -> Iterator[Json]:
    """Yield the alternatives (``anyOf``) of a JSON schema, each with its ``$ref`` resolved."""
    if "$ref" in schema:
        yield from _resolve_alternatives(root_schema["$defs"][schema["$ref"].rpartition("/")[2]], root_schema)
    elif "anyOf" in schema:
        for alternative in schema["anyOf"]:
            yield from _resolve_alternatives(alternative, root_schema)
    else:
        yield schema
