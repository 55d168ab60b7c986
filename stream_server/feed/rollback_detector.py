"""Rollback detection: find out that Redis lost the end of the log, and announce the rollback on the log.

Redis loses the end of the log in a power cut or a failover. It then uses entry numbers again, and it uses entry ids
again if its clock was set back. So the detector compares both the id and the number of received entries with the log.

It announces a rollback with an entry on the log before any client reads on. A client that returns with a lost cursor,
to any server, is then set back to the position after which the log continues.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import chain, takewhile
from typing import NamedTuple

from stream_server.errors import ApiError, Unavailable
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import LinkLost
from stream_server.hub.hub import Hub
from stream_server.store.log.event_log import EventLog, LogLookup, RecordedRollback, Rollbacks


class AnnouncedRollback(NamedTuple):
    """A rollback that this process announced: the log lost the entries after ``start`` up to ``lost``.

    ``announced_at`` is the position of the log's `rollback` entry. If another server announced the rollback first, its
    position is unknown, and ``announced_at`` has the same value as ``lost``.
    """

    start: Position
    lost: Position
    announced_at: Position


class RollbackDetector:
    """Checks that the entries received by one hub are still on the log.

    After a rollback it calls ``on_rollback`` with the position after which the log continues, and the callback moves
    the hub back. `recheck` sets the event ``recheck_failed`` when it finds a rollback, or when Redis does not answer.
    ``unannounced_losses`` are positions of lost entries, newest first, until their rollback is announced on the log.
    Until then, clients must not read on. ``verified_position`` is the newest position that was found on the log.
    """

    def __init__(self, log: EventLog, rollbacks: Rollbacks, hub: Hub, on_rollback: Callable[[Position], None]) -> None:
        self._log = log
        self._rollbacks = rollbacks
        self._hub = hub
        self._on_rollback = on_rollback
        self.unannounced_losses: list[Position] = []
        self._check_lock = asyncio.Lock()
        self._checks_started = self._last_check_completed = 0
        self._redis_run_id = ""
        self.verified_position = hub.head
        # Positions remembered beyond the ring, one for each check of the canary: more than an hour.
        self._checkpoints = deque([hub.head], maxlen=4096)
        self._announced_rollbacks: list[AnnouncedRollback] = []
        self.recheck_failed = asyncio.Event()

    async def wait_for_running_check(self) -> None:
        """Wait until the running check has ended. Cancelling it instead could interrupt a rollback's announcement."""
        async with self._check_lock:
            pass

    async def recheck(self) -> None:
        """Check whether the log still has the hub's entries. Readers call this if the log lacks their position.

        If the log was rolled back, the hub has moved back when this method returns. Raises `Unavailable` while Redis
        cannot answer or cannot record the rollback.
        """
        checks_started_before = self._checks_started
        try:
            async with self._check_lock:
                # A check that started after this call has already given the answer.
                if self._last_check_completed <= checks_started_before:
                    await self._inspect_log(check_all=True)
        except LinkLost:
            self.recheck_failed.set()
        except ApiError:
            self.recheck_failed.set()
            raise
        if self.unannounced_losses:
            message = "the log was rolled back and Redis does not accept the record yet; try again"
            raise Unavailable(message, retry_after=1)

    async def check(self, *, check_all: bool = False) -> Position:
        """Check that the log still has the newest entry that the hub received. Return the log's head.

        With ``check_all``, check all entries received since the last check. If the log was rolled back, move the hub
        back and raise `LinkLost`. The feed must then reconnect: messages of the old link may belong to lost entries.
        """
        async with self._check_lock:
            return await self._inspect_log(check_all=check_all)

    async def announce_loss(self, lost: Position) -> None:
        """Announce on the log that all entries after the hub's head up to ``lost`` were lost."""
        async with self._check_lock:
            await self._announce(self._hub.head, lost)

    async def _inspect_log(self, *, check_all: bool) -> Position:
        """Check that the log still has the newest received entry; return the log's head. The caller holds the lock.

        With ``check_all``, and after a restart of Redis, check all entries received since the last check.
        """
        self._checks_started += 1
        received = self._hub.head
        run_id, located = await self._log.look_up_with_run_id(received)
        is_missing = received.n > 0 and not located.was_trimmed(received)
        is_missing = is_missing and (located.entry is None or located.entry.position != received)
        if is_missing or check_all or self.unannounced_losses or run_id != self._redis_run_id:
            await self._handle_rollback(received if is_missing else None, located)
        self._redis_run_id, self.verified_position = run_id, received
        self._last_check_completed = self._checks_started
        if received.n > self._checkpoints[-1].n:
            self._checkpoints.append(received)
        return located.head

    async def _handle_rollback(self, missing_head: Position | None, located: LogLookup) -> None:
        """Find the entries that Redis lost. If any, tell all clients, move the hub's head back and raise `LinkLost`."""
        lost = await self._find_lost(located) or ([] if missing_head is None else [missing_head])
        # No client reads on until the rollback is announced. If an earlier announcement was interrupted, repeat it.
        self.unannounced_losses = lost = lost or self.unannounced_losses
        if not lost:
            await self._repeat_announcements(located)
            return
        recorded = await self._announce(await self._find_survivor(lost[-1]), lost[0])
        await self._repeat_announcements(located)
        self.unannounced_losses = []
        if recorded is None:
            raise LinkLost(f"{lost[0].cursor} was missing from the log and is back")
        resume_after = recorded.resume_after
        self.verified_position = resume_after
        self._on_rollback(resume_after)
        while len(self._checkpoints) > 1 and self._checkpoints[-1].n > resume_after.n:
            self._checkpoints.pop()
        message = f"log rolled back: {lost[0].cursor} is gone, the log continues after {resume_after.cursor}"
        raise LinkLost(message)

    async def _find_lost(self, located: LogLookup) -> list[Position]:
        """Of the positions received since the last check, return those that the log has lost, newest first."""
        newest_first = self._hub.ring.positions_newest_first()
        recent = list(takewhile(lambda position: position.n > self.verified_position.n, newest_first))
        if self.verified_position.n:
            # The log may have lost this entry after the last check and have reused its number.
            recent.append(self.verified_position)
        return [position for position in await self._log.find_missing(recent) if not located.was_trimmed(position)]

    async def _find_survivor(self, oldest_lost: Position) -> Position:
        """Of the positions remembered from before ``oldest_lost``, return the newest that is still on the log.

        If none is, return what the log has before the oldest remembered position.
        """
        known = chain(self._hub.ring.positions_newest_first(), reversed(self._checkpoints))
        survivor = await self._log.find_first_present(place for place in known if place.n < oldest_lost.n)
        oldest = self._checkpoints[0]
        if survivor or not oldest.n:
            return survivor or LOG_START
        located = await self._log.look_up(oldest.ms, oldest.seq)
        return located.rollback_start or located.previous or LOG_START

    async def _announce(self, survivor: Position, lost: Position) -> RecordedRollback | None:
        """Record on the log that the entries after ``survivor`` up to ``lost`` were lost, and remember it.

        Return the record, which may be lost too, or None if ``lost`` is back on the log. Raises `Unavailable` while
        Redis does not answer.
        """
        recorded = await self._rollbacks.record(survivor, lost)
        if recorded is not None:
            # A rollback to an older position replaces the remembered rollbacks that start after it.
            still_valid = [known for known in self._announced_rollbacks if known.start <= recorded.resume_after]
            announced = AnnouncedRollback(recorded.resume_after, lost, recorded.recorded_at or lost)
            self._announced_rollbacks = [*still_valid, announced][-16:]
        return recorded

    async def _repeat_announcements(self, located: LogLookup) -> None:
        """Announce a rollback again if the log lost the entry that announced it."""
        positions = [known.announced_at for known in self._announced_rollbacks]
        missing = set(await self._log.find_missing(positions))
        for index, known in enumerate(self._announced_rollbacks):
            if known.announced_at in missing and not located.was_trimmed(known.announced_at):
                recorded = await self._rollbacks.record(known.start, known.lost)
                if recorded is not None and recorded.recorded_at is not None:
                    self._announced_rollbacks[index] = known._replace(announced_at=recorded.recorded_at)
