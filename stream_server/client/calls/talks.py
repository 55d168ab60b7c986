"""Talks: direct messages between two or more users."""

from collections.abc import Sequence
from typing import Any, Unpack

from stream_server.client.calls.call_group import CallGroup, Page, PageOptions, WriteOptions, path_of
from stream_server.wire.objects import Talk, TalkMessage


class TalkCalls(CallGroup):
    """The calls about direct messages."""

    async def open_talk(
        self, people: Sequence[str], *, name: str | None = None, **options: Unpack[WriteOptions]
    ) -> Talk:
        """Open a talk with these user ids. Two users have one talk: for them the existing one is returned."""
        body: dict[str, Any] = {"people": list(people)} | ({} if name is None else {"name": name})
        return await self._transport.call(Talk, "POST", "/v1/talks", body=body, **options)

    async def send(self, talk_id: str, message: str, **options: Unpack[WriteOptions]) -> TalkMessage:
        """Send a message in a talk."""
        path = path_of("talks/{}/messages", talk_id)
        return await self._transport.call(TalkMessage, "POST", path, body={"message": message}, **options)

    async def mark_talk_read(self, talk_id: str, message_id: str, **options: Unpack[WriteOptions]) -> None:
        """Mark the messages of a talk as read, up to this one."""
        await self._transport.request("PUT", path_of("talks/{}/read", talk_id), body={"id": message_id}, **options)

    async def talks(self, **options: Unpack[PageOptions]) -> Page[Talk]:
        """Read the caller's talks, the one with the latest message first."""
        return await self._page(Talk, "talks", "/v1/talks", options)

    async def messages(self, talk_id: str, **options: Unpack[PageOptions]) -> Page[TalkMessage]:
        """Read the messages of a talk, the newest first."""
        return await self._page(TalkMessage, "messages", path_of("talks/{}/messages", talk_id), options)
