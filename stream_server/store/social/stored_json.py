"""Encodes texts, flags, JSON and mentions as arguments of scripts, and decodes the JSON of log entries."""

import msgspec

from filters.entities import Entities
from stream_server.events.position import Position
from stream_server.events.status_json import entity_pieces
from stream_server.store import keys
from stream_server.store.redis.client import RedisClient

encode_json = msgspec.json.encode


class _WireMembers(msgspec.Struct):
    wire: dict[str, msgspec.Raw]


def flag_text(value: bool) -> str:  # noqa: FBT001 - the only parameter
    """Return a flag as the text that Redis hashes contain: "1" for True and "0" for False."""
    return "1" if value else "0"


def hash_fields_with_json(**texts: str) -> list[str | bytes]:
    """Return names and values for a Redis hash. Each text gives two: ``<name>`` as it is, ``<name>_json`` as JSON."""
    return [item for name, text in texts.items() for item in (name, text, f"{name}_json", encode_json(text))]


def mention_arguments(entities: Entities) -> list[str | bytes | int]:
    """Return the mentions of a text as arguments for ``resolve_mentions`` (``lua/notification.lua``).

    The arguments are the number of mentions, their logins in lower case, and the JSON of ``entities`` (mentions,
    hashtags and so on) in pieces, one cut after each mentioned login. The script puts the id of that user between two
    pieces.
    """
    return [len(entities.mentions), *(mention.login.lower() for mention in entities.mentions), *entity_pieces(entities)]


async def read_wire_member(redis: RedisClient, position: Position, member: str) -> bytes | None:
    """Return one member of a log entry's ``wire`` (the event for clients) as JSON, or None if the entry was trimmed.

    A write that repeats an idempotency key returns these bytes, so its answer equals the first answer.
    """
    (entries,) = await redis.execute(("XRANGE", keys.LOG, position.entry_id, position.entry_id))
    if not entries:
        return None
    fields = entries[0][1]
    return bytes(msgspec.json.decode(fields[7], type=_WireMembers).wire[member])
