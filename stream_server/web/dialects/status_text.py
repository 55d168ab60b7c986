"""What both dialects say of a status: its text, media, place, and the user whom it answers.

A repost shows its original: its text is ``RT @login: `` and the original's text, and its media are the original's.
"""

import hashlib
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from stream_server.events.entry import Entry
from stream_server.events.one_line import encode_json

logger = logging.getLogger(__name__)

Json = dict[str, Any]


def encode_or_log(entry: Entry, version: str, render: Callable[[Json, Entry], Json]) -> bytes:
    """Return what ``render`` makes of the members of a log entry, as JSON. For a faulty one, log this, return b""."""
    try:
        return encode_json(render(msgspec.json.decode(entry.wire), entry))
    except (LookupError, TypeError, ValueError) as error:
        logger.warning("cannot render log entry %s in %s: %r", entry.position.cursor, version, error)
        return b""


class StatusText(NamedTuple):
    """A status's text and its entities (mentions, hashtags, cashtags, links). Their indices count code points."""

    text: str
    entities: Json


class AnsweredUser(NamedTuple):
    """The user whom a status answers. ``login`` is None if the status does not tell it."""

    uid: str
    login: str | None


def reposted_status(status: Json) -> Json | None:
    """Return the original of a repost that embeds it. Return None for another status, and for a quote."""
    original: Json | None = status.get("original")
    return None if status["message"] else original or None


def status_text(status: Json) -> StatusText:
    """Return text and entities of a status. A repost's text is ``RT @login: `` and the text of the original."""
    original = reposted_status(status)
    if original is None:
        return StatusText(status["message"], status["entities"])
    prefix = f"RT @{original['login']}: "
    shift = len(prefix)
    entities = {
        kind: [{**entity, "indices": [at + shift for at in entity["indices"]]} for entity in members]
        for kind, members in original["entities"].items()
    }
    mention_span = [len("RT "), shift - len(": ")]
    author = {"login": original["login"], "id": original["uid"], "indices": mention_span}
    return StatusText(prefix + original["message"], {**entities, "mentions": [author, *entities["mentions"]]})


def shown_media(status: Json) -> list[Json]:
    """Return the media of a status; those of its original for a repost. Each has ``url`` and ``type``."""
    media: list[Json] = (reposted_status(status) or status)["media"]
    return media


def media_id(url: str) -> int:
    """Return an id for a media URL: 53 bits of its hash, because JavaScript numbers hold only 53 bits exactly."""
    return int.from_bytes(hashlib.blake2b(url.encode(errors="surrogatepass"), digest_size=8).digest()) >> 11


def answered_user(status: Json, reply_to_login: str | None) -> AnsweredUser | None:
    """Return the user whom a status answers, or None. A text that begins with a mention is an answer to that user.

    ``reply_to_login`` is the login of the author of the status that this status answers, or None if it is unknown.
    """
    mentions, uid = status["entities"]["mentions"], status["in_reply_to_uid"]
    if uid is None and mentions and not status["message"][: mentions[0]["indices"][0]].strip():
        uid = mentions[0].get("id")
    if uid is None:
        return None
    known = {mention.get("id"): mention["login"] for mention in mentions} | {status["uid"]: status["login"]}
    return AnsweredUser(uid, reply_to_login or known.get(uid))


def place_id(place: Json) -> str:
    """Return a place's id in Twitter's format, sixteen hexadecimal digits: a hash of its name, country and box."""
    content = msgspec.json.encode([place["name"], place.get("country"), place.get("box")])
    return hashlib.blake2b(content, digest_size=8).hexdigest()
