"""The text and the place of a status, as the dialects render them. A repost's text begins with ``RT @login: ``."""

import hashlib
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

REPOST_PREFIX = "RT @{}: "
"""Begins the text of a repost; filled with the login of the original's author."""


class StatusText(NamedTuple):
    """A status's text and its entities (mentions, hashtags, cashtags, links). Their indices count code points."""

    text: str
    entities: Json


def status_text(status: Json) -> StatusText:
    """Return text and entities of a status. A repost's text is ``RT @login: `` and the text of the original."""
    original = status.get("original")
    if not original or status["message"]:
        return StatusText(status["message"], status["entities"])
    prefix = REPOST_PREFIX.format(original["login"])
    shift, found = len(prefix), original["entities"].items()
    entities = {kind: [_shift_entity(entity, shift) for entity in members] for kind, members in found}
    mention_span = [len("RT "), shift - len(": ")]
    author = {"login": original["login"], "id": original["uid"], "indices": mention_span}
    return StatusText(prefix + original["message"], {**entities, "mentions": [author, *entities["mentions"]]})


def _shift_entity(entity: Json, by: int) -> Json:
    start, end = entity["indices"]
    return {**entity, "indices": [start + by, end + by]}


def place_id(place: Json) -> str:
    """Return a place's id in Twitter's format, sixteen hexadecimal digits: a hash of its name, country and box."""
    content = msgspec.json.encode([place["name"], place.get("country"), place.get("box")])
    return hashlib.blake2b(content, digest_size=8).hexdigest()
