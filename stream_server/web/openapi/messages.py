"""Describes the messages of streams: a schema for each kind of them, and bodies that have one message behind another.

OpenAPI 3.2 describes each item of such a body as ``itemSchema``.
"""

import inspect
from typing import Any, Literal

from stream_server.web.streaming.framing import NDJSON, SSE
from stream_server.wire.messages import EVENT_TYPES, Control, Event, Uncommented

Json = dict[str, Any]

Version = Literal["3.2", "3.1"]
"""A version of OpenAPI in which the document can be had. Few generators of code know 3.2 yet."""

SCHEMA_REF = "#/components/schemas/{name}"

MESSAGE, SERVER_SENT_EVENT = "StreamMessage", "ServerSentEvent"
"""The schemas of any message of a stream, and of the event that carries it in a stream of server-sent events."""

STREAM_ITEMS = {SSE: SERVER_SENT_EVENT, NDJSON: MESSAGE}
"""The schema of an item of a stream by its media type."""

MESSAGE_STRUCTS = tuple(dict.fromkeys(EVENT_TYPES.values()))
"""The struct of each message, once. Some stand for several kinds."""

_NOT_ON_THE_WIRE = frozenset({"(raw)"})


def reference(name: str) -> Json:
    """Return the reference to a schema by its name."""
    return {"$ref": SCHEMA_REF.format(name=name)}


def kinds_of(struct: type[Event]) -> list[str]:
    """Return the kinds of messages that have the form of ``struct``."""
    return [kind for kind, each in EVENT_TYPES.items() if each is struct]


def message_schema(struct: type[Event], schema: Json) -> Json:
    """Return the schema of msgspec for a message with its kinds, its first sentence, and without what is not sent.

    The kinds make the choice between the messages exact: no message has the form of two.
    """
    unknown = _NOT_ON_THE_WIRE | ({"matched"} if issubclass(struct, Control) else set())
    members = {name: member for name, member in schema["properties"].items() if name not in unknown}
    members["kind"] = {"type": "string", "enum": kinds_of(struct)}
    if struct is Uncommented:
        members["status"] = {"anyOf": [reference("Status"), reference("Ids")]}  # ids for those who may not read it
    in_order = {name: members[name] for name in (*Event.__struct_encode_fields__, *members) if name in members}
    sentence = (inspect.getdoc(struct) or "").partition(".")[0] + "."
    return {**schema, "description": sentence, "properties": in_order}


def with_alternatives(schema: Json, struct: type[Event]) -> Json:
    """Return the schema of a message as a choice, if the message has one of several members.

    So generated code has a type for each form, and a compiler can tell which one a message has.
    """
    if not struct.alternatives:
        return schema
    members = dict(schema["properties"])
    forms = {name: members.pop(name) for name in struct.alternatives}
    choice = [{"type": "object", "properties": {name: form}, "required": [name]} for name, form in forms.items()]
    return {**schema, "properties": members, "oneOf": choice}


def union_schemas() -> dict[str, Json]:
    """Return the schemas of any message, and of the server-sent event that carries it."""
    named = {kind: SCHEMA_REF.format(name=struct.__name__) for kind, struct in EVENT_TYPES.items()}
    message: Json = {
        "title": MESSAGE,
        "description": "A message of a stream. A later version may send further kinds: ignore those.",
        "oneOf": [reference(struct.__name__) for struct in MESSAGE_STRUCTS],
        "discriminator": {"propertyName": "kind", "mapping": named},
    }
    event: Json = {
        "title": SERVER_SENT_EVENT,
        "description": "One event of a stream of server-sent events (WHATWG HTML).",
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "the cursor of the message"},
            "event": {"type": "string", "description": "the kind of the message", "enum": list(EVENT_TYPES)},
            "data": {
                "type": "string",
                "description": "the message on one line",
                "contentMediaType": "application/json",
                "contentSchema": reference(MESSAGE),
            },
            "retry": {"type": "integer", "description": "milliseconds to wait before the next connection"},
        },
        "required": ["id", "event", "data"],
    }
    return {MESSAGE: message, SERVER_SENT_EVENT: event}


def items_content(items: dict[str, Json], version: Version) -> Json:
    """Return the content of a body that has one item behind another, by media type: each with the schema of an item.

    OpenAPI 3.1 has only the schema of a whole body. By custom it stands for that of an item, where the media type is
    one of such bodies: so generated code has the types of the messages.
    """
    member = "schema" if version == "3.1" else "itemSchema"
    return {media_type: {member: item} for media_type, item in items.items()}
