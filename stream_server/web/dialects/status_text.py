"""What a status says, for clients to whom a repost repeats its original's text, and a place has an id."""

import hashlib
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

REPOST_PREFIX = "RT @{}: "
"""How the text of a repost begins."""

REPOST_MENTION_START = len("RT ")
"""Where the mention in it begins."""


class StatusText(NamedTuple):
    """A text, and what was found in it; indices count code points."""

    text: str
    entities: Json


def status_text(status: Json) -> StatusText:
    """What a status as it stands on the wire says: a repost its original's words, behind the name of their author."""
    original = status.get("original")
    if not original or status["message"]:
        return StatusText(status["message"], status["entities"])
    before = REPOST_PREFIX.format(original["login"])
    entities = {
        kind: [_shift_entity(one, len(before)) for one in found] for kind, found in original["entities"].items()
    }
    author = {
        "login": original["login"],
        "id": original["uid"],
        "indices": [REPOST_MENTION_START, len(before) - len(": ")],
    }
    return StatusText(before + original["message"], {**entities, "mentions": [author, *entities["mentions"]]})


def _shift_entity(entity: Json, by: int) -> Json:
    start, end = entity["indices"]
    return {**entity, "indices": [start + by, end + by]}


def place_id(place: Json) -> str:
    """Places have no ids here: those that are written alike get the same, sixteen hexadecimal digits as Twitter's."""
    told = msgspec.json.encode([place["name"], place.get("country"), place.get("box")])
    return hashlib.blake2b(told, digest_size=8).hexdigest()
