"""The viewers of a process: one for each user who has a stream in it, or had one lately."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from weakref import WeakValueDictionary

from stream_server.events.entry import Entry
from stream_server.events.position import Position
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.sent_subjects import SentSubjects
from stream_server.hub.visibility.viewer import RelationSnapshot, Viewer

RELATION_KINDS = frozenset({"follow", "unfollow", "block", "unblock", "mute", "unmute"})
"""Kinds of entries that change a relation between two users."""

GROUP_KINDS = frozenset({"group_create", "group_join", "group_leave", "group_delete"})
"""Kinds of entries that change who is a member of a group."""

ACCOUNT_STATUS_KINDS = frozenset({"protect", "unprotect", "suspend", "reinstate"})
"""Kinds of entries that change the status of an account."""


class ViewerCache:
    """The viewers of the users who have streams in this process, and of those who had one lately.

    The log's entries keep all of them current. So the relations of a user who returns are not read again. A viewer is
    dropped if no stream refers to it and the viewers that were used later have ``max_kept_relations`` relations, by
    default at most about 20 MB.
    """

    def __init__(
        self, restricted_accounts: RestrictedAccounts, read_relations: Callable[[str], Awaitable[RelationSnapshot]],
        max_kept_relations: int = 100_000,
    ) -> None:  # fmt: skip
        self.sent_subjects = SentSubjects()
        self._restricted_accounts = restricted_accounts
        self._read_relations = read_relations
        self._max_kept_relations = max_kept_relations
        self._viewers: WeakValueDictionary[str, Viewer] = WeakValueDictionary()
        self._reads: dict[str, asyncio.Future[Viewer | None]] = {}
        self._kept: dict[str, tuple[Viewer, int]] = {}
        self._kept_relations = 0

    def __len__(self) -> int:
        return len(self._viewers)

    def get_loaded(self, user_id: str) -> Viewer | None:
        """Return the viewer of a user if the user's relations are loaded, otherwise None."""
        viewer = self._viewers.get(user_id)
        if viewer is None or not viewer.is_loaded:
            return None
        self._keep(viewer)
        return viewer

    async def get(self, user_id: str) -> Viewer:
        """Return the viewer of a user, and read the user's relations first if they are not loaded.

        The cache has the viewer before its relations are read, so it misses no entry that is published meanwhile.
        """
        while True:
            loaded = self.get_loaded(user_id)
            if loaded is not None:
                return loaded
            read = self.start_reading(user_id)
            viewer = read.result() if read.done() else await asyncio.shield(read)
            if viewer is not None and self.is_current(viewer):
                self._keep(viewer)
                return viewer

    def start_reading(self, user_id: str) -> "asyncio.Future[Viewer | None]":
        """Read the relations of a user from Redis.

        Callers that ask meanwhile get the same future, and must not cancel it.

        The future gives the viewer, or None if the relations must be read again. The cache keeps the viewer only after
        :meth:`get` has returned it.
        """
        read = self._reads.get(user_id)
        if read is None:
            viewer = self._viewers.get(user_id)
            if viewer is None:
                viewer = self._viewers[user_id] = Viewer(user_id, self._restricted_accounts, self.sent_subjects)
            read = self._reads[user_id] = asyncio.get_running_loop().create_future()
            relations = asyncio.ensure_future(self._read_relations(user_id))
            if relations.done():
                self._end_read(viewer, read, relations)
            else:
                relations.add_done_callback(partial(self._end_read, viewer, read))
        return read

    def _end_read(
        self, viewer: Viewer, read: "asyncio.Future[Viewer | None]", relations: "asyncio.Future[RelationSnapshot]"
    ) -> None:
        del self._reads[viewer.user_id]
        is_valid = not relations.cancelled() and self.is_current(viewer)
        error = None if relations.cancelled() else relations.exception()
        if is_valid and error is None:
            try:
                viewer.load(relations.result())
            except Exception as invalid:  # noqa: BLE001 - it belongs to those who wait
                error = invalid
        if error is None:
            read.set_result(viewer if is_valid else None)
        else:
            read.set_exception(error)
            read.exception()  # else asyncio logs the error if nobody waits

    def _keep(self, viewer: Viewer) -> None:
        """Keep a viewer as the one that was used last. If there are too many, drop those used least lately."""
        kept = self._kept
        known = kept.pop(viewer.user_id, None)
        weight = viewer.weight if known is None else known[1]
        kept[viewer.user_id] = viewer, weight
        if known is None:
            self._kept_relations += weight
            while self._kept_relations > self._max_kept_relations:
                self._kept_relations -= kept.pop(next(iter(kept)))[1]

    def is_current(self, viewer: Viewer) -> bool:
        """Return whether the viewer is still in the cache, so that it gets all changes of its user's relations."""
        return self._viewers.get(viewer.user_id) is viewer

    def clear(self) -> None:
        """Drop all viewers: their relations may be wrong after a loss of entries. Later streams read new ones."""
        self._viewers = WeakValueDictionary()
        self._kept.clear()
        self._kept_relations = 0

    def forget_read_between(self, start: Position, end: Position) -> None:
        """Drop the viewers whose relations may have been read between two positions, where the log lost its entries.

        Those that are still being read are dropped, too: some of their pages may show a lost entry.
        """
        for viewer in list(self._viewers.values()):
            if not viewer.is_loaded or (start < viewer.read_at and viewer.applied_from < end):
                del self._viewers[viewer.user_id]
                self._kept_relations -= self._kept.pop(viewer.user_id, (viewer, 0))[1]

    def affected_by(self, entry: Entry) -> list[Viewer]:
        """Return the viewers whose relations or view the entry may change. Raises `MalformedEntry` if undecodable."""
        if not self._viewers:
            return []
        if entry.kind == "group_delete":
            group = entry.audience_group  # a viewer that is not loaded may be a member
            return [viewer for viewer in list(self._viewers.values()) if not viewer.is_loaded or group in viewer.groups]
        if entry.kind in RELATION_KINDS | GROUP_KINDS:
            user_ids = entry.event.user_ids if entry.kind in RELATION_KINDS else {entry.event.author or ""}
            return [viewer for user_id in user_ids if (viewer := self._viewers.get(user_id)) is not None]
        return self.readers_of(entry.event.author or "") if entry.kind == "protect" else []

    def readers_of(self, owner: str) -> list[Viewer]:
        """Return the viewers of ``owner`` and of the users who follow ``owner``, or followed ``owner`` earlier."""
        return [viewer for viewer in list(self._viewers.values()) if viewer.is_or_was_reader(owner)]
