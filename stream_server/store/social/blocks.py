"""Blocks and mutes.

A block hides two users from each other and ends their follows. A mute hides one user's statuses from the other, and the
muted user does not notice it.
"""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.redis.scripts import Scripts
from stream_server.store.timelines.syndication import Syndication, TimelineChange


class Blocks:
    """Changes and lists blocks."""

    def __init__(self, scripts: Scripts, syndication: Syndication) -> None:
        self._scripts = scripts
        self._syndication = syndication

    async def block(self, uid: str, blocked_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Block a user. Follows and requests in both directions end, and both home timelines are cleaned.

        A repeated block changes nothing. Raises BadRequest for the user itself. Raises NotFound for an unknown user and
        for a user who blocks this one, so only one of two users can block the other.
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
        """End a block. The follows that it ended do not come back. Raises the errors of :meth:`block`."""
        await self._scripts.write("unblock", idempotency_key, uid, blocked_uid)

    async def list_blocked(self, uid: str, page_request: PageRequest) -> Page:
        """Return the users whom a user blocks, as JSON with ``since``, newest block first. Raises InvalidCursor."""
        return await read_page(self._scripts, "users_page", keys.key_for("blocks", uid), page_request, uid, "", "")


class Mutes:
    """Changes and lists mutes."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def mute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """Mute a user. A repeated mute changes nothing. Raises NotFound, and BadRequest for the user itself."""
        await self._scripts.write("mute", idempotency_key, uid, muted_uid)

    async def unmute(self, uid: str, muted_uid: str, idempotency_key: IdempotencyKey) -> None:
        """End a mute. Raises the errors of :meth:`mute`."""
        await self._scripts.write("unmute", idempotency_key, uid, muted_uid)

    async def list_muted(self, uid: str, page_request: PageRequest) -> Page:
        """Return the users whom a user mutes, as JSON with ``since``, newest mute first. Raises InvalidCursor."""
        return await read_page(self._scripts, "users_page", keys.key_for("mutes", uid), page_request, uid, "", "")
