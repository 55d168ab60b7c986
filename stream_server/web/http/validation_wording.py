"""What msgspec's refusals leave out, in words: which values there are, and what a pattern is for."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

_PATH_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")

Json = dict[str, Any]


def describe_violation(text: str, struct_type: type, path: str) -> str:
    """What msgspec says, ``text``, about the member at ``path`` of a ``struct_type``, said by what the member is described as.

    A regular expression tells a person nothing, and a value that is none of a few has to hear which they are. Nothing
    of what was sent is repeated. A sentence that helps already stays as it is.
    """
    for schema in _schemas_at(struct_type, path):
        if "enum" in schema and text.startswith("Invalid enum value"):
            return f"one of {', '.join(str(value) for value in schema['enum'])}"
        if "description" in schema and "pattern" in schema and "matching regex" in text:
            return f"not as it must be: {schema['description']}"
    return text.replace("`", "")


def _schemas_at(struct_type: type, path: str) -> list[Json]:
    """The schemas of which the member at ``path``, such as ``media[0].type``, has to fit one."""
    whole = _json_schema(struct_type)
    found = list(_resolve_alternatives(whole, whole))
    for step in _PATH_STEP.finditer(path):
        inside = [_member_schema(schema, step[1]) for schema in found]
        found = [one for schema in inside if schema for one in _resolve_alternatives(schema, whole)]
    return found


def _member_schema(schema: Json, member: str | None) -> Json | None:
    """The schema of a member, or of the items where none is named."""
    found = schema.get("items") if member is None else schema.get("properties", {}).get(member)
    return found if isinstance(found, dict) else None


def _resolve_alternatives(schema: Json, root_schema: Json) -> Iterator[Json]:
    """``schema`` with its references followed, each alternative for itself."""
    if "$ref" in schema:
        yield from _resolve_alternatives(root_schema["$defs"][schema["$ref"].rpartition("/")[2]], root_schema)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _resolve_alternatives(one, root_schema)
    else:
        yield schema


@cache
def _json_schema(struct_type: type) -> Json:
    return msgspec.json.schema(struct_type)
