"""The feed: receive every log entry through PUBLISH, and publish it to the hub, once and in log order.

PUBLISH is the fast path, and the log is the truth. Each message carries the contiguous number of its entry, so the
feed notices a missed entry at once and reads it from the log. A canary compares the hub's head with the log's head.
So the feed also finds a link that is silent without an error, and it reconnects. The feed never buffers messages: a
gap in the numbers only sets the position up to which the feed reads the log.

`rollback_detector` handles a log that lost its end.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from stream_server.errors import ApiError
from stream_server.events.entry import Entry, parse_published
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import LinkHealth, LinkLost
from stream_server.feed.rollback_detector import RollbackDetector
from stream_server.hub.hub import Hub
from stream_server.store.log.event_log import EventLog
from stream_server.store.log.rollbacks import Rollbacks
from stream_server.store.social.user_graph import RestrictedAccounts

logger = logging.getLogger(__name__)

MAX_PAGE_ENTRIES = 512
"""Most entries that one read of the log returns: about 0.5 MB."""

OWN_WRITE_TIMEOUT_SECONDS = 2.0
"""Time in seconds within which the feed should receive an entry that its own process wrote."""


class SwitchToReplica(LinkLost):
    """The link works, but the replica is usable again. The feed reconnects to read from the replica."""


class Feed:
    """The link from the log to the hub of one server process. :meth:`run` works until it is cancelled.

    Attributes:
        canary_seconds: Interval in seconds between two checks of the canary. It may change at any time.
        detector: The rollback detector. Readers call its ``recheck``.
        link_health: The health of the subscription.
        malformed: Number of messages that were not valid entries.
        duplicates: Number of messages for entries that the hub already had.
        recovered: Number of entries read from the log because their message did not arrive.
        reconnects: Number of links after the first.
        rollbacks: Number of times that the log lost entries that the hub had.
    """

    def __init__(
        self,
        log: EventLog,
        rollbacks: Rollbacks,
        hub: Hub,
        read_account_status: Callable[[], Awaitable[RestrictedAccounts]],
        *,
        last_written: Callable[[], Position],
        link_health: LinkHealth,
        on_log_readable: Callable[[], None],
        canary_seconds: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect nothing yet.

        Args:
            log: The log to subscribe to and to read.
            rollbacks: The record of rollbacks on the log.
            hub: The hub that gets the entries.
            read_account_status: Reads which accounts are protected or suspended.
            last_written: Returns the newest entry that this process wrote.
            link_health: The health of the subscription, kept by the feed.
            on_log_readable: Called after each successful check of the log.
            canary_seconds: Interval in seconds between two checks of the canary.
            monotonic: A clock in seconds that never jumps.
        """
        self._log = log
        self.hub = hub
        self._read_account_status = read_account_status
        self._last_written = last_written
        self.link_health = link_health
        self._on_log_readable = on_log_readable
        self.canary_seconds = canary_seconds
        self._monotonic = monotonic
        self.detector = RollbackDetector(log, rollbacks, hub, self._on_rollback)
        self._is_account_status_loaded = False
        self._missing_write: tuple[Position, float] | None = None
        self._accounted_write = LOG_START
        self.malformed = 0
        self.duplicates = 0
        self.recovered = 0
        self.reconnects = 0
        self.rollbacks = 0

    @property
    def is_ready(self) -> bool:
        """Whether an entry written now would reach the hub."""
        return self.link_health.healthy.is_set()

    async def wait_ready(self) -> None:
        """Wait until the feed is ready. Return at once if it is ready already."""
        await self.link_health.healthy.wait()

    # The link: connect, listen, reconnect.

    async def run(self) -> None:
        """Follow the log until cancelled. Errors of Redis lead to a reconnect, and any other error ends the feed."""
        while True:
            reason = await self._run_link()
            self.reconnects += 1
            if isinstance(reason, SwitchToReplica):
                logger.info("subscription to Redis moved: %s", reason)
                continue
            logger.warning("subscription to Redis lost: %s", reason)
            self._log.replica_router.fall_back_to_primary()
            await asyncio.sleep(self.link_health.mark_lost())

    async def _run_link(self) -> Exception:
        """Use one subscription until it ends. Return the exception that ended it.

        This is not an `asyncio.TaskGroup`. Before Python 3.13 a TaskGroup forgets its own cancellation if one of its
        tasks fails at the same moment. A stopping server would then go on running.
        """
        tasks = [
            asyncio.create_task(self._listen(), name="feed: listen"),
            asyncio.create_task(self._run_canary(), name="feed: canary"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.detector.has_unannounced_losses:
                # The announcement itself arrives as a message and ends the listener. Do not cancel its writer.
                await self.detector.wait_for_running_check()
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        errors = [result for result in results if isinstance(result, Exception)]
        for error in errors:
            if not isinstance(error, LinkLost | ApiError | OSError):
                raise error
        return errors[0]

    async def _listen(self) -> None:
        """Publish the messages of one subscription to the hub.

        The feed reads the log after Redis has confirmed the subscription, so no entry falls between the two.
        """
        self.detector.recheck_failed.clear()
        async with aclosing(self._log.subscribe()) as messages:
            async for message in messages:
                if message is None:
                    head = await self.detector.check(check_all=True)
                    self._on_log_readable()
                    if not self._is_account_status_loaded:
                        await self._load_account_status()
                    await self._catch_up(head)
                    self.link_health.mark_healthy()
                else:
                    await self._handle_message(message)

    async def _handle_message(self, message: bytes) -> None:
        """Publish the entry of one message. If entries before it are missing, read them from the log first."""
        try:
            entry = parse_published(message)
        except MalformedEntry:
            self.malformed += 1
            return
        self._require_valid_head()
        next_number = self.hub.head.n + 1
        if entry.position.n == next_number and entry.position > self.hub.head:
            self.hub.publish(entry)
            if self.hub.flusher.is_busy:
                # In a burst, let further messages wait in Redis and not here, once for each client.
                await self.hub.flusher.drained()
        elif entry.position.n >= next_number:
            await self._catch_up(entry.position)
            self.malformed += entry.position.n > self.hub.head.n  # the log does not have this position
        elif self.hub.ring.contains(entry.position):
            self.duplicates += 1
        else:
            await self.detector.check()  # a known number with another id: a rollback, or an invalid message
            self.malformed += 1

    async def _catch_up(self, target: Position) -> None:
        """Publish entries from the log up to ``target``. If entries were trimmed before this, clients get a gap."""
        hub = self.hub
        while hub.head.n < target.n:
            head = hub.head
            entries = await self._log.read(head, self._log.page_sizer.page_entries(MAX_PAGE_ENTRIES))
            if not entries:
                return
            missed = entries[0].position.n - head.n - 1
            if missed:
                await self.detector.check()  # the page does not continue at the head: was the head lost?
                if hub.head != head:
                    continue
                reason = "trimmed" if missed > 0 else "rolled_back"
                self._move_head(entries[0].position.previous(), reason, max(missed, 0))
                self.detector.accept_head(hub.head)
                await self._load_account_status()
            self._publish(entries)
            await hub.flusher.drained()

    def _move_head(self, position: Position, reason: str, missed_count: int | None = None) -> None:
        """Move the hub to ``position``.

        The missed entries may have protected an account. So the feed publishes nothing until it has loaded the
        account status again.
        """
        self._is_account_status_loaded = False
        self.hub.move_head(position, reason, missed_count or None)

    def _on_rollback(self, resume_after: Position) -> None:
        """Set the hub back to the position after which the log continues."""
        self.rollbacks += 1
        self._move_head(resume_after, "rolled_back")

    async def _load_account_status(self) -> None:
        """Load which accounts are protected or suspended now. This may be newer than the hub's head, as in a replay."""
        self.hub.account_status.load(*await self._read_account_status())
        self._is_account_status_loaded = True

    def _require_valid_head(self) -> None:
        """Raise `LinkLost` if a recheck for a reader found that the hub must move back."""
        if self.detector.has_unannounced_losses or not self._is_account_status_loaded:
            raise LinkLost("entries received earlier are no longer on the log")

    def _publish(self, entries: list[Entry]) -> None:
        """Publish the entries that continue at the hub's head, which may have moved during the read."""
        self._require_valid_head()
        for entry in entries:
            if entry.position.n == self.hub.head.n + 1 and entry.position > self.hub.head:
                self.recovered += 1
                self.hub.publish(entry)

    # The canary: does the hub keep up with the log?

    async def _run_canary(self) -> None:
        """Compare the hub with the log at each beat. Raises `LinkLost` if the log grew and no message arrived."""
        await self.link_health.healthy.wait()
        while True:
            await self._wait_for_next_check()
            received = self.hub.head
            head = await self.detector.check()
            self._on_log_readable()
            await self._check_own_write()
            if head.n > self.hub.head.n:
                await asyncio.sleep(self.canary_seconds / 2)
                if self.hub.head == received:
                    message = f"no messages received: log head is {head.cursor}, last received is {received.cursor}"
                    raise LinkLost(message)
            else:
                self.link_health.mark_healthy()
            if await self._log.replica_router.try_replica(head.n):
                raise SwitchToReplica("reading from the replica again")

    async def _wait_for_next_check(self) -> None:
        """Wait for the next beat of the canary. Raises `LinkLost` at once if a recheck failed."""
        try:
            async with asyncio.timeout(self.canary_seconds):
                await self.detector.recheck_failed.wait()
        except TimeoutError:
            return
        raise LinkLost("a recheck of the log found a rollback or failed")

    async def _check_own_write(self) -> None:
        """Check that the feed has received the newest entry that this process wrote.

        If the entry is on the log but was not received in time, raise `LinkLost`. If the log lost the entry,
        announce the loss.
        """
        written, now = self._last_written(), self._monotonic()
        known = max(self.hub.head, self._accounted_write)
        if self._missing_write is None or self._missing_write[0] <= known:
            self._missing_write = None if written <= known else (written, now)
        elif now - self._missing_write[1] >= OWN_WRITE_TIMEOUT_SECONDS:
            missing = self._accounted_write = self._missing_write[0]
            located = await self._log.look_up(missing.ms, missing.seq)
            if located.entry is not None:
                raise LinkLost(f"own write {missing.cursor} is on the log but its message was not received")
            if not located.was_trimmed(missing):
                logger.error("the log lost %s, which this process wrote and did not receive", missing.cursor)
                await self.detector.announce_loss(missing)
