"""What a status says, for clients to whom a repost repeats its original's text, and a place has an id."""

import hashlib
from typing import Any, NamedTuple

import msgspec

Json = dict[str, Any]

REPOSTED = "RT @{}: "
"""How the text of a repost begins."""

AT = len("RT ")
"""Where the mention in it begins."""


class Words(NamedTuple):
    """A text, and what was found in it; indices count code points."""

    text: str
    entities: Json


def words(status: Json) -> Words:
    """What a status as it stands on the wire says: a repost its original's words, behind the name of their author."""
    original = status.get("original")
    if not original or status["message"]:
        return Words(status["message"], status["entities"])
    before = REPOSTED.format(original["login"])
    entities = {kind: [_moved(one, len(before)) for one in found] for kind, found in original["entities"].items()}
    author = {"login": original["login"], "id": original["uid"], "indices": [AT, len(before) - len(": ")]}
    return Words(before + original["message"], {**entities, "mentions": [author, *entities["mentions"]]})


def _moved(entity: Json, by: int) -> Json:
    start, end = entity["indices"]
    return {**entity, "indices": [start + by, end + by]}


def place_id(place: Json) -> str:
    """Places have no ids here: those that are written alike get the same, sixteen hexadecimal digits as Twitter's."""
    told = msgspec.json.encode([place["name"], place.get("country"), place.get("box")])
    return hashlib.blake2b(told, digest_size=8).hexdigest()
