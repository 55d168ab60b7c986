"""Blocks and mutes.

A block hides two users from each other and ends their follows. A mute hides one user's statuses from the other, and the
muted user does not notice it.
"""

from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest
from stream_server.store.reads.users import show_users
from stream_server.store.social.noun import Noun
from stream_server.store.timelines.syndication import TimelineChange


class Blocks(Noun):
    """Blocks and unblocks users, and lists the users whom a user blocks."""

    async def block(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Let ``uid`` block a user. The statuses of each disappear from the other's home timeline.

        Follows, follow requests and invitations in both directions end, and each leaves the groups of the other. Raises
        BadRequest if users block themselves. Raises NotFound for an unknown or suspended user, and for one who blocks
        ``uid`` already. So two users block each other only if an ingest says so.
        """
        reply = await self._scripts.write("block", idempotency_key, uid, blocked_uid)
        if reply.is_repeat:
            return
        fence, newest_ids, fence_back, newest_ids_back = reply.first_time_extra
        await self._syndication.apply_changes(
            TimelineChange("home", uid, blocked_uid, "remove", fence, newest_ids),
            TimelineChange("home", blocked_uid, uid, "remove", fence_back, newest_ids_back),
        )

    async def unblock(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unblock a user, also one who is suspended or blocks ``uid``. Without a block, raises as :meth:`block`.

        Follows that ended with the block are not restored.
        """
        await self._scripts.write("relation_change", idempotency_key, uid, blocked_uid, "unblock")

    async def list_blocked(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user blocks, newest block first. Each has ``since``, the block's time."""
        return await self._page("blocks", uid, page_request, show_users(self._sight(uid)))


class Mutes(Noun):
    """Mutes and unmutes users, and lists the users whom a user mutes."""

    async def mute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute a user. Raises as :meth:`Blocks.block`."""
        await self._scripts.write("relation_change", idempotency_key, uid, muted_uid, "mute")

    async def unmute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Unmute a user, also one who is suspended or blocks ``uid``. Without a mute, raises as :meth:`mute`."""
        await self._scripts.write("relation_change", idempotency_key, uid, muted_uid, "unmute")

    async def list_muted(self, uid: str, page_request: PageRequest) -> Page:
        """Return, as JSON, the users whom a user mutes, newest mute first. Each has ``since``, the mute's time."""
        return await self._page("mutes", uid, page_request, show_users(self._sight(uid)))
