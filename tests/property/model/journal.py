"""The log as events of the model, and as the sets that all entries together give."""

import json
from typing import Any

from stream_server.events.entry import Entry
from tests.property.model.state import LoggedEvent

UNDOES = {
    "unfollow": "follow", "unlike": "like", "unblock": "block", "unmute": "mute", "unrequest": "request",
    "list_remove": "list_add", "group_leave": "group_join",
    "uncomment": "comment", "delete": "post", "list_delete": "list_create", "group_delete": "group_create",
    "unprotect": "protect", "reinstate": "suspend",
}  # fmt: skip
"""The kind that each kind undoes."""

UNLASTING = {"edit", "user_update", "user_delete", "message", "notification", "list_update", "group_update", "revoke"}
"""Kinds that change no set."""


def as_logged(entry: Entry) -> list[LoggedEvent]:
    """An entry as events of the model: one for each receiver of a notification, one for any other entry."""
    if entry.kind == "notification":
        told = [(uid, about(entry)) for uid in entry.audience_users]
        return [LoggedEvent(entry.kind, f"users:{uid}", tuple(sorted(members.items()))) for uid, members in told]
    kind, _, ids = entry.audience.partition(":")
    audience = f"{kind}:{','.join(sorted(ids.split(',')))}" if kind == "users" else entry.audience
    return [LoggedEvent(entry.kind, audience, tuple(sorted(about(entry).items())))]


def about(entry: Entry) -> dict[str, str]:
    """The ids in an entry, by the member that has them."""
    wire = json.loads(entry.wire)
    if entry.kind == "notification":
        return _of_notice(wire["notification"])
    wire.pop("deleted", None)
    return {name: value["id"] if isinstance(value, dict) else value for name, value in wire.items()}


def _of_notice(notice: dict[str, Any]) -> dict[str, str]:
    comment = notice.get("comment")
    return {
        "what": notice["kind"],
        "source": notice["source"]["id"],
        "status": comment["status"] if comment is not None else notice.get("status", {}).get("id", ""),
        "comment": comment["id"] if comment is not None else "",
    }


class Journal:
    """Applies log entries in order. ``sets`` is then what the data must be, by the kind that adds a member."""

    def __init__(self) -> None:
        self.n = 0
        self.sets: dict[str, set[tuple[str, ...]]] = {}
        self._lists: dict[str, str] = {}

    def apply(self, entry: Entry) -> None:
        """Apply the next entry. Its number must follow, and it must change its set."""
        assert entry.position.n == self.n + 1, f"entry {entry.position.n} after {self.n}"
        self.n = entry.position.n
        if entry.kind == "user_delete":
            self._forget(about(entry)["user"])
        if entry.kind in UNLASTING or "deleted" in json.loads(entry.wire):
            return
        if entry.kind == "list_create":
            self._lists[about(entry)["list"]] = json.loads(entry.wire)["list"]["uid"]
        made = UNDOES.get(entry.kind, entry.kind)
        held, member = self.sets.setdefault(made, set()), _member(entry)
        assert (member in held) == (made != entry.kind), f"{entry.kind} of {member} changes nothing"
        held ^= {member}
        self._follow_up(entry.kind, member)
        if entry.kind == "group_create":
            owner = json.loads(entry.wire)["group"]["uid"]
            self.sets.setdefault("group_join", set()).add((*member, owner))

    def _forget(self, uid: str) -> None:
        """Drop the relations of a user who is gone. Each post and comment has an entry of its own."""
        for kind in ("follow", "request", "block", "mute", "like", "list_add", "group_join", "protect", "suspend"):
            held = self.sets.setdefault(kind, set())
            held -= {member for member in held if uid in member}
        for list_id in [one for one, owner in self._lists.items() if owner == uid]:
            self._drop("list_create", 0, list_id)
            self._drop("list_add", 0, list_id)

    def _follow_up(self, kind: str, member: tuple[str, ...]) -> None:
        """Apply changes that have no event of their own."""
        if kind == "delete":
            self._drop("like", 1, member[0])
            self._drop("comment", 1, member[0])
        elif kind == "list_delete":
            self._drop("list_add", 0, member[0])
        elif kind == "group_delete":
            self._drop("group_join", 0, member[0])
        elif kind == "follow":
            self.sets.setdefault("request", set()).discard(member)

    def _drop(self, kind: str, place: int, value: str) -> None:
        held = self.sets.setdefault(kind, set())
        held -= {member for member in held if member[place] == value}


def _member(entry: Entry) -> tuple[str, ...]:
    """The ids that an entry adds to a set or removes."""
    found = about(entry)
    order = {
        "like": ("source", "status"), "comment": ("comment", "status"),
        "list_add": ("list", "user"), "group_join": ("group", "user"),
        "post": ("status",), "list_create": ("list",), "group_create": ("group",),
        "protect": ("user",), "suspend": ("uid",),
    }.get(UNDOES.get(entry.kind, entry.kind), ("source", "target"))  # fmt: skip
    return tuple(found[name] for name in order)
