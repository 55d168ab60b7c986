"""Notifications: what other users did that concerns the caller."""

from typing import Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions
from stream_server.wire.objects import Notification


class NoticeCalls(CallGroup):
    """The calls about notifications."""

    async def notifications(self, **options: Unpack[PageOptions]) -> Page[Notification]:
        """Read the caller's notifications. The page says how many are unread."""
        return await self._page(Notification, "notifications", "/v1/notifications", options)

    async def mark_notifications_read(self, notification_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mark the notifications as read, up to this one."""
        await self._transport.request("PUT", "/v1/notifications/read", body={"id": notification_id}, **options)
