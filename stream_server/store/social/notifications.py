"""Notifications: what others did that concerns a user, and up to where the user has read it."""

from stream_server.store import keys
from stream_server.store.idempotency import IdempotencyKey
from stream_server.store.pagination import Page, PageRequest, read_page, read_page_with_extra
from stream_server.store.redis.scripts import Scripts


class Notifications:
    """The notifications of one store. They are made by the writes that they tell of, in the same step."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def list_notifications(self, uid: str, page_request: PageRequest) -> Page:
        """A user's notifications as JSON, newest first, in one round trip; raises InvalidCursor.

        Each has the same bytes as its entry on the log, but for what has changed since: counters, and ``read``.
        Left out is what may not be seen now: statuses and comments that are gone or hidden, and the deeds of who is
        blocked, muted or suspended.
        """
        return await read_page(self._scripts, "notifications_page", keys.key_for("notices", uid), page_request, uid)

    async def list_with_unread_count(self, uid: str, page_request: PageRequest) -> tuple[Page, int]:
        """Both :meth:`list_notifications` and :meth:`count_unread`, of one moment and in one round trip."""
        page, (count,) = await read_page_with_extra(
            self._scripts, "notifications_page", keys.key_for("notices", uid), page_request, uid
        )
        return page, count

    async def count_unread(self, uid: str) -> int:
        """How many of them are above the read mark: exact up to 100, beyond that hidden ones are counted too."""
        count: int = await self._scripts.call("notifications_count_unread", keys.META, uid)
        return count

    async def mark_read(self, uid: str, notification_id: str, idempotency_key: IdempotencyKey) -> int:
        """All up to this id are read; gives how many are not. A smaller id than before changes nothing.

        Any id that was made by now will do, since a notification may be taken back while it is read. Raises
        NotFound for an id that was not.
        """
        answer = await self._scripts.write("notifications_mark_read", idempotency_key, uid, notification_id)
        return int(answer.value)
