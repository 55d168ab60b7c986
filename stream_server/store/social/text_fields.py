"""The words of a list, a group or a talk: kept as they are, and encoded for the JSON that scripts put together."""

import msgspec

from stream_server.store.redis.scripts import WriteReply

_encode = msgspec.json.encode


def hash_fields_with_json(**texts: str) -> list[str | bytes]:
    """Fields of a hash and their values: each of these words, and the same as JSON in ``<field>_json``."""
    return [item for name, word in texts.items() for item in (name, word, f"{name}_json", _encode(word))]


def json_of_reply(reply: WriteReply) -> bytes:
    """The JSON that a write keeps behind its position: the same bytes however often it is asked."""
    return reply.value[reply.value.index(b"{") :]
