"""The event of a status as JSON, for a posted status or for one made up to try a rule on."""

from collections.abc import Mapping
from typing import Any

import msgspec

from filters.entities import extract_entities
from filters.event import Event
from stream_server.events.entity_json import entity_pieces
from stream_server.events.entry_fields import EntryFacts, WireFields
from stream_server.events.language import LanguageDetector
from stream_server.events.view import make_view

ANONYMOUS_STATUS = {"id": "0", "uid": "0", "login": "nobody"}
"""Members of a made-up status without id and author."""


def trial_event(status: bytes, facts: EntryFacts) -> Event:
    """Return the event of the ``post`` of a status, given as JSON, with these facts.

    Raises :class:`~stream_server.events.entry_fields.MalformedEntry`.
    """
    return make_view("post", facts, msgspec.json.decode(b'{"status":%b}' % status, type=WireFields)).event


def make_trial_status(members: Mapping[str, Any], detect_language: LanguageDetector) -> bytes:
    """Return the JSON of a status with the given members.

    The message determines entities and language (``detect_language``).

    Given members win. The status has no thread of its own, because it has no id.
    """
    message = members.get("message", "")
    found = extract_entities(message)
    detected = {"lang": detect_language(message, found)} if not members.get("lang") else {}
    entities = msgspec.Raw(b"".join(entity_pieces(found)))
    return msgspec.json.encode({**ANONYMOUS_STATUS, "entities": entities, **members, **detected})
