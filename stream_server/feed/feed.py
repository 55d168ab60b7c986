"""The feed: receive every log entry through PUBLISH, and publish it to the hub, once and in log order.

PUBLISH is the fast path, and the log is the truth. Each message carries the contiguous number of its entry, so the
feed notices a missed entry at once and reads it from the log. A canary compares the hub's head with the log's head.
So the feed also finds a link that is silent without an error, and it reconnects. While the feed is behind, a bounded
number of messages waits, and further ones are dropped. Then the feed reads the log, at its own pace.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial

from stream_server.errors import ApiError
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import parse_published
from stream_server.events.position import LOG_START, Position
from stream_server.feed.link_health import HeardLog, LinkHealth, LinkLost
from stream_server.feed.log_reader import MAX_PAGE_ENTRIES
from stream_server.feed.rollback_detector import RollbackDetector
from stream_server.hub.hub import Hub
from stream_server.hub.messages import ROLLED_BACK, TRIMMED
from stream_server.store.log.event_log import EventLog, Rollbacks
from stream_server.store.redis.subscription import Work
from stream_server.store.social.user_graph import RestrictedAccountsSnapshot

logger = logging.getLogger(__name__)

END_OF_LOG = Position(1 << 52, 0, 1 << 52)
"""A position that the log never reaches, to read all that it has."""

OWN_WRITE_TIMEOUT_SECONDS = 2.0
"""Time in seconds within which the feed should receive an entry that its own process wrote."""


class BetterLink(LinkLost):
    """Raised to end a healthy link, because the replica is usable again. The feed then reconnects."""


class Feed:
    """The link from the log to the hub of one server process. `run` works until it is cancelled.

    ``last_written`` returns the position of the newest entry that this process wrote. The feed calls
    ``on_log_readable`` after each successful check of the log. ``canary_seconds`` is the interval between two checks;
    it may change at any time. ``open_signed`` returns a message of the log without its signature, or None if the
    signature is missing or wrong. ``on_question`` gets the questions of other processes about streams.

    Attributes:
        unsigned: Number of messages without a valid signature. Their entries, if any, were read from the log.
        malformed: Number of messages that were not valid entries.
        duplicates: Number of messages for entries that the hub already had.
        recovered: Number of entries read from the log because their message did not arrive.
        reconnects: Number of times that a subscription ended and the feed connected again.
        rollbacks: Number of times that the log lost entries that the hub had.
    """

    def __init__(
        self, log: EventLog, rollbacks: Rollbacks, hub: Hub,
        read_restricted_accounts: Callable[[], Awaitable[RestrictedAccountsSnapshot]], *,
        last_written: Callable[[], Position], link_health: LinkHealth, on_log_readable: Callable[[], None],
        canary_seconds: float, open_signed: Callable[[bytes], bytes | None],
        on_question: Callable[[bytes], None] = lambda _: None,
    ) -> None:  # fmt: skip
        self._log = log
        self.hub = hub
        self._read_restricted_accounts = read_restricted_accounts
        self._last_written = last_written
        self.link_health = link_health
        self._on_log_readable = on_log_readable
        self._open_signed = open_signed
        self._on_question = on_question
        self._may_have_grown = asyncio.Event()
        self.canary_seconds = canary_seconds
        self.heard_log = HeardLog(lambda: hub.head)
        self.detector = RollbackDetector(log, rollbacks, hub, self._on_rollback)
        self._has_restricted_accounts = False
        self._missing_write: tuple[Position, float] | None = None
        self._accounted_write = LOG_START
        self.unsigned = 0
        self.malformed = self.duplicates = self.recovered = self.reconnects = self.rollbacks = 0

    @property
    def is_ready(self) -> bool:
        """Whether an entry written now would reach the hub."""
        return self.link_health.healthy.is_set()

    # The link: connect, listen, reconnect.

    async def run(self) -> None:
        """Publish all log entries to the hub until cancelled. Reconnect after an error of Redis; raise other errors."""
        while True:
            reason = await self._run_link()
            self._forget_heard()
            self.reconnects += 1
            if isinstance(reason, BetterLink):
                logger.info("subscription to Redis moved: %s", reason)
                continue
            self._log.replica_router.fall_back_to_primary()
            await asyncio.sleep(self.link_health.mark_lost(reason))

    async def _run_link(self) -> Exception:
        """Use one subscription until it ends: listen, and run the canary. Return the exception that ended it.

        The tasks are not in an `asyncio.TaskGroup`, because before Python 3.13 a TaskGroup forgets its cancellation
        if one of its tasks fails at the same moment. A stopping server would then go on running.
        """
        tasks = [
            asyncio.create_task(self._listen(), name="feed: listen"),
            asyncio.create_task(self._run_canary(), name="feed: canary"),
            asyncio.create_task(self._read_when_asked(), name="feed: unsigned messages"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self.detector.unannounced_losses:
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
        """Subscribe to the log. Publish the missed entries to the hub, then each received one."""
        self.detector.recheck_failed.clear()
        with closing(await self._log.subscribe(self._on_question)) as subscription:
            started_at = time.monotonic()
            head = await self.detector.check(check_all=True)
            self._on_log_readable()
            if not self._has_restricted_accounts:
                head = max(head, await self._load_restricted_accounts())
            await self._catch_up(head)
            self.heard_log.record_check(started_at, head)
            self.link_health.mark_healthy()
            handle = partial(self._handle_message, subscription.has_more)
            catch_up = partial(self._catch_up, END_OF_LOG)
            await subscription.deliver(handle, self.hub.live.flusher.flush_if_due, catch_up)

    def _handle_message(self, has_more: Callable[[], bool], message: bytes) -> Work | None:
        """Publish the entry of one message to the hub. Return the work to await before the next message, or None.

        ``has_more`` returns whether further messages were read with this one. If earlier entries are missing, the work
        reads them from the log. A message without a valid signature is never
        published: it only lets the log be read, which may have new entries.
        """
        plain = self._open_signed(message)
        if plain is None:
            self.unsigned += 1
            self._may_have_grown.set()
            return None
        try:
            entry = parse_published(plain)
        except MalformedEntry:
            self.malformed += 1
            return None
        self._require_valid_head()
        live = self.hub.live
        if entry.position.n != live.head.n + 1 or entry.position <= live.head:
            return partial(self._handle_unexpected, entry.position)
        self.hub.publish(entry, is_last=not has_more())
        # In a burst, let further messages wait in the subscription, and not once for each client.
        return live.flusher.drained if live.flusher.is_busy else None

    async def _handle_unexpected(self, position: Position) -> None:
        """Handle a message whose entry does not follow the hub's head: entries are missing, or it is known already.

        One that is older than the ring by number and by id asks Redis nothing: a server that was behind gets thousands
        of them. If it belongs to a rollback after which the clock of Redis was set back, the canary finds it.
        """
        floor = self.hub.ring.floor
        if position.n > self.hub.head.n:
            await self._catch_up(position)
            self.malformed += position.n > self.hub.head.n  # the log does not have this position
        elif self.hub.ring.contains(position) or (position.n <= floor.n and position <= floor):
            self.duplicates += 1
        else:
            await self.detector.check()  # a known number with another id: a rollback, or an invalid message
            self.malformed += 1

    async def _read_when_asked(self) -> None:
        """Read the log after messages without a valid signature, until cancelled. Many such messages cost one read."""
        while True:
            await self._may_have_grown.wait()
            self._may_have_grown.clear()
            await self.link_health.healthy.wait()
            await self._catch_up(END_OF_LOG)
            await asyncio.sleep(0.005)  # a flood of such messages costs few reads

    async def _catch_up(self, target: Position) -> None:
        """Read the log up to ``target`` and publish its entries to the hub. Clients get a `gap` for trimmed entries.

        They get none for a number that no entry has: the log still has the entry before it, or all that it ever had.
        """
        hub = self.hub
        while hub.head.n < target.n:
            head = hub.head
            entries = await self._log.read(head, self._log.page_sizer.page_entries(MAX_PAGE_ENTRIES))
            if not entries:
                return
            if entries[0].position.n != head.n + 1 and not await self._explain_break(head, entries[0].position):
                continue
            self._require_valid_head()
            for entry in entries:
                # The hub may have got some of them meanwhile.
                if entry.position.n == hub.ring.head.n + 1 and entry.position > hub.head:
                    self.recovered += 1
                    hub.publish(entry)
            await hub.live.flusher.drained()

    async def _explain_break(self, head: Position, first: Position) -> bool:
        """Move the hub's head to the entry before ``first``, at which a page begins that does not continue at ``head``.

        Return False if the head has changed meanwhile, and the page must be read again.
        """
        nearest = await self._log.read(head, 1, from_primary=True)  # a replica may lack entries
        located = await self._log.look_up(head.ms, head.seq)  # after reading, because it tells what was there till now
        await self.detector.check()  # was the head lost?
        if self.hub.head != head:
            return False
        resume_after, missed = first.previous(), first.n - head.n - 1
        if missed > 0 and located.has_all_after(head):
            if not nearest or nearest[0].position != first:  # the replica lacks entries, or has lost ones
                self._log.replica_router.fall_back_to_primary()
                return False
            self.hub.ring.skip_to(first.n)
            return True
        if missed < 0:
            self._log_loss(resume_after)
        self._move_head(resume_after, TRIMMED if missed > 0 else ROLLED_BACK, max(missed, 0))
        self.detector.verified_position = self.hub.head  # it was read from the log
        await self._load_restricted_accounts()
        return True

    def _move_head(self, position: Position, reason: str, missed_count: int | None = None) -> None:
        """Move the hub's head past missed entries, or back.

        The account status is read again, because it may differ now.
        """
        self._has_restricted_accounts = False
        self._forget_heard()
        self.hub.move_head(position, reason, missed_count or None)

    def _forget_heard(self) -> None:
        """Forget what rests on the entries received so far, such as remembered tokens: some entries may be missing."""
        self.heard_log.forget()
        self.hub.on_rights_change(None)

    def _on_rollback(self, resume_after: Position) -> None:
        self.rollbacks += 1
        self._log_loss(resume_after)
        self._move_head(resume_after, ROLLED_BACK)

    def _log_loss(self, resume_after: Position) -> None:
        lost = self.hub.head.n - resume_after.n
        logger.error(
            "Redis lost data: %d entries of the log after %s, which it had acknowledged. "
            "Each stream gets a gap (rolled_back); `stream-server repair` mends timelines and counters",
            lost, resume_after.cursor,
        )  # fmt: skip

    async def _load_restricted_accounts(self) -> Position:
        """Read the protected and suspended users. Return the position at which the hub knows them exactly."""
        accounts = await self._read_restricted_accounts()
        self.hub.restricted_accounts.load(accounts.protected, accounts.suspended, accounts.applied_from, accounts.gone)
        self._has_restricted_accounts = True
        return accounts.head

    def _require_valid_head(self) -> None:
        """Raise `LinkLost` while the hub cannot take entries.

        Either a rollback is not announced yet, or the account status (who is suspended or protected) is outdated.
        """
        if self.detector.unannounced_losses or not self._has_restricted_accounts:
            raise LinkLost("entries received earlier are no longer on the log")

    # The canary: does the hub keep up with the log?

    async def _run_canary(self) -> None:
        """Compare the heads of hub and log regularly. Raises `LinkLost` if the log grew but no message arrived."""
        await self.link_health.healthy.wait()
        received = LOG_START
        while True:
            await self._wait_for_next_check()
            await self._log.replica_router.leave_if_behind(received.n)
            received, started_at = self.hub.head, time.monotonic()
            head = await self.detector.check()
            self.heard_log.record_check(started_at, head)
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
                raise BetterLink("reading from the replica again")

    async def _wait_for_next_check(self) -> None:
        try:
            async with asyncio.timeout(self.canary_seconds):
                await self.detector.recheck_failed.wait()
        except TimeoutError:
            return
        raise LinkLost("a recheck of the log found a rollback or failed")

    async def _check_own_write(self) -> None:
        """Announce a rollback if the log lost the newest entry that this process wrote.

        Raises `LinkLost` if the entry is on the log but was not received in time.
        """
        written, now = self._last_written(), time.monotonic()
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
