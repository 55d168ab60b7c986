"""Notifications: what other users did that concerns a user, and the mark up to which the user has read them."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page
from stream_server.store.social.noun import Noun


class Notifications(Noun):
    """Reads a user's notifications, and marks them as read. Writes of other users, such as likes, create them."""

    async def list_notifications(self, uid: str, page_request: PageRequest) -> Page:
        """Return a user's notifications as JSON, newest first, in one round trip.

        Each JSON is that of the notification's log entry, but with the present counters of its status and the present
        ``read``. A notification is left out while its status or comment is deleted or hidden, and while the user who
        caused it is blocked, muted or suspended.
        """
        page, _ = await self.list_with_unread_count(uid, page_request)
        return page

    async def list_with_unread_count(self, uid: str, page_request: PageRequest) -> tuple[Page, int]:
        """Return a page of a user's notifications as JSON, and the number of unread ones at the same moment."""
        key = keys.key_for("notices", uid)
        page, (count,) = await read_page(self._scripts, "notifications_page", key, page_request, uid)
        return page, count

    async def count_unread(self, uid: str) -> int:
        """Return the number of a user's unread notifications. Only among the newest 100 are hidden ones left out."""
        count: int = await self._scripts.call("notifications_count_unread", keys.META, uid)
        return count

    async def mark_read(self, uid: str, notification_id: str, idempotency_key: IdempotencyKey) -> int:
        """Mark the notification with this id and all older ones as read. Return how many remain unread.

        An id below that of an earlier call changes nothing. The notification with this id need not exist any more.
        Raises NotFound if the id is higher than all ids that the store has issued.
        """
        reply = await self._scripts.write("notifications_mark_read", idempotency_key, uid, notification_id)
        return int(reply.value.rpartition(b" ")[2])
