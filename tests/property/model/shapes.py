"""The compared part of an answer: all but times and free texts."""

import json
from collections.abc import Callable
from typing import Any

Shape = tuple[Any, ...]

_STATUS = ("id", "uid", "login", "message", "in_reply_to", "in_reply_to_uid", "origin", "group", "conversation")
_COUNTS = ("likes", "comments", "reposts")


def members(*names: str) -> Callable[[bytes], Shape]:
    """Return a function that takes these members from an answer."""
    return lambda raw: tuple(map(json.loads(raw).__getitem__, names))


user = members("id", "login", "name", "bio", "protected", "followers", "following", "posts")
comment = members("id", "uid", "login", "status", "message")
named_list = members("id", "uid", "name", "private", "members")
group = members("id", "uid", "name", "kind", "members")


def status(raw: bytes) -> Shape:
    return status_of(json.loads(raw))


def status_of(found: dict[str, Any]) -> Shape:
    mentions = tuple(one["id"] for one in found["entities"]["mentions"] if "id" in one)
    own = (*(found[name] for name in (*_STATUS, *_COUNTS)), mentions)
    if "original" not in found:
        return own
    return (*own, status_of(found["original"]) if found["original"] is not None else None)


def talk(raw: bytes) -> Shape:
    found = json.loads(raw)
    last = (found.get("last_message") or {}).get("id")
    return found["id"], frozenset(found["people"]), found["name"], last, found["unread"]


def notice(raw: bytes) -> Shape:
    found = json.loads(raw)
    comment = found.get("comment")
    on = comment["status"] if comment is not None else found.get("status", {}).get("id", "")
    return found["kind"], found["source"]["id"], on, comment["id"] if comment is not None else "", found["read"]


def name(raw: bytes) -> str:
    """The id only, for lists whose items are compared elsewhere."""
    return str(json.loads(raw)["id"])
