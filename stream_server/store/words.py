"""The words of a list, a group or a talk: kept as they are, and encoded for the JSON that scripts put together."""

import msgspec

from stream_server.store.scripts import Answer

_encode = msgspec.json.encode


def pairs(**words: str) -> list[str | bytes]:
    """Fields of a hash and their values: each of these words, and the same as JSON in ``<field>_json``."""
    return [item for name, word in words.items() for item in (name, word, f"{name}_json", _encode(word))]


def json_of(answer: Answer) -> bytes:
    """The JSON that a write keeps behind its position: the same bytes however often it is asked."""
    return answer.value[answer.value.index(b"{") :]
