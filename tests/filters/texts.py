"""Events made of a text, as a post would make them."""

from typing import Any

from filters.entities import extract_entities
from filters.event import Event


def post(text: str = "", **facts: Any) -> Event:
    """A post that says ``text``, with the entities found in it."""
    return Event("post", **{"author": "1", "status_id": "1", "text": text, "entities": extract_entities(text)} | facts)
