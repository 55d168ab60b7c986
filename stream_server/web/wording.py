"""What msgspec's refusals leave out, in words: which values there are, and what a pattern is for."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")

Json = dict[str, Any]


def plain(text: str, kind: type, path: str) -> str:
    """What msgspec says, ``text``, about the member at ``path`` of a ``kind``, said by what the member is described as.

    A regular expression tells a person nothing, and a value that is none of a few has to hear which they are. Nothing
    of what was sent is repeated. A sentence that helps already stays as it is.
    """
    for schema in _at(kind, path):
        if "enum" in schema and text.startswith("Invalid enum value"):
            return f"one of {', '.join(str(value) for value in schema['enum'])}"
        if "description" in schema and "pattern" in schema and "matching regex" in text:
            return f"not as it must be: {schema['description']}"
    return text.replace("`", "")


def _at(kind: type, path: str) -> list[Json]:
    """The schemas of which the member at ``path``, such as ``media[0].type``, has to fit one."""
    whole = _schema(kind)
    found = list(_choices(whole, whole))
    for step in _STEP.finditer(path):
        inside = [_inside(schema, step[1]) for schema in found]
        found = [one for schema in inside if schema for one in _choices(schema, whole)]
    return found


def _inside(schema: Json, member: str | None) -> Json | None:
    """The schema of a member, or of the items where none is named."""
    found = schema.get("items") if member is None else schema.get("properties", {}).get(member)
    return found if isinstance(found, dict) else None


def _choices(schema: Json, whole: Json) -> Iterator[Json]:
    """``schema`` with its references followed, each alternative for itself."""
    if "$ref" in schema:
        yield from _choices(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
    elif "anyOf" in schema:
        for one in schema["anyOf"]:
            yield from _choices(one, whole)
    else:
        yield schema


@cache
def _schema(kind: type) -> Json:
    return msgspec.json.schema(kind)
