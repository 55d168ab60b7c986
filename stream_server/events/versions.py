"""Versions of a status that was edited: its newest text in the JSON of earlier events, and what is left of it."""

from collections.abc import Iterable
from typing import Any

import msgspec


class _Ids(msgspec.Struct, omit_defaults=True):
    id: str
    uid: str
    foreign_id: str | None = None


class _EditedStatus(msgspec.Struct):
    status: _Ids


def left_ids_json(wire: bytes) -> bytes:
    """Return the JSON of an `edit`, of which ``wire`` is the usual one, for clients whose filters the status has left.

    It has ``left`` with the ids in the place of ``status``.
    """
    return msgspec.json.encode({"left": msgspec.json.decode(wire, type=_EditedStatus).status})


def json_with_versions(wire: bytes, edits: Iterable[bytes]) -> dict[str, Any]:
    """Return the JSON of an event with the versions of the statuses that ``edits`` show, the JSON of `edit` events.

    The counters of a status, and what it shows as ``original``, stay as they are in the event.
    """
    event: dict[str, Any] = msgspec.json.decode(wire)
    for edit in edits:
        version = msgspec.json.decode(edit)["status"]
        if "notification" in event:
            event["notification"] = show_version(event["notification"], version)
        else:
            event = show_version(event, version)
    return event


def with_ids_only(edit: dict[str, Any]) -> dict[str, Any]:
    """Return an `edit` in the form that has ``left`` with the ids in the place of ``status``."""
    ids = {name: value for name, value in edit["status"].items() if name in _Ids.__struct_fields__ and value}
    return {name: value for name, value in edit.items() if name != "status"} | {"left": ids}


def show_version(event: dict[str, Any], version: dict[str, Any]) -> dict[str, Any]:
    """Return an event that shows ``version`` in the place of this status: as its ``status``, or as the ``original``."""
    status = event["status"]
    if status["id"] == version["id"]:
        status = _with_kept(version, status)
    original = status.get("original")
    if original and original["id"] == version["id"]:
        status = status | {"original": _with_kept(version, original)}
    return event | {"status": status}


_KEPT = ("likes", "comments", "reposts", "original")
"""What stays in a status when its version is replaced."""


def _with_kept(version: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    new = {name: value for name, value in version.items() if name not in _KEPT}
    return new | {name: shown[name] for name in _KEPT if name in shown}
