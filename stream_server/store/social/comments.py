"""Comments under a status. Users see a comment if they may see the status and its commenter."""

import msgspec

from filters.entities import extract_entities
from stream_server.errors import NotFound
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.client import RedisClient
from stream_server.store.redis.scripts import Scripts, position_of
from stream_server.store.social.mentions import mention_arguments
from stream_server.store.social.stored_json import read_wire_member


class Comments:
    """Writes, reads and deletes comments."""

    def __init__(self, redis: RedisClient, scripts: Scripts) -> None:
        self._redis = redis
        self._scripts = scripts

    async def create(self, uid: str, status: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Comment on a status. Returns the comment as JSON, the same bytes as on the log.

        Raises NotFound if the status is unknown or hidden from this user, Forbidden ``not_yours`` if it stands in a
        group of which the user is not a member.
        """
        arguments = (message, msgspec.json.encode(message), *mention_arguments(extract_entities(message)))
        reply = await self._scripts.write("comment_create", idempotency_key, uid, status, *arguments)
        if reply.is_repeat:
            position = position_of(reply)
            posted = await read_wire_member(self._redis, position, "comment")
            return posted or await self.get(uid, str(position.status_number))
        comment: bytes = reply.first_time_extra[0]
        return comment

    async def delete(self, uid: str, comment: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a comment of this user, or any comment that the user sees under a status of their own.

        Raises NotFound if the comment is unknown or hidden from this user, otherwise Forbidden ``not_yours``.
        """
        await self._scripts.write("comment_delete", idempotency_key, uid, comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """Return a comment as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        found: bytes | None = await self._scripts.call("comment_get", keys.META, viewer, comment)
        if found is None:
            raise NotFound("unknown comment")
        return found

    async def list_comments(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return a page of the comments under a status as JSON, oldest first.

        Comments of users whom the viewer mutes are left out. Raises NotFound if the status is unknown or hidden from
        the viewer, and InvalidCursor.
        """
        key = keys.key_for("comments", status)
        return await read_page(self._scripts, "comments_page", key, page_request, viewer, status, oldest_first=True)
