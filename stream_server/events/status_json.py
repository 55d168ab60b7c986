"""Makes JSON: the entities of a text, and a made-up status on which a user tries a rule."""

from collections.abc import Mapping
from typing import Any

import msgspec

from filters.entities import Entities, extract_entities
from filters.event import Event
from stream_server.events.content import EntryFacts, WireFields, make_content
from stream_server.events.language import LanguageDetector

ANONYMOUS_STATUS = {"id": "0", "uid": "0", "login": "nobody"}
"""Members of a made-up status without id and author."""


def trial_event(status: bytes, facts: EntryFacts) -> Event:
    """Return the ``Event`` that posting ``status`` (JSON) would cause. Raises `MalformedEntry` for an invalid id."""
    return make_content("post", facts, msgspec.json.decode(b'{"status":%b}' % status, type=WireFields)).event


def make_trial_status(members: Mapping[str, Any], detect_language: LanguageDetector) -> bytes:
    """Return the JSON of a made-up status with ``members``. Derive missing entities or language from its text."""
    message = members.get("message", "")
    found = extract_entities(message)
    detected = {"lang": detect_language(message, found)} if not members.get("lang") else {}
    entities = msgspec.Raw(b"".join(entity_pieces(found)))
    return msgspec.json.encode({**ANONYMOUS_STATUS, "entities": entities, **members, **detected})


def entity_pieces(entities: Entities) -> list[bytes]:
    """Return the ``entities`` JSON of a status in pieces, cut after each login so that the caller can insert user ids.

    There is one piece more than there are mentions. Joined without any user ids, the pieces are valid JSON too.
    """
    pieces, rest = [], b'{"mentions":['
    for mention in entities.mentions:  # a login has only letters, digits and _, so it needs no escapes
        pieces.append(b'%b{"login":"%b"' % (rest, mention.login.encode()))
        rest = b',"indices":[%d,%d]},' % mention.indices
    others = {
        "hashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.hashtags],
        "cashtags": [{"text": tag.text, "indices": tag.indices} for tag in entities.cashtags],
        "urls": [
            {"url": u.url, "display_url": u.display_url, "expanded_url": u.expanded_url, "indices": u.indices}
            for u in entities.urls
        ],
    }
    return [*pieces, rest.removesuffix(b",") + b"]," + msgspec.json.encode(others)[1:]]
