"""Timelines after a write: the first pass of the job that the write has left."""

from collections.abc import Sequence


class Syndication:
    """Placeholder."""

    async def spread(self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes]) -> None:
        """A status goes to its first readers."""

    async def clean(self, uid: str, status_id: str, fence: bytes, people: Sequence[bytes]) -> None:
        """A status leaves its first readers."""

    async def pair(
        self, timelines: str, owner: str, author: str, mode: str, fence: bytes, recent: Sequence[bytes]
    ) -> None:
        """An author's statuses enter or leave a home (of ``owner``) or a list's timeline."""
