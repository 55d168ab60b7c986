"""One row of an exported table: the columns that analyses need, and the whole event as JSON."""

from datetime import datetime
from typing import Any, NamedTuple

from stream_server.events.one_line import encode_json


class EventRow(NamedTuple):
    """The columns of one event. What an event lacks is None, or an empty list.

    Attributes:
        id: Id of the status; for a comment, of the comment.
        at: Time of the event, in UTC.
        kind: ``post``, ``delete``, ``like`` and so on.
        uid: Id of the author, else of the user who did it.
        login: Login of this user. A ``delete`` has only ids.
        message: Text of a post or comment.
        lang: Language of the post.
        lon: Longitude in degrees.
        lat: Latitude in degrees.
        tags: Hashtags without their sign.
        mentions: Logins that the text mentions.
        json: The event as the server sent it.
    """

    id: str | None
    at: datetime
    kind: str
    uid: str | None
    login: str | None
    message: str | None
    lang: str | None
    lon: float | None
    lat: float | None
    tags: list[str]
    mentions: list[str]
    json: str


def row_of(event: dict[str, Any]) -> EventRow:
    """Return the row of an event."""
    text = _member(event, "comment") or _member(event, "status")
    person = _member(event, "source") or _member(event, "user")
    author = person if person and event["kind"] != "post" else {"id": text.get("uid"), "login": text.get("login")}
    location, entities = _member(text, "location"), _member(text, "entities")
    return EventRow(
        text.get("id"), datetime.fromisoformat(event["at"]), event["kind"], author.get("id"), author.get("login"),
        text.get("message"), text.get("lang"), location.get("lon"), location.get("lat"),
        [tag["text"] for tag in entities.get("hashtags", ())], [one["login"] for one in entities.get("mentions", ())],
        encode_json(event).decode(),
    )  # fmt: skip


def _member(event: dict[str, Any], name: str) -> dict[str, Any]:
    found = event.get(name)
    return found if isinstance(found, dict) else {}
