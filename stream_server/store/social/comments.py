"""Comments under a status. Users see a comment if they may see the status and its commenter."""

from collections.abc import Sequence
from functools import partial

import msgspec

from filters.entities import extract_entities
from stream_server.errors import NotFound
from stream_server.events.visibility import Visibility
from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Member, Page, PageRequest
from stream_server.store.reads import statuses
from stream_server.store.reads.sight import not_found
from stream_server.store.redis.scripts import position_of
from stream_server.store.social.noun import Noun
from stream_server.store.social.stored_json import mention_arguments


class Comments(Noun):
    """Writes, reads and deletes comments."""

    async def create(self, uid: str, status: str, message: str, idempotency_key: IdempotencyKey) -> bytes:
        """Comment on a status. Returns the comment as JSON, with the same bytes as in its log entry.

        Raises NotFound if the status is hidden from the user. Raises Forbidden ``not_yours`` if the status is in a
        group of users and the user is not a member.
        """
        arguments = (message, msgspec.json.encode(message), *mention_arguments(extract_entities(message)))
        reply = await self._scripts.write("comment_create", idempotency_key, uid, status, *arguments)
        return await self._written(reply, "comment", partial(self.get, uid, str(position_of(reply).status_number)))

    async def delete(self, uid: str, comment: str, idempotency_key: IdempotencyKey) -> None:
        """Delete a comment. The comment's author and the author of the status may do this.

        Raises NotFound if the comment is unknown or hidden from the user, and Forbidden ``not_yours`` for other users.
        """
        await self._scripts.write("comment_delete", idempotency_key, uid, comment)

    async def get(self, viewer: str, comment: str) -> bytes:
        """Return a comment as JSON. Raises NotFound if it is unknown or the viewer may not see it."""
        key, sight = keys.key_for("comment", comment), self._sight(viewer)
        ((author, status, json),) = await self._redis.execute(("HMGET", key, "uid", "status", "json"))
        if author is None:
            raise not_found("comment")
        try:
            group = (await statuses.require(sight, status.decode())).group
        except NotFound:
            raise not_found("comment") from None
        await sight.learn([author], [(author, group)])
        if not sight.of(author, group):
            raise not_found("comment")
        return bytes(json)

    async def list_comments(self, viewer: str, status: str, page_request: PageRequest) -> Page:
        """Return the comments on a status as JSON, oldest first, without comments of users whom the viewer mutes."""
        sight, group = self._sight(viewer), b""

        async def admit() -> None:
            nonlocal group
            group = (await statuses.require(sight, status)).group

        async def show(members: Sequence[Member]) -> Sequence[bytes | None]:
            comment = keys.key_for("comment").encode()
            rows = await self._redis.execute(*(("HMGET", comment + each, "uid", "json") for each, _ in members))
            authors = {author for author, _ in rows if author is not None}
            await sight.learn(authors, ((author, group) for author in authors))
            return [
                json if author is not None and sight.of(author, group) is Visibility.VISIBLE else None
                for author, json in rows
            ]

        return await self._page("comments", status, page_request, show, oldest_first=True, admit=admit)
