"""A complete status in the JSON of the native API. A test overrides the members it needs."""

from typing import Any

EMPTY: dict[str, Any] = {"mentions": [], "hashtags": [], "cashtags": [], "urls": []}


def status(**more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": "10", "uid": "2", "login": "ada", "message": "tea", "posted": "2026-11-21T22:00:00.000Z",
        "location": None, "place": None, "lang": "en", "entities": EMPTY, "in_reply_to": None,
        "in_reply_to_uid": None, "origin": None, "media": [], "meta": None, "group": None, "conversation": "10",
        "likes": 0, "comments": 0, "reposts": 0,
    }  # fmt: skip
    return made | more
