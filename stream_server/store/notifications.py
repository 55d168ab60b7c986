"""Notifications: what others did that concerns a user, and up to where the user has read it."""

from stream_server.store import keys
from stream_server.store.page import Page, Piece, walk, walk_with
from stream_server.store.request import Request
from stream_server.store.scripts import Scripts


class Notifications:
    """The notifications of one store. They are made by the writes that they tell of, in the same step."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def page(self, uid: str, piece: Piece) -> Page:
        """A user's notifications as JSON, newest first, in one round trip; raises InvalidCursor.

        Each has the same bytes as its entry on the log, but for what has changed since: counters, and ``read``.
        Left out is what may not be seen now: statuses and comments that are gone or hidden, and the deeds of who is
        blocked, muted or suspended.
        """
        return await walk(self._scripts, "notifications", keys.named("notices", uid), piece, uid)

    async def page_with_unread(self, uid: str, piece: Piece) -> tuple[Page, int]:
        """Both :meth:`page` and :meth:`unread`, of one moment and in one round trip."""
        page, (count,) = await walk_with(self._scripts, "notifications", keys.named("notices", uid), piece, uid)
        return page, count

    async def unread(self, uid: str) -> int:
        """How many of them are above the read mark: exact up to 100, beyond that hidden ones are counted too."""
        count: int = await self._scripts.read("unread", keys.META, uid)
        return count

    async def mark_read(self, uid: str, notification_id: str, request: Request) -> int:
        """All up to this id are read; gives how many are not. A smaller id than before changes nothing.

        Any id that was made by now will do, since a notification may be taken back while it is read. Raises
        NotFound for an id that was not.
        """
        answer = await self._scripts.write("mark_read", request, uid, notification_id)
        return int(answer.value)
