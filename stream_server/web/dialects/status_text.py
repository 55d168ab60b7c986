"""The text and the place of a status, as the dialects render them.

In a dialect the text of a repost is that of its original behind ``RT @login: ``, and a place has an id.
"""

import hashlib
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

REPOST_PREFIX = "RT @{}: "
"""Begins the text of a repost; filled with the login of the original's author."""

REPOST_MENTION_START = len("RT ")
"""Index of the mention in the prefix."""


class StatusText(NamedTuple):
    """A text and its entities, whose indices count code points."""

    text: str
    entities: Json


def status_text(status: Json) -> StatusText:
    """Return the text of a status. For a repost it is the original's text, with the prefix and shifted entities."""
    original = status.get("original")
    if not original or status["message"]:
        return StatusText(status["message"], status["entities"])
    prefix = REPOST_PREFIX.format(original["login"])
    entities = {
        kind: [_shift_entity(entity, len(prefix)) for entity in found] for kind, found in original["entities"].items()
    }
    author = {
        "login": original["login"],
        "id": original["uid"],
        "indices": [REPOST_MENTION_START, len(prefix) - len(": ")],
    }
    return StatusText(prefix + original["message"], {**entities, "mentions": [author, *entities["mentions"]]})


def _shift_entity(entity: Json, by: int) -> Json:
    """Return the entity with its indices moved by ``by`` code points."""
    start, end = entity["indices"]
    return {**entity, "indices": [start + by, end + by]}


def place_id(place: Json) -> str:
    """Return an id of sixteen hexadecimal digits, in the format of Twitter's ids.

    This server's places have no ids, so the id is a hash. Places with the same name, country and box get the same id.
    """
    content = msgspec.json.encode([place["name"], place.get("country"), place.get("box")])
    return hashlib.blake2b(content, digest_size=8).hexdigest()
