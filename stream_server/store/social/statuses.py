"""Statuses: drafts, posting, reading, editing and deleting; and the comments under them.

Users see a comment if they may see the status and its commenter.
"""

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import msgspec

from filters.entities import Entities, extract_entities
from filters.tokens import fold
from stream_server.errors import NotFound
from stream_server.events.language import LanguageDetector
from stream_server.events.position import format_iso_time
from stream_server.events.status_json import entity_pieces
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import statuses
from stream_server.store.reads.sight import not_found
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import ScriptArgument, ScriptCall, ScriptRunner, position_of
from stream_server.store.social.noun import Noun, encode_json, mention_arguments, read_wire_member
from stream_server.store.timelines.syndication import FanOut, Syndication
from stream_server.wire.objects import Location, Media, Place

MAX_TAG_TIMELINES = 30
"""Most tags in whose timelines a status stands. A text of 280 characters has room for 93, each with a key."""


class StatusDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A status before it has an id. The caller has checked its values.

    Attributes:
        message: Text of the status. Empty for a plain repost.
        in_reply_to: Id of the status that the new status answers.
        origin: Id of the status that the new status reposts or quotes.
        lang: BCP 47 tag of the message's language. If it is None, the store detects the language.
        meta: JSON object that the author adds. The server stores it as it is, and rules find its fields.
        group: Id of the group (of users) in which the status is posted.
    """

    message: str = ""
    location: Location | None = None
    place: Place | None = None
    in_reply_to: str | None = None
    origin: str | None = None
    lang: str | None = None
    media: Sequence[Media] = ()
    meta: Mapping[str, object] | None = None
    group: str | None = None


class Statuses(Noun):
    """Posts, reads and deletes statuses."""

    def __init__(
        self, redis: RedisClient, scripts: ScriptRunner, syndication: Syndication, detect_language: LanguageDetector
    ) -> None:
        super().__init__(redis, scripts, syndication)
        self._detect_language = detect_language

    async def create(self, uid: str, draft: StatusDraft, idempotency_key: IdempotencyKey) -> bytes:
        """Post a status. Returns the status as JSON, with the same bytes as in its log entry.

        The call also adds the status to the timelines of the author's first followers. Job workers add it to the
        others. A repost of a plain repost becomes a repost of the original status. A repost of a quote (a repost with a
        message) stays a repost of the quote. Raises NotFound if the group, the answered or the reposted status is
        hidden from the author. Raises Forbidden ``not_yours`` if the author may not post in the group. Raises
        BadRequest for a repost of a protected user's status, and for a reply or repost outside the group in which its
        original was posted.
        """
        reply = await self._scripts.write_call(post_call(uid, draft, self._detect_language), idempotency_key)
        if reply.is_repeat:
            position = position_of(reply)
            posted = await read_wire_member(self._redis, position, "status")
            return posted or await self.get(uid, str(position.status_number))
        if reply.first_time["fence"]:
            await self._syndication.fan_out(FanOut.of_reply(uid, str(position_of(reply).status_number), reply))
        status: bytes = reply.first_time["json"]
        return status

    async def get(self, viewer: str, status_id: str) -> bytes:
        """Return a status as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        found = await self.get_many(viewer, [status_id])
        if not found:
            raise NotFound("unknown status")
        return found[0]

    async def get_many(self, viewer: str, ids: Sequence[str]) -> list[bytes]:
        """Return the statuses with these ids as JSON, in this order, without hidden ones."""
        shown = await statuses.show(self._sight(viewer), [each.encode() for each in ids], Visibility.ON_REQUEST)
        found = [json for json in shown if json is not None]
        return statuses.expand(b"\0".join(found)).split(b"\0") if found else []  # JSON does not contain b"\0"

    async def edit(
        self, uid: str, status_id: str, changes: Mapping[str, Any], idempotency_key: IdempotencyKey, max_age_ms: int
    ) -> bytes:
        """Change values of a status: ``changes`` has members of `StatusDraft` by name. Returns the status as JSON.

        The store finds the mentions and tags of a new message, and its language unless ``lang`` is given. Raises
        NotFound for a status that is unknown or hidden, Forbidden ``not_yours`` for other users and ``too_late`` for a
        status that was posted more than ``max_age_ms`` ago, and BadRequest for a repost without a message.
        """
        call = edit_call("status_edit", changes, self._detect_language, uid=uid, id=status_id, max_age_ms=max_age_ms)
        reply = await self._scripts.write_call(call, idempotency_key)
        return await self._written(reply, "status", partial(self.get, uid, status_id))

    async def delete(self, uid: str, status_id: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a status. Raises NotFound if it is unknown or hidden, Forbidden ``not_yours`` for other users."""
        reply = await self._scripts.write("status_delete", idempotency_key, uid=uid, id=status_id)
        if not reply.is_repeat:
            await self._syndication.withdraw(FanOut.of_reply(uid, status_id, reply))


def post_call(
    author: str, draft: StatusDraft, detect_language: LanguageDetector,
    foreign_id: str = "", foreign_ms: int | None = None,
) -> ScriptCall:  # fmt: skip
    """Return the call of ``lua/status.lua`` that posts a status of ``author``.

    ``foreign_id`` and ``foreign_ms`` are the id and the time (ms since 1970) that another site gave the status. The
    call ``ingest_post`` has the same arguments. The language of an author who gave none is detected.
    """
    entities, second = extract_entities(draft.message), int(time.time())
    geo = attachments = b""
    if draft.location or draft.place:
        geo = b'"location":%b,"place":%b' % (encode_json(draft.location), encode_json(draft.place))
    if draft.media or draft.meta is not None:
        attachments = b'"media":%b,"meta":%b' % (encode_json(draft.media), encode_json(draft.meta))
    named: dict[str, ScriptArgument] = {
        "author": author,
        "message": encode_json(draft.message),
        "lang": draft.lang or detect_language(draft.message, entities),
        "geo": geo,
        "attachments": attachments,
        "tags": _tag_words(entities),
        "second_ms": second * 1000,
        "second": _second_text(second),
    }
    if not (draft.in_reply_to or draft.origin or draft.group or entities.mentions or foreign_id):
        named["entities"] = b"".join(entity_pieces(entities)) if any(entities) else b""
        return ScriptCall("status_post", named)
    named["in_reply_to"] = draft.in_reply_to or ""
    named["origin"] = draft.origin or ""
    named["group"] = draft.group or ""
    named["foreign_id"] = foreign_id
    named["foreign_ms"] = "" if foreign_ms is None else foreign_ms
    return ScriptCall("status_refer", named, mention_arguments(entities) if any(entities) else (0, b""))


def edit_call(
    script: str, changes: Mapping[str, Any], detect_language: LanguageDetector, **named: ScriptArgument
) -> ScriptCall:
    """Return the call of a script that edits a status (``lua/edit.lua``).

    ``changes`` has members of `StatusDraft` by name, and ``named`` the arguments that say which status it is.
    """
    rest: Sequence[ScriptArgument] = (0, b"")
    found: dict[str, ScriptArgument] = {"message": "", "detected": "", "tags": "", "lang": changes.get("lang") or ""}
    if "message" in changes:
        entities = extract_entities(changes["message"])
        detected = detect_language(changes["message"], entities)
        found |= {"message": encode_json(changes["message"]), "detected": detected, "tags": _tag_words(entities)}
        rest = mention_arguments(entities)
    for member in ("location", "place", "media", "meta"):
        found[member] = encode_json(changes[member]) if member in changes else ""
    return ScriptCall(script, {**named, **found}, rest)


def _tag_words(entities: Entities) -> str:
    """Return the tags in whose timelines a status stands, each followed by a blank."""
    tags = list(dict.fromkeys(fold(tag.text) for tag in entities.hashtags))[:MAX_TAG_TIMELINES]
    return "".join([f"{tag} " for tag in tags])


@lru_cache(maxsize=2)
def _second_text(second: int) -> str:
    """Return a second of Unix time in ISO 8601, up to the point before the milliseconds."""
    return format_iso_time(second * 1000)[:-4]


class Comments(Noun):
    """Writes, reads and deletes comments."""

    async def create(self, uid: str, status: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Comment on a status. Returns the comment as JSON, with the same bytes as in its log entry.

        Raises NotFound if the status is hidden from the user. Raises Forbidden ``not_yours`` if the status is in a
        group of users and the user is not a member.
        """
        mentions = mention_arguments(extract_entities(message))
        reply = await self._scripts.write(
            "comment_create", idempotency_key, uid=uid, status=status, message_json=encode_json(message), rest=mentions
        )
        return await self._written(reply, "comment", partial(self.get, uid, str(position_of(reply).status_number)))

    async def delete(self, uid: str, comment: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a comment. The comment's author and the author of the status may do this.

        Raises NotFound if the comment is unknown or hidden from the user, and Forbidden ``not_yours`` for other users.
        """
        await self._scripts.write("comment_delete", idempotency_key, uid=uid, id=comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """Return a comment as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        key, sight = keys.key_for("comment", comment).encode(), self._sight(viewer)
        ((author, status, json),) = await self._redis.execute(("HMGET", key, "uid", "status", "json"))
        if author is None:
            raise not_found("comment")
        found = await statuses.find(self._redis, status)
        try:
            group = (await found.require(sight, {key: author})).group
        except NotFound:
            raise not_found("comment") from None
        if key in sight.gone or not sight.of(author, group):
            raise not_found("comment")
        return bytes(json)

    async def list_comments(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return the comments on a status as JSON, oldest first, without comments of users whom the viewer mutes."""
        sight, found = self._sight(viewer), list[statuses.Found]()

        async def admit() -> None:
            found.append(await statuses.find(self._redis, status.encode()))
            await found[0].require(sight)

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            comment = keys.key_for("comment").encode()
            texts = [comment + each for each, _ in members]
            rows = await self._redis.execute(*(("HMGET", key, "uid", "json") for key in texts))
            authors = {key: author for key, (author, _) in zip(texts, rows, strict=True) if author is not None}
            group = (await found[0].require(sight, authors)).group
            seen = {key for key, author in authors.items() if sight.of(author, group) is Visibility.VISIBLE}
            seen.difference_update(sight.gone)
            return [json if key in seen else None for key, (_, json) in zip(texts, rows, strict=True)]

        return await self._page("comments", status, page_request, show, oldest_first=True, admit=admit)
