"""Reading on from a position through a filter: what was away, too slow, or asks for the past, reads here."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from filters.base import FilterFailure
from filters.index_keys import Key
from stream_server.events.entry import Entry
from stream_server.events.entry_fields import MalformedEntry
from stream_server.events.position import Position
from stream_server.hub.catchup.replay_index import ReplayIndex, ReplayQuery
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.catchup.scheduler import CatchUpScheduler
from stream_server.hub.client import Client
from stream_server.hub.delivery import Delivery, decide
from stream_server.hub.messages import ROLLED_BACK, Gap, StreamNotice
from stream_server.hub.saved_rules import SavedRulesCache
from stream_server.hub.visibility.account_status import AccountStatus
from stream_server.hub.visibility.rendering import Deleted

logger = logging.getLogger(__name__)

MAX_PAGE_ENTRIES = 256
MAX_PAGE_BYTES = 131_072
"""One page: as much as one write may hold."""

MAX_PAGE_SECONDS = 0.004
"""…and no longer than this of matching, since everybody else waits meanwhile."""


class LogPage(NamedTuple):
    """A piece of the log; ``is_contiguous`` says that it begins where it was asked to: nothing was trimmed or rolled back."""

    entries: list[Entry]
    is_contiguous: bool


class LogPageSource(Protocol):
    """The log behind the ring; reading it is single flight and bounded, whoever asks."""

    async def read_page(self, after: Position, max_entries: int) -> LogPage:
        """Entries after a position; raises errors.Unavailable while Redis is away."""

    async def wait_until_readable(self, timeout_seconds: float) -> None:
        """Wait until the log is readable again, for at most ``timeout_seconds``."""


class CatchUpPage(NamedTuple):
    """What a reader found: ``deliveries`` of the entries up to ``end_position``, and what was missing before them.

    ``notice`` is what changed in the member's filters at ``end_position``, where the page ends for that, or what the log says
    there that it lost; ``rules_entry`` is the entry that is still to change the filters.
    """

    deliveries: list[Delivery]
    end_position: Position
    gap: Gap | None
    notice: Gap | StreamNotice | None = None
    rules_entry: Entry | None = None


class CatchUpReader:
    """The one place where a past entry meets a filter; used by streams and long polls alike.

    ``failures`` counts the exceptions of filters: what raises does no more on the stream where it did.
    """

    def __init__(
        self, ring: Ring, log: LogPageSource, account_status: AccountStatus, saved_rules: SavedRulesCache
    ) -> None:
        self.failures = 0
        self.replay_index = ReplayIndex(ring)
        self._ring = ring
        self._log = log
        self._account_status = account_status
        self._saved_rules = saved_rules
        self._scheduler = CatchUpScheduler()

    async def read_page(self, client: Client, get_end: Callable[[], Position]) -> CatchUpPage:
        """The member's next page, never beyond where ``get_end`` says that the head is once it is the member's turn.

        A head that was looked up before that would be old by then, and with many who wait nobody would reach it.
        """
        await self._scheduler.wait_turn(client.position.n)
        position, head = client.position, get_end()
        if self._ring.covers(position):
            return await self._apply_rules_change(
                client, self._record_duration(self._read_ring, client, position, head)
            )
        if position[:2] > self._ring.floor[:2]:  # within the ring's time, but nothing that was heard
            resume = self._ring.resume_position_for(position)
            client.last_rollback = (resume, position)
            return CatchUpPage([], resume, Gap(position.cursor, resume, ROLLED_BACK, None))
        read = await self._log.read_page(position, MAX_PAGE_ENTRIES)
        await self._scheduler.wait_turn(position.n)  # one read wakes all who waited for it
        head = get_end()
        entries = [entry for entry in read.entries if entry.position <= head]
        if not entries:
            return CatchUpPage([], head, _gap_before(position, head, is_contiguous=False))
        lost = _gap_before(position, entries[0].position.previous(), is_contiguous=read.is_contiguous)
        return await self._apply_rules_change(
            client, self._record_duration(self._match_entries, client, entries, position, lost)
        )

    def _record_duration(self, read: Callable[..., CatchUpPage], *given: object) -> CatchUpPage:
        """A page, and to the turns how long it took."""
        began = time.monotonic()
        try:
            return read(*given)
        finally:
            self._scheduler.record_page(time.monotonic() - began)

    async def _apply_rules_change(self, client: Client, page: CatchUpPage) -> CatchUpPage:
        """The page, with the change that stands at its end made: who reads its rules is not live, and may wait."""
        if page.rules_entry is None:
            return page
        return page._replace(notice=await self._saved_rules.apply_change(client, page.rules_entry), rules_entry=None)

    def _read_ring(self, client: Client, position: Position, head: Position) -> CatchUpPage:
        """Where it reads to the head, and nothing that it reads changes its filters, most entries are passed over."""
        client.use_private_view_if_needed()
        if head == self._ring.head and client.private_view is None and not client.uses_saved_rules:
            ends = time.monotonic() + MAX_PAGE_SECONDS / 2  # the other half is for what may match
            ask = ReplayQuery(client.subscription, client.search_keys)
            entries, reached = self.replay_index.find_after(position, ask, MAX_PAGE_BYTES, ends)
            if reached != position:
                return self._match_entries(client, entries, position, None, reached)
        entries = self._ring.read_after(position, max_entries=MAX_PAGE_ENTRIES, max_bytes=MAX_PAGE_BYTES)
        if entries and entries[-1].position > head:
            entries = [entry for entry in entries if entry.position <= head]
        return self._match_entries(client, entries, position, None)

    def _match_entries(
        self,
        client: Client,
        entries: list[Entry],
        position: Position,
        gap: Gap | None,
        scanned_to: Position | None = None,
    ) -> CatchUpPage:
        """The page ends where the member's filters change: what comes after that is matched by the new ones.

        Gone through to its end it reaches the last entry, or as far as it is known that nothing else would match.
        """
        client.use_private_view_if_needed()
        sought = client.search_keys
        ends = time.monotonic() + (MAX_PAGE_SECONDS if scanned_to is None else MAX_PAGE_SECONDS / 2)
        wanted: list[Delivery] = []
        upto = position if gap is None else gap.end
        for entry in entries:
            try:
                picked = self._decide_delivery(client, entry, sought)
            except FilterFailure as failed:
                self.failures += 1
                logger.warning("%s; it is put out on one stream", failed)
                return CatchUpPage(wanted, upto, gap, client.disable_filter(failed, upto))
            if picked is not None:
                wanted.append(picked)
            upto = entry.position
            if entry.kind == "rollback" and (told := _rollback_gap_or_none(entry, client)) is not None:
                return CatchUpPage(wanted, upto, gap, told)
            if client.is_changed_by_rules_entry(entry):
                return CatchUpPage(wanted, upto, gap, rules_entry=entry)
            if time.monotonic() > ends:
                return CatchUpPage(wanted, upto, gap)
        return CatchUpPage(wanted, upto if scanned_to is None else scanned_to, gap)

    def _decide_delivery(self, client: Client, entry: Entry, search_keys: frozenset[Key] | None) -> Delivery | None:
        """As this member may see it and as it is by now: what it showed may be gone. Raises Failed.

        Nearly all that a returning client passes has none of its keys, as in the index; of a quote that is not known.
        """
        try:
            if (
                search_keys is not None
                and entry.quoted_author is None
                and search_keys.isdisjoint(entry.event.index_keys)
            ):
                return None
            view = client.private_view or client.request.viewer or self._account_status
            delivery = decide(entry, client.subscription, view, self._find_deleted(entry))
            if client.private_view is not None and client.private_view.is_follow_change(entry):
                client.private_view.apply_follow_change(entry)
        except MalformedEntry:
            return None
        return delivery

    def _find_deleted(self, entry: Entry) -> Deleted:
        """Return what of the entry is deleted by now: found in the store, or deleted by a later entry of the ring."""
        shown, deleted_ids = entry.shown_ids, self._ring.deleted_ids
        return Deleted(
            subject=entry.is_deleted or shown.status in deleted_ids or shown.comment in deleted_ids,
            original=entry.original_is_deleted or shown.original in deleted_ids,
        )


def _rollback_gap_or_none(rollback_entry: Entry, client: Client) -> Gap | None:
    try:
        return client.unseen_rollback_gap(rollback_entry)
    except MalformedEntry:
        return None  # counted when it was published


def _gap_before(position: Position, found_position: Position, *, is_contiguous: bool) -> Gap | None:
    """What lies between a position and what was found after it; numbers that do not go on are another history."""
    missed = found_position.n - position.n
    if missed > 0:
        return Gap(position.cursor, found_position, "trimmed", missed)
    return None if missed == 0 and is_contiguous else Gap(position.cursor, found_position, ROLLED_BACK, None)
