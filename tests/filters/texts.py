"""Events made from a text."""

from typing import Any

from filters.entities import extract_entities
from filters.event import Event


def post(text: str = "", **facts: Any) -> Event:
    """A post with this text and the entities found in it."""
    return Event("post", **{"author": "1", "status_id": "1", "text": text, "entities": extract_entities(text)} | facts)
