"""The hub of one server process: it builds the parts of the live fan-out, and is their interface for other packages.

`BackgroundTasks` owns the tasks of streams that catch up or end.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from filters.rules.rule import Rule
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import RIGHTS_KINDS, Entry
from stream_server.events.position import Position
from stream_server.hub import disconnect as reasons
from stream_server.hub.catchup.reader import CatchUpReader, LogPageSource, SavedRulesCache
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.client import Client
from stream_server.hub.client_registry import ClientRegistry
from stream_server.hub.disconnect import DisconnectReason
from stream_server.hub.heartbeats import Heartbeats
from stream_server.hub.limits import MAX_CONCURRENT_PREVIEWS, HubCounters, HubLimits
from stream_server.hub.live_clients import LiveClients
from stream_server.hub.router import INTERNAL_KIND_SET, VISIBILITY_CHANGE_KINDS, RollbackNotices, Router
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts
from stream_server.hub.visibility.viewer import RelationSnapshot
from stream_server.hub.visibility.viewer_cache import ViewerCache
from stream_server.runtime.event_loop import TurnQueue

logger = logging.getLogger(__name__)


class BackgroundTasks:
    """The running tasks of one hub. ``failures`` counts the tasks that ended with an unexpected exception."""

    def __init__(self) -> None:
        self.failures = 0
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run ``coroutine`` as a task and return the task. The caller may cancel it."""
        task = asyncio.create_task(coroutine, name=name)
        self._running.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def cancel_all(self) -> None:
        """Cancel all running tasks and wait until they have ended."""
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._running.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self.failures += 1
            logger.error("stream task failed", exc_info=task.exception())


LEAVE_SECONDS = 0.005
"""Most CPU time in seconds of all streams that leave in one iteration of the event loop. The last may take longer."""


class Hub:
    """Delivers the log's entries to the clients of one server process, live or catching up.

    Attributes:
        counters: Counts what the hub did, for the metrics.
        ring: The newest entries, in memory.
        viewer_cache: The viewers of the users who have streams here, or had one lately.
        saved_rules: The parsed rules of users, for ``rules=saved``.
        preview_slots: Limits the previews of rules that run at the same time.
        catchup_reader: Reads the pages of the clients that are behind the head.
        registry: All clients by user, live or catching up.
        background_tasks: Tasks of the streams that catch up or end.
        departures: Takes the streams whose connections have ended out of the hub.
        live: The clients at the head, with their subscription index and their flusher.
        restricted_accounts: Protected and suspended users. The feed loads it from the store.
        lag_ms: Returns how far this process is known to be behind the log, in ms.
        wait_for_log: Waits until the log can be read again, for at most the given seconds.
        entries_missed: Set when the log lost entries, or trimmed some that this hub did not get.
        on_rights_change: Called with the id of a user whose tokens may no longer be valid; None means every user.
        now_ms: Returns the wall clock's time, in ms since 1970.
        is_stopping: Whether `stop` was called.
        watch_entry: Called before each entry is routed; it returns a function to call after that. None while no request
            is traced.
    """

    def __init__(
        self, limits: HubLimits, log: LogPageSource, head: Position, *,
        now_ms: Callable[[], int], lag_ms: Callable[[], int] = lambda: 0,
        read_relations: Callable[[str], Awaitable[RelationSnapshot]], parse_rule: Callable[[str], Awaitable[Rule]],
    ) -> None:  # fmt: skip
        self.counters = HubCounters()
        self.registry = ClientRegistry()
        self.on_rights_change: Callable[[str | None], None] = lambda _: None
        self.background_tasks = BackgroundTasks()
        self.departures = TurnQueue(asyncio.get_running_loop(), LEAVE_SECONDS)
        self.lag_ms = lag_ms
        self.wait_for_log = log.wait_until_readable
        self.now_ms = now_ms
        self.watch_entry: Callable[[Entry], Callable[[], None]] | None = None
        self.live = LiveClients(limits, head, self.registry, self.counters, now_ms=now_ms)
        self.ring = Ring(head, max_bytes=limits.ring_bytes, max_age_ms=limits.ring_seconds * 1000, now_ms=now_ms)
        self.restricted_accounts = RestrictedAccounts()
        self.viewer_cache = ViewerCache(self.restricted_accounts, read_relations)
        self.saved_rules = SavedRulesCache(parse_rule)
        self.preview_slots = asyncio.Semaphore(MAX_CONCURRENT_PREVIEWS)
        self.catchup_reader = CatchUpReader(self.ring, log, self.restricted_accounts, self.saved_rules)
        self._rollback_notices = RollbackNotices(self.live, self.registry, self.viewer_cache, self.ring, now_ms)
        self._router = Router(
            self.live, self.registry, self.restricted_accounts, self.viewer_cache, self._rollback_notices, self.counters
        )
        self._heartbeats = Heartbeats(self.live, now_ms, lag_ms, after_check=self._drop_unused_caches)
        self._next_disconnect_reason: Callable[[], DisconnectReason] | None = None
        self.is_stopping = False
        self.entries_missed = asyncio.Event()

    @property
    def head(self) -> Position:
        """Position of the last published entry."""
        return self.live.head

    def publish(self, entry: Entry, *, is_last: bool = False) -> None:
        """Queue the next entry of the log for every live client that receives it, or write it at once.

        ``is_last`` says that no further entry was read from Redis with this one.

        Never waits, and never raises because of the entry's content. The head moves after routing, so a client that is
        demoted during routing reads the entry while it catches up. An entry that changes visibility, such as a block,
        takes effect after itself. Only a follow already counts for itself.
        """
        kind, live = entry.kind, self.live
        if kind in RIGHTS_KINDS:
            self.on_rights_change(_user_of(entry))
        routed = None if self.watch_entry is None else self.watch_entry(entry)
        self.counters.published += 1
        self.ring.append(entry)
        try:
            if kind in INTERNAL_KIND_SET:
                self._router.obey(entry)
            elif live.count:
                if kind == "follow":  # its user may see whom it is about, also if protected
                    self._router.apply_to_viewers(entry)
                elif kind == "uncomment":
                    self._router.part_readers(entry)
                self._router.deliver(entry, is_last=is_last and routed is None)  # a trace shows the end of a flush
                live.flusher.count_entry(entry)
        except MalformedEntry:
            self.counters.malformed += 1
        finally:
            live.head = entry.position
        if kind in VISIBILITY_CHANGE_KINDS:
            self._router.apply_visibility_change(entry)
        if routed is not None:
            routed()

    def move_head(self, to: Position, reason: str, missed_count: int | None = None) -> None:
        """Make ``to`` the head, so that the next entry is the one after ``to``. Send each live client a `gap`.

        With the reason ``rolled_back``, Redis lost the end of the log, and ``to`` is below the old head. With the
        reason ``trimmed``, Redis no longer has the entries that this hub missed, and ``to`` is above the old head.
        """
        self._rollback_notices.move_head(to, reason, missed_count)
        self.entries_missed.set()

    @property
    def limits(self) -> HubLimits:
        return self.live.limits

    def _drop_unused_caches(self) -> None:
        self.ring.drop_unread_caches()
        self.catchup_reader.replay_index.drop_unused_blocks()
        self.viewer_cache.sent_subjects.sweep(5000)  # of ended streams, in about a millisecond

    def start(self) -> None:
        """Begin to send heartbeats."""
        self._heartbeats.start()

    def register(self, client: Client) -> None:
        """Add a client, live or not, so that the hub finds it by its user and token.

        The hub disconnects it at once if its user is suspended, its viewer is outdated, or the hub is stopping.
        """
        self.registry.add(client)
        if client.user_id in self.restricted_accounts.suspended:
            is_gone = client.user_id in self.restricted_accounts.gone
            client.disconnect(reasons.ACCOUNT_DELETED if is_gone else reasons.SUSPENDED)
        if client.viewer is not None and not self.viewer_cache.is_current(client.viewer):
            client.disconnect(reasons.RESYNC)
        if self._next_disconnect_reason is not None:
            client.disconnect(self._next_disconnect_reason())

    def unregister(self, client: Client) -> None:
        """Remove a client whose connection or request has ended. It is not woken any more."""
        if client.group is not None:
            self.live.remove(client, self.live.head)
        self.registry.discard(client)
        if client.private_view is not None:
            client.end_private_view()
        if client.disconnect_reason is None:
            client.disconnect_reason = reasons.GONE

    def stop(self, next_disconnect_reason: Callable[[], DisconnectReason]) -> None:
        """End all streams, and each later one as it begins. For each, ``next_disconnect_reason`` returns the reason."""
        self._next_disconnect_reason, self.is_stopping = next_disconnect_reason, True
        self._heartbeats.stop()
        for client in self.registry.list_clients():
            client.disconnect(next_disconnect_reason())

    async def wait_until_empty(self, timeout_seconds: float) -> None:
        """Wait until no client is left, at most ``timeout_seconds``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_seconds):
                await self.registry.empty.wait()


def _user_of(entry: Entry) -> str | None:
    """Return the user whom an entry of `RIGHTS_KINDS` names. None if it names no user: a `rollback`, or malformed."""
    try:
        return entry.revocation().uid
    except MalformedEntry:
        return None
