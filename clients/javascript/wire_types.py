"""Write the TypeScript types of the wire from the server's own structs.

`.venv/bin/python clients/javascript/wire_types.py` writes the second half of `types.d.ts` beside the console's
`client.js`, whose JSDoc names the types. The test suite fails if it is out of date. Types that were written by hand
could differ from what the server sends, and nobody would see it.
"""

import inspect
import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import msgspec

from filters.registry import Registry
from stream_server.wire import counts, messages, objects, subscriptions
from stream_server.wire.errors import ErrorDetail

TYPES = Path(__file__).parents[2] / "stream_server" / "console" / "types.d.ts"

MARK = "// From here on made by clients/javascript/wire_types.py: change nothing below.\n"
"""The line of `types.d.ts` below which its text is made."""

MEMBER_TYPES = {
    "Gap.to": "string",
    "Ids.deleted": "true",
    "Uncommented.status": "Status | Ids",
}
"""Types of members for which the struct of the Python client allows another server more, or names less."""

PARAMETER_TYPES = {"firehose": 'true | "true"', "partition": "string", "rules": '"saved"', "sample": "number | string"}
"""Types of the filters whose value is not a text or a list of texts."""

SIMPLE_TYPES = {
    **{name: name for name in ("string", "number", "boolean", "null")},
    "integer": "number",
    "object": "Record<string, unknown>",
}
"""Types by the `type` of a JSON schema."""

Json = dict[str, Any]


def types(present: str) -> str:
    """Return the new text of `types.d.ts`. What stands above the mark in its ``present`` text stays."""
    own, mark, _ = present.partition(MARK)
    if not mark:
        raise ValueError(f"{TYPES.name} has no line {MARK.strip()!r}")
    kinds: dict[type[messages.Event], list[str]] = {}
    for kind, struct in messages.EVENT_TYPES.items():
        kinds.setdefault(struct, []).append(kind)
    found = {**vars(objects), **vars(counts), **vars(messages), **vars(subscriptions)}.values()
    structs = [one for one in found if isinstance(one, type) and issubclass(one, objects.Answer)]
    answers: list[type[objects.Answer]] = [*structs, ErrorDetail]
    answers.remove(objects.Answer)
    answers.remove(objects.Session)  # the client makes one of its own of it
    _, schemas = msgspec.json.schema_components([*answers, *kinds], ref_template="{name}")
    parts = [_answer(one, schemas, answers) for one in answers]
    parts += [_message(one, names, schemas[one.__name__]) for one, names in kinds.items()]
    controls = [one.__name__ for one in kinds if issubclass(one, messages.Control)]
    events = [one.__name__ for one in kinds if one.__name__ not in controls]
    parts.append(_union("What happened. `kind` tells which it is.", "StreamEvent", events))
    answers_to_operations = ("OperationRefused", "TokenAccepted")
    parts.append(_union("A message about the stream itself.", "Control", [*controls, *answers_to_operations]))
    return own + mark + "\n" + "\n".join([*parts, _filters()])


def _union(meaning: str, name: str, members: Iterable[str]) -> str:
    lines = "".join(f"\n  | {member}" for member in members)
    return f"/** {meaning} */\nexport type {name} ={lines};\n"


def _answer(kind: type[objects.Answer], schemas: dict[str, Json], answers: Collection[type]) -> str:
    """Return the interface of an object of the API."""
    members = schemas[kind.__name__]["properties"]
    (base,) = kind.__bases__
    if base in answers:
        inherited = schemas[base.__name__]["properties"]
        members = {name: one for name, one in members.items() if name not in inherited}
    meaning = " ".join((inspect.getdoc(kind) or "").split())
    body = _members(kind, members, kind.left_out, kind.null_too)
    return _interface(meaning, kind.__name__, base.__name__ if base in answers else "", body)


def _message(kind: type[messages.Event], names: list[str], schema: Json) -> str:
    """Return the interface of the messages of one or several kinds. With alternatives it is a type, a union of them."""
    common = {field.encode_name for field in msgspec.structs.fields(messages.Event)}
    members = {name: one for name, one in schema["properties"].items() if name not in common}
    literals = " | ".join(json.dumps(name) for name in names)
    forms = {name: _type(members.pop(name)["anyOf"][0]) for name in kind.alternatives}  # the other one is null
    body = f"  kind: {literals};\n" + _members(kind, members, kind.left_out)
    meaning = (inspect.getdoc(kind) or "").partition(".")[0] + "."
    if not forms:
        return _interface(meaning, kind.__name__, "Placed", body)
    union = ""
    for name, shown in forms.items():
        others = "".join(f"; {other}?: undefined" for other in forms if other != name)
        union += f"\n  | {{ {name}: {shown}{others} }}"
    return f"/** {meaning} */\nexport type {kind.__name__} = Placed & {{\n{body}}} & ({union}\n);\n"


def _interface(meaning: str, name: str, base: str, body: str) -> str:
    head = f"/** {meaning.replace('``', '`')} */\nexport interface {name}"
    return f"{head}{' extends ' * bool(base)}{base} {{\n{body}}}\n"


def _members(kind: type, members: Json, left_out: Collection[str], null_too: Collection[str] = ()) -> str:
    """Return the lines of members. One that is ``left_out`` is never null, except for those in ``null_too``."""
    lines = ""
    for name, schema in members.items():
        options = schema.get("anyOf", [schema])
        about = next((one["description"] for one in (schema, *options) if "description" in one), "")
        lines += f"  /** {about} */\n" if about else ""
        is_left_out = name in left_out
        never_null = is_left_out and name not in null_too
        found = dict.fromkeys(_type(one) for one in options if not (never_null and one == {"type": "null"}))
        shown = MEMBER_TYPES.get(f"{kind.__name__}.{name}") or " | ".join(found)
        lines += f"  {name}{'?' * is_left_out}: {shown};\n"
    return lines


def _type(schema: Json) -> str:
    """Return the TypeScript type of a JSON schema as msgspec writes it. Raises ValueError for another one."""
    match schema:
        case {"$ref": name}:
            return str(name)
        case {"enum": values}:
            return " | ".join(map(json.dumps, values))
        case {"prefixItems": items}:
            return f"[{', '.join(map(_type, items))}]"
        case {"type": "array", "items": items}:
            return f"Array<{_type(items)}>"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"Record<string, {_type(values)}>"
        case {"type": str(name)} if name in SIMPLE_TYPES:
            return SIMPLE_TYPES[name]
    raise ValueError(f"no type is known for {schema}")


def _filters() -> str:
    """Return the interface of the filters of this repository, without those of installed plug-ins."""
    lines = ""
    for one in Registry.from_entry_points().all():
        if one.__module__.partition(".")[0] == "filters":
            shown = PARAMETER_TYPES.get(one.name, "string | readonly string[]")
            lines += f"  /** {one.help} */\n  {one.name}?: {shown};\n"
    return _interface("The parameters that select events.", "Filters", "", lines)


if __name__ == "__main__":
    TYPES.write_text(types(TYPES.read_text(encoding="utf-8")), encoding="utf-8")
