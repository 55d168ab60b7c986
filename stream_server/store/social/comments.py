"""Comments under a status. Users see a comment if they may see the status and its commenter."""

import msgspec

from filters.entities import extract_entities
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.redis.scripts import position_of
from stream_server.store.social.noun import Noun
from stream_server.store.social.stored_json import mention_arguments, read_wire_member


class Comments(Noun):
    """Writes, reads and deletes comments."""

    async def create(self, uid: str, status: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Comment on a status. Returns the comment as JSON, with the same bytes as in its log entry.

        Raises NotFound if the status is hidden from the user. Raises Forbidden ``not_yours`` if the status is in a
        group of users and the user is not a member.
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
        """Delete a comment. The comment's author and the author of the status may do this.

        Raises NotFound if the comment is unknown or hidden from the user, and Forbidden ``not_yours`` for other users.
        """
        await self._scripts.write("comment_delete", idempotency_key, uid, comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """Return a comment as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        return await self._read("comment_get", viewer, comment)

    async def list_comments(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return the comments on a status as JSON, oldest first, without comments of users whom the viewer mutes."""
        return await self._page("comments_page", "comments", status, page_request, viewer, status, oldest_first=True)
