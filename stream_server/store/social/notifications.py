"""Notifications: what other users did that concerns a user, and the mark up to which the user has read them."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page, read_page_with_extra
from stream_server.store.redis.scripts import Scripts


class Notifications:
    """Reads notifications and moves the read mark.

    The script of a write also makes its notifications, in the same atomic step.
    """

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def list_notifications(self, uid: str, page_request: PageRequest) -> Page:
        """Return a user's notifications as JSON, newest first, in one round trip. Raises InvalidCursor.

        Each has the same bytes as its log entry, except for what has changed since: the counters and ``read``. A
        notification is left out while its status or comment is deleted or hidden, and while its source is blocked,
        muted or suspended.
        """
        return await read_page(self._scripts, "notifications_page", keys.key_for("notices", uid), page_request, uid)

    async def list_with_unread_count(self, uid: str, page_request: PageRequest) -> tuple[Page, int]:
        """Return :meth:`list_notifications` and :meth:`count_unread`, read in one step and one round trip."""
        page, (count,) = await read_page_with_extra(
            self._scripts, "notifications_page", keys.key_for("notices", uid), page_request, uid
        )
        return page, count

    async def count_unread(self, uid: str) -> int:
        """Return how many notifications are above the read mark.

        Of the newest 100, hidden notifications are not counted. Beyond these, all are counted.
        """
        count: int = await self._scripts.call("notifications_count_unread", keys.META, uid)
        return count

    async def mark_read(self, uid: str, notification_id: str, idempotency_key: IdempotencyKey) -> int:
        """Mark all notifications up to an id as read. Returns how many remain unread.

        The mark never moves back. The id need not be of an existing notification, because a notification can be
        withdrawn while the user reads it. Raises NotFound for an id that lies in the future.
        """
        reply = await self._scripts.write("notifications_mark_read", idempotency_key, uid, notification_id)
        return int(reply.value)
