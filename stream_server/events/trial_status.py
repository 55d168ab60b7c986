"""A status as filters would see it, whether it was posted or is only made up to try a rule on."""

from collections.abc import Mapping
from typing import Any

import msgspec

from filters.entities import extract_entities
from filters.event import Event
from stream_server.events.entity_json import entity_pieces
from stream_server.events.language import LanguageDetector
from stream_server.events.view import EntryFacts, WireFields, make_view

ANONYMOUS_STATUS = {"id": "0", "uid": "0", "login": "nobody"}
"""What a status has that nobody wrote."""


def trial_event(status: bytes, facts: EntryFacts) -> Event:
    """The ``post`` of a status, as JSON, of which besides is known what ``facts`` say; raises view.MalformedEntry."""
    return make_view("post", facts, msgspec.json.decode(b'{"status":%b}' % status, type=WireFields)).event


def make_trial_status(members: Mapping[str, Any], detect_language: LanguageDetector) -> bytes:
    """A status as JSON of what is given of it; its entities follow from its message, and its language by ``detect_language``.

    Its thread is what is given too: a status that has no id can begin none.
    """
    message = members.get("message", "")
    found = extract_entities(message)
    told = {"lang": detect_language(message, found)} if not members.get("lang") else {}
    entities = msgspec.Raw(b"".join(entity_pieces(found)))
    return msgspec.json.encode({**ANONYMOUS_STATUS, "entities": entities, **members, **told})
