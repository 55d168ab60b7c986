"""What of an answer is compared: everything but times and what nobody but the author decides."""

import json
from typing import Any

Shape = tuple[Any, ...]

_STATUS = ("id", "uid", "login", "message", "in_reply_to", "in_reply_to_uid", "origin", "group", "conversation")
_COUNTS = ("likes", "comments", "reposts")


def user(raw: bytes) -> Shape:
    """A user: who, what is public, and the counters."""
    found = json.loads(raw)
    names = ("id", "login", "name", "bio", "protected", "followers", "following", "posts")
    return tuple(found[name] for name in names)


def status(raw: bytes) -> Shape:
    """A status with its counters and, where it repeats another, that one."""
    return status_of(json.loads(raw))


def status_of(found: dict[str, Any]) -> Shape:
    """The same of a decoded one."""
    mentions = tuple(one["id"] for one in found["entities"]["mentions"] if "id" in one)
    own = (*(found[name] for name in (*_STATUS, *_COUNTS)), mentions)
    if "original" not in found:
        return own
    return (*own, status_of(found["original"]) if found["original"] is not None else None)


def comment(raw: bytes) -> Shape:
    """A comment."""
    found = json.loads(raw)
    return tuple(found[name] for name in ("id", "uid", "login", "status", "message"))


def roll(raw: bytes) -> Shape:
    """A list."""
    found = json.loads(raw)
    return tuple(found[name] for name in ("id", "uid", "name", "private", "members"))


def group(raw: bytes) -> Shape:
    """A group."""
    found = json.loads(raw)
    return tuple(found[name] for name in ("id", "uid", "name", "kind", "members"))


def talk(raw: bytes) -> Shape:
    """A talk: who is in it, and the last thing said."""
    found = json.loads(raw)
    last = (found.get("last_message") or {}).get("id")
    return found["id"], frozenset(found["people"]), found["name"], last, found["unread"]


def message(raw: bytes) -> Shape:
    """A direct message."""
    found = json.loads(raw)
    return tuple(found[name] for name in ("id", "talk", "uid", "login", "message"))


def notice(raw: bytes) -> Shape:
    """A notification, by what it is about."""
    found = json.loads(raw)
    told = found.get("comment")
    on = told["status"] if told is not None else found.get("status", {}).get("id", "")
    return found["kind"], found["source"]["id"], on, told["id"] if told is not None else "", found["read"]


def name(raw: bytes) -> str:
    """The id alone: for lists whose items are looked at elsewhere."""
    return str(json.loads(raw)["id"])
