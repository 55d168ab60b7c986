"""Comments: short words under a status, in order, seen by whoever sees the status and the one who wrote them."""

import msgspec

from filters.entities import extract_entities
from stream_server.errors import NotFound
from stream_server.events.position import Position
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social.status_draft import mention_arguments


class _CommentWire(msgspec.Struct):
    comment: msgspec.Raw


class _CommentEntry(msgspec.Struct):
    """As much of a ``comment`` entry as its answer is."""

    wire: _CommentWire


class Comments:
    """The comments of one store."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def create(self, uid: str, status: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """A new comment as JSON, the same bytes as on the log.

        Raises NotFound for a status that is not there or not to be seen, Forbidden ``not_yours`` in a group of which
        one is no member.
        """
        arguments = (message, msgspec.json.encode(message), *mention_arguments(extract_entities(message)))
        answer = await self._scripts.write("comment_create", idempotency_key, uid, status, *arguments)
        if answer.is_repeat:
            return await self._read_earlier_reply(uid, position_of(answer))
        json: bytes = answer.first_time_extra[0]
        return json

    async def delete(self, uid: str, comment: str, idempotency_key: IdempotencyKey) -> None:
        """Take back a comment: one's own, or one under a status of one's own that one sees.

        Raises NotFound for what is not there or not to be seen, else Forbidden ``not_yours``.
        """
        await self._scripts.write("comment_delete", idempotency_key, uid, comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """A comment as JSON; raises NotFound where there is none, or none for this viewer."""
        found: bytes | None = await self._scripts.call("comment_get", keys.META, viewer, comment)
        if found is None:
            raise NotFound("there is no such comment")
        return found

    async def list_comments(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """The comments under a status as JSON, oldest first, without those of people whom the viewer mutes.

        Raises NotFound for a status that is not there or not to be seen, InvalidCursor.
        """
        key = keys.key_for("comments", status)
        return await read_page(self._scripts, "comments_page", key, page_request, viewer, status, oldest_first=True)

    async def _read_earlier_reply(self, uid: str, log_position: Position) -> bytes:
        """The answer that was given before: it stands on the log; where that was trimmed, the comment as it is."""
        (entries,) = await self._redis.execute(("XRANGE", keys.LOG, log_position.entry_id, log_position.entry_id))
        if entries:
            return bytes(msgspec.json.decode(entries[0][1][7], type=_CommentEntry).wire.comment)
        return await self.get(uid, str(log_position.status_number))
