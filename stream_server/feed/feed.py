"""Hears the log and hands it to the hub: every entry, once, in order.

PUBLISH is the fast path, the log is the truth. Each message carries its contiguous number, so a missed one
is known at once and read from the log; a canary compares the hub's head with the log's, so that a link which
is silent without an error is found as well, and dialled anew. Live messages are never buffered: on a gap they
only raise the target up to which the log is read.

A log may also lose its end: a power cut, a failover. Its numbers are used again then, and ids too with the clock set
back, so the feed looks whether what it heard is still there. What is not is told on the log itself before anybody
reads on, so that whoever returns with a lost cursor, to whichever server, is set back to where the log went on.
"""

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from itertools import chain, takewhile
from typing import NamedTuple

from stream_server.errors import ApiError, Unavailable
from stream_server.events.entry import Entry, parse_published
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import LinkHealth
from stream_server.hub.hub import Hub
from stream_server.store.log.event_log import EventLog, LogLookup
from stream_server.store.log.rollbacks import RecordedRollback, Rollbacks
from stream_server.store.social.user_graph import RestrictedAccounts

logger = logging.getLogger(__name__)

MAX_PAGE_ENTRIES = 512
"""Entries a read of the log, at most: about 0.5 MB."""

OWN_WRITE_TIMEOUT_SECONDS = 2.0
"""What this process was told is written should have been heard by then."""


MAX_REMEMBERED_ROLLBACKS = 16
"""So many lost ends of the log are remembered here."""


MAX_CHECKPOINTS = 4096
"""So many places are remembered beyond those in the ring, one a beat: an hour and more."""


class LinkLost(Exception):
    """The subscription ended, or cannot be trusted any more: dial anew and read the log first."""


class SwitchToReplica(LinkLost):
    """All is well, but there is a better place to hear from."""


class AnnouncedRollback(NamedTuple):
    """What the log lost up to ``lost``, as it was told by the entry ``announced_at``, or by another that is not known here."""

    start: Position
    lost: Position
    announced_at: Position


class Feed:
    """One worker's link to the log; :meth:`run` owns it until cancelled.

    ``written`` is the newest entry that this process was told it wrote. ``malformed`` counts messages that were no
    entries, ``duplicates`` those heard before, ``recovered`` entries read from the log, ``reconnects`` the links after the
    first, ``rollbacks`` the times that the log had lost what was heard. All seconds are of a clock that never jumps.
    """

    def __init__(
        self,
        log: EventLog,
        rollbacks: Rollbacks,
        hub: Hub,
        read_account_status: Callable[[], Awaitable[RestrictedAccounts]],
        *,
        last_written: Callable[[], Position],
        canary_seconds: float,
        random_source: random.Random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._log = log
        self._rollbacks = rollbacks
        self.hub = hub
        self._read_account_status = read_account_status
        self._last_written = last_written
        self.canary_seconds = canary_seconds
        self._monotonic = monotonic
        self._link_health = LinkHealth(random_source, monotonic=monotonic)
        self._is_account_status_loaded = False
        self._unannounced_losses: list[Position] = []
        self._recheck_failed = asyncio.Event()
        self._check_lock = asyncio.Lock()
        self._checks_started = self._last_check_completed = 0
        self._redis_run_id = ""
        self._verified_position = hub.head
        self._checkpoints = deque([hub.head], maxlen=MAX_CHECKPOINTS)
        self._announced_rollbacks: list[AnnouncedRollback] = []
        self._unheard_write: tuple[Position, float] | None = None
        self._accounted_write = LOG_START
        self.malformed = 0
        self.duplicates = 0
        self.recovered = 0
        self.reconnects = 0
        self.rollbacks = 0
        self.lag_ms = hub.lag_ms = self._link_health.lag_ms
        log.verify_feed = self.recheck

    @property
    def is_ready(self) -> bool:
        """Whether an event that is written now would arrive."""
        return self._link_health.healthy.is_set()

    async def wait_ready(self) -> None:
        """Until the feed is ready for the first time, or again."""
        await self._link_health.healthy.wait()

    # The link: dialled, listened to, dialled anew.

    async def run(self) -> None:
        """Listen and watch until cancelled; what Redis does is waited out, any other failure ends it."""
        while True:
            lost = await self._run_link()
            self.reconnects += 1
            if isinstance(lost, SwitchToReplica):
                logger.info("link to Redis: %s", lost)
                continue
            logger.warning("link to Redis: %s", lost)
            self._log.replica_router.fall_back_to_primary()
            await asyncio.sleep(self._link_health.mark_lost())

    async def _run_link(self) -> Exception:
        """One life of the link; gives what ended it.

        Not a TaskGroup: before Python 3.13 that forgets that it was cancelled when a task of its fails just then, and a
        server would live on that was told to stop.
        """
        life = [
            asyncio.create_task(self._listen(), name="feed: listen"),
            asyncio.create_task(self._run_canary(), name="feed: canary"),
        ]
        try:
            await asyncio.wait(life, return_when=asyncio.FIRST_COMPLETED)
            if self._unannounced_losses:
                async with self._check_lock:  # whoever tells it is not to be cut off by hearing his own word
                    pass
        finally:
            for task in life:
                task.cancel()
            ended = await asyncio.gather(*life, return_exceptions=True)
        reasons = [why for why in ended if isinstance(why, Exception)]
        for why in reasons:
            if not isinstance(why, LinkLost | ApiError | OSError):
                raise why
        return reasons[0]

    async def _listen(self) -> None:
        """One life of the subscription; the log is read once it is confirmed, so nothing falls between."""
        self._recheck_failed.clear()
        async with aclosing(self._log.subscribe()) as messages:
            async for message in messages:
                if message is None:
                    head = await self._check_log(check_all=True)
                    self.hub.log_available.set()
                    if not self._is_account_status_loaded:
                        await self._load_account_status()
                    await self._catch_up(head)
                    self._link_health.mark_healthy()
                else:
                    await self._handle_message(message)

    async def _handle_message(self, message: bytes) -> None:
        try:
            entry = parse_published(message)
        except MalformedEntry:
            self.malformed += 1
            return
        self._require_valid_head()
        following = self.hub.head.n + 1
        if entry.position.n == following and entry.position > self.hub.head:
            self.hub.publish(entry)
            if self.hub.flusher.is_busy:
                await self.hub.flusher.drained()  # in a burst the rest waits in Redis, not here once for each client
        elif entry.position.n >= following:
            await self._catch_up(entry.position)
            self.malformed += entry.position.n > self.hub.head.n  # it names a place that the log does not have
        elif self.hub.ring.contains(entry.position):
            self.duplicates += 1
        else:
            await self._check_log()  # a number that was heard with another id: another history, or junk
            self.malformed += 1

    async def _catch_up(self, target: Position) -> None:
        """Publish from the log until ``target`` is reached; what was trimmed before it was read is told."""
        hub = self.hub
        while hub.head.n < target.n:
            heard = hub.head
            entries = await self._log.read(heard, self._log.page_sizer.page_entries(MAX_PAGE_ENTRIES))
            if not entries:
                return
            missed = entries[0].position.n - heard.n - 1
            if missed:
                await self._check_log()  # the log goes on elsewhere than behind the head: is that still there?
                if hub.head != heard:
                    continue
                self._move_head(
                    entries[0].position.previous(), "trimmed" if missed > 0 else "rolled_back", max(missed, 0)
                )
                await self._load_account_status()
            self._publish(entries)
            await hub.flusher.drained()

    def _move_head(self, to: Position, reason: str, missed_count: int | None = None) -> None:
        """What was lost may have been a protection: nothing is published until it is known who has it."""
        self._is_account_status_loaded = False
        self.hub.move_head(to, reason, missed_count or None)
        self._verified_position = to

    async def _load_account_status(self) -> None:
        """Who is protected and suspended now: later than the hub's head perhaps, as it is for whoever replays."""
        self.hub.account_status.load(*await self._read_account_status())
        self._is_account_status_loaded = True

    def _require_valid_head(self) -> None:
        """Raises :class:`LinkLost` where a look on behalf of a reader has found that the hub has to go back."""
        if self._unannounced_losses or not self._is_account_status_loaded:
            raise LinkLost("what was heard is not on the log any more")

    def _publish(self, entries: list[Entry]) -> None:
        """As far as they go on from the head: it may have moved while they were read."""
        self._require_valid_head()
        for entry in entries:
            if entry.position.n == self.hub.head.n + 1 and entry.position > self.hub.head:
                self.recovered += 1
                self.hub.publish(entry)

    # The canary: is the hub where the log is?

    async def _run_canary(self) -> None:
        """Raises :class:`LinkLost` when the log went on and nothing of it was heard for a beat."""
        await self._link_health.healthy.wait()
        while True:
            await self._wait_for_next_check()
            heard = self.hub.head
            head = await self._check_log()
            self.hub.log_available.set()
            await self._check_own_write()
            if head.n > self.hub.head.n:
                await asyncio.sleep(self.canary_seconds / 2)
                if self.hub.head == heard:
                    message = f"silent: the log is at {head.cursor}, heard until {heard.cursor}"
                    raise LinkLost(message)
            else:
                self._link_health.mark_healthy()
            if await self._log.replica_router.try_replica(head.n):
                raise SwitchToReplica("the log is heard from the replica again")

    async def _wait_for_next_check(self) -> None:
        """Until the next beat; raises :class:`LinkLost` at once where a reader's doubt was found to be right."""
        try:
            async with asyncio.timeout(self.canary_seconds):
                await self._recheck_failed.wait()
        except TimeoutError:
            return
        raise LinkLost("a reader's doubt in what was heard was right")

    async def _check_own_write(self) -> None:
        """What this process was told is written is heard, or on the log, or was lost; it is said which.

        Raises :class:`LinkLost` where it is on the log.
        """
        written, now = self._last_written(), self._monotonic()
        known = max(self.hub.head, self._accounted_write)
        if self._unheard_write is None or self._unheard_write[0] <= known:
            self._unheard_write = None if written <= known else (written, now)
        elif now - self._unheard_write[1] >= OWN_WRITE_TIMEOUT_SECONDS:
            lost = self._accounted_write = self._unheard_write[0]
            located = await self._log.look_up(lost.ms, lost.seq)
            if located.entry is not None:
                raise LinkLost(f"deaf: this process wrote {lost.cursor}, which is on the log and was not heard")
            if not located.was_trimmed(lost):
                logger.error("the log lost %s, which this process wrote and never heard", lost.cursor)
                async with self._check_lock:
                    await self._announce(self.hub.head, lost)

    async def recheck(self) -> None:
        """Look whether the hub's own place is there, for whoever found that another is not.

        If not, the hub has gone back when this returns. Raises Unavailable while that cannot be known or told.
        """
        asked = self._checks_started
        try:
            async with self._check_lock:
                if self._last_check_completed <= asked:  # else one that began after the doubt did has answered it too
                    await self._inspect_log(check_all=True)
        except LinkLost:
            self._recheck_failed.set()
        except ApiError:
            self._recheck_failed.set()
            raise
        if self._unannounced_losses:
            raise Unavailable("the log lost what was told, and takes no word of it yet", retry_after=1)

    async def _check_log(self, *, check_all: bool = False) -> Position:
        """The log's head; raises :class:`LinkLost` if the log lost what was heard, when the hub has gone back.

        What comes after that is read by a new link, whatever was on its way.
        """
        async with self._check_lock:
            return await self._inspect_log(check_all=check_all)

    async def _inspect_log(self, *, check_all: bool) -> Position:
        """The log's head; ``check_all`` looks at all that was heard since the last beat.

        So it is also on a Redis that was started since: it may have lost some, and be longer again than it was.
        """
        self._checks_started += 1
        heard = self.hub.head
        run, located = await self._log.look_up_with_run_id(heard)
        gone = heard.n > 0 and not located.was_trimmed(heard)
        gone = gone and (located.entry is None or located.entry.position != heard)
        if gone or check_all or self._unannounced_losses or run != self._redis_run_id:
            await self._handle_rollback(heard if gone else None, located)
        self._redis_run_id, self._verified_position, self._last_check_completed = run, heard, self._checks_started
        if heard.n > self._checkpoints[-1].n:
            self._checkpoints.append(heard)
        return located.head

    async def _handle_rollback(self, missing: Position | None, located: LogLookup) -> None:
        """To the newest place that is left, if something is not; raises :class:`LinkLost` then."""
        ring = self.hub.ring
        recent = list(takewhile(lambda place: place.n > self._verified_position.n, ring.positions_newest_first()))
        if self._verified_position.n:
            recent.append(
                self._verified_position
            )  # what was there then may be lost since, and heard over by what came instead
        lost = [place for place in await self._log.find_missing(recent) if not located.was_trimmed(place)]
        if missing is not None:
            lost = lost or [missing]
        # Until it is told, nobody hears more. What was found before is told also if that was broken off on the way.
        self._unannounced_losses = lost = lost or self._unannounced_losses
        if not lost:
            await self._repeat_announcements(located)
            return
        known = (
            place for place in chain(ring.positions_newest_first(), reversed(self._checkpoints)) if place.n < lost[-1].n
        )
        survivor = await self._log.find_first_present(known) or await self._position_below_checkpoints()
        told = await self._announce(survivor, lost[0])
        await self._repeat_announcements(located)
        self._unannounced_losses = []
        if told is None:
            raise LinkLost(f"{lost[0].cursor} was not on the log, and is again")
        self.rollbacks += 1
        self._move_head(told.resume_after, "rolled_back")
        while len(self._checkpoints) > 1 and self._checkpoints[-1].n > told.resume_after.n:
            self._checkpoints.pop()
        message = f"the log was rolled back: {lost[0].cursor} is gone, it goes on after {told.resume_after.cursor}"
        raise LinkLost(message)

    async def _announce(self, survivor: Position, lost: Position) -> RecordedRollback | None:
        """Remembered, since what was told may be lost as well; where the log goes on further down, that holds now."""
        told = await self._rollbacks.record(survivor, lost)
        if told is not None:
            standing = [one for one in self._announced_rollbacks if one.start <= told.resume_after]
            self._announced_rollbacks = [
                *standing,
                AnnouncedRollback(told.resume_after, lost, told.recorded_at or lost),
            ][-MAX_REMEMBERED_ROLLBACKS:]
        return told

    async def _repeat_announcements(self, located: LogLookup) -> None:
        """What was told by an entry that is lost as well is told again."""
        words = set(await self._log.find_missing([one.announced_at for one in self._announced_rollbacks]))
        for at, one in enumerate(self._announced_rollbacks):
            if one.announced_at in words and not located.was_trimmed(one.announced_at):
                again = await self._rollbacks.record(one.start, one.lost)
                if again is not None and again.recorded_at is not None:
                    self._announced_rollbacks[at] = one._replace(announced_at=again.recorded_at)

    async def _position_below_checkpoints(self) -> Position:
        """The newest place on the log below all that is remembered: what this hub had there, nobody knows."""
        oldest = self._checkpoints[0]
        if not oldest.n:
            return LOG_START
        located = await self._log.look_up(oldest.ms, oldest.seq)
        return located.rollback_start or located.previous or LOG_START
