"""JSON in the reply of a script, in a hash, or in an entry of the log, which Python passes on as it is."""

import msgspec

from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import WriteReply

_encode = msgspec.json.encode


class _WireMembers(msgspec.Struct):
    wire: dict[str, msgspec.Raw]


def hash_fields_with_json(**texts: str) -> list[str | bytes]:
    """Return fields and values for a hash: each text as it is, and again as JSON in the field ``<name>_json``."""
    return [item for name, text in texts.items() for item in (name, text, f"{name}_json", _encode(text))]


def json_of_reply(reply: WriteReply) -> bytes:
    """Return the JSON object at the end of a write's reply. A repeated write returns the same bytes."""
    return reply.value[reply.value.index(b"{") :]


async def read_wire_member(redis: RedisClient, position: Position, member: str) -> bytes | None:
    """Return one member of an entry's ``wire`` object as JSON, or None if the entry was trimmed from the log.

    A repeated write answers with it, because these are the bytes of the first answer.
    """
    (entries,) = await redis.execute(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
    if not entries:
        return None
    fields = entries[0][1]
    return bytes(msgspec.json.decode(fields[7], type=_WireMembers).wire[member])
