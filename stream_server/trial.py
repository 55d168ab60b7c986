"""A status as filters would see it, whether it was posted or is only made up to try a rule on."""

from collections.abc import Mapping
from typing import Any

import msgspec

from filters.entities import extract
from filters.event import Event
from stream_server.detection import Detector
from stream_server.store.draft import entity_pieces
from stream_server.view import Facts, Wire, view

NOBODY = {"id": "0", "uid": "0", "login": "nobody"}
"""What a status has that nobody wrote."""


def event(status: bytes, facts: Facts) -> Event:
    """The ``post`` of a status, as JSON, of which besides is known what ``facts`` say; raises view.MalformedEntry."""
    return view("post", facts, msgspec.json.decode(b'{"status":%b}' % status, type=Wire)).event


def made_up(members: Mapping[str, Any], language: Detector) -> bytes:
    """A status as JSON of what is given of it; its entities follow from its message, and its language by ``language``.

    Its thread is what is given too: a status that has no id can begin none.
    """
    message = members.get("message", "")
    found = extract(message)
    told = {"lang": language(message, found)} if not members.get("lang") else {}
    entities = msgspec.Raw(b"".join(entity_pieces(found)))
    return msgspec.json.encode({**NOBODY, "entities": entities, **members, **told})
