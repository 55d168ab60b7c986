"""Read pages of past entries, from the ring or the log, for clients that catch up, long polls and previews.

`SavedRulesCache` has the parsed rules of users, as the log changes them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from functools import partial
from hashlib import blake2b
from typing import NamedTuple, Protocol
from weakref import WeakValueDictionary

import msgspec

from filters.base import FilterFailure
from filters.error import ParameterError
from filters.index_keys import Key
from filters.rule import SavedRules
from filters.rules.rule import NamedRule, Rule
from filters.subscription import Subscription
from stream_server.errors import Unavailable
from stream_server.events.content import MalformedEntry
from stream_server.events.entry import Entry
from stream_server.events.internal import SavedRule
from stream_server.events.position import Position
from stream_server.hub.catchup.replay_index import ReplayIndex, ReplayQuery, make_screen, may_have_key
from stream_server.hub.catchup.ring import Ring
from stream_server.hub.catchup.scheduler import CatchUpScheduler
from stream_server.hub.client import Client
from stream_server.hub.delivery import Delivery, View, decide, was_found
from stream_server.hub.messages import NOTHING_LOST, ROLLED_BACK, TRIMMED, Gap, StreamNotice, rollback_gap
from stream_server.hub.visibility.private_view import NOTHING_DELETED, Deleted
from stream_server.hub.visibility.restricted_accounts import RestrictedAccounts

logger = logging.getLogger(__name__)

MAX_RULES_PER_SLICE = 20
"""Number of rules whose keys are indexed in one iteration of the event loop."""


ParseRule = Callable[[str], Awaitable[Rule]]
"""Parses the text of a rule. Raises ParameterError for an invalid one."""


class SavedRulesCache:
    """The saved rules of the users who have streams in this process.

    All streams of a user share one `SavedRules`, because a thousand long rules have two hundred thousand index keys. It
    is dropped when no stream refers to it. ``parse_rule`` may return the same `Rule` for equal texts of many users.
    """

    def __init__(self, parse_rule: ParseRule) -> None:
        self._parse_rule = parse_rule
        self._cache: WeakValueDictionary[tuple[str, bytes], SavedRules] = WeakValueDictionary()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def build(self, uid: str, saved: Collection[SavedRule], parse_rule: ParseRule | None = None) -> SavedRules:
        """Return a user's rules as one filter. A rule that no longer parses (its plug-in is gone) matches nothing.

        ``parse_rule`` parses in the place of the usual function, for a caller who pays for the time.
        """
        return await self._get_changed(SavedRules(uid), saved, (), parse_rule or self._parse_rule)

    async def apply_change(self, client: Client, entry: Entry) -> StreamNotice:
        """Apply a ``rules`` entry to the subscription of a client. Return the `effective` notice for its stream."""
        change = entry.rules_change()
        before = client.subscription.find_base(SavedRules.name)
        assert isinstance(before, SavedRules)
        after = await self._get_changed(before, change.added, change.removed, self._parse_rule)
        client.subscription = client.subscription.replace_base(after)
        added = [rule.id for rule in change.added]
        members: dict[str, object] = {"added": added, "removed": change.removed, "rules": len(after)}
        return StreamNotice("effective", entry.position, members)

    async def _get_changed(
        self, before: SavedRules, added: Collection[SavedRule], removed: Collection[str], parse_rule: ParseRule
    ) -> SavedRules:
        """Return the rules that a user has after adding ``added`` and removing those with an id in ``removed``.

        An added rule takes the place of the one with its id: the rule was changed, or the position is one before a
        trimmed log's first entry, which lies between the ids of the rules that this entry adds.
        """
        new = {rule.id: rule for rule in added}
        gone = {*removed} - new.keys()
        after = {each.id: (each.id, each.tag, each.rule.text) for each in before.named_rules if each.id not in gone}
        after |= {rule.id: (rule.id, rule.tag, rule.rule) for rule in added}
        version = blake2b(msgspec.json.encode(list(after.values())), digest_size=16).digest()
        async with self._locks.setdefault(before.user_id, asyncio.Lock()):
            rules = self._cache.get((before.user_id, version))
            if rules is None:
                named = await self._parse_saved(added, parse_rule)
                rules = before.with_changes((), gone | (new.keys() - {one.id for one in named}))
                # Other tasks get their turn between slices: to index the keys of a thousand rules takes seconds.
                for start in range(0, len(named), MAX_RULES_PER_SLICE):
                    rules = rules.with_changes(named[start : start + MAX_RULES_PER_SLICE], ())
                    await asyncio.sleep(0)
                self._cache[before.user_id, version] = rules
            return rules

    async def _parse_saved(self, saved: Iterable[SavedRule], parse_rule: ParseRule) -> list[NamedRule]:
        parsed = []
        for rule in saved:
            try:
                parsed.append(NamedRule(rule.id, rule.tag, await parse_rule(rule.rule)))
            except ParameterError as error:
                logger.warning("saved rule %s cannot be parsed and matches nothing: %s", rule.id, error.message)
        return parsed


MAX_PAGE_ENTRIES = 256
"""Most entries of one page."""

MAX_PAGE_BYTES = 131_072
"""Most bytes of entries in one page, unless its first entry is larger."""

MAX_PAGE_SECONDS = 0.004
"""Most CPU time in seconds of matching one page, because the event loop is blocked meanwhile. For why it is CPU time,
see :mod:`stream_server.runtime.event_loop`."""


class LogPage(NamedTuple):
    """Entries of the log, and why some may be missing before them.

    ``loss`` is `NOTHING_LOST` if the log has all that was written after the requested position, `TRIMMED` if its
    beginning was removed, and `ROLLED_BACK` if a rollback removed the entry at the requested position.
    """

    entries: list[Entry]
    loss: str


class LogPageSource(Protocol):
    """Reads pages of the log from Redis. Concurrent calls share reads, and the number of parallel reads is limited."""

    async def read_page(self, after: Position, max_entries: int) -> LogPage:
        """Return up to ``max_entries`` entries after a position. Raises `Unavailable` while Redis cannot be reached."""

    async def read_back(self, last: Position, max_entries: int) -> list[Entry]:
        """Return up to ``max_entries`` entries in log order, up to the one at ``last``; none if the log lacks that.

        Raises `Unavailable` while Redis cannot be reached.
        """

    async def wait_until_readable(self, timeout_seconds: float) -> None:
        """Wait until the log is readable again, for at most ``timeout_seconds``."""


class CatchUpPage(NamedTuple):
    """The next past entries for a client that catches up.

    Attributes:
        deliveries: The entries that the client receives.
        end_position: Last position scanned.
        gap: The lost or trimmed entries before the deliveries, None if no entry is missing.
        notice: Message to send after the deliveries: the client's filters changed here, or the log reports a rollback.
        rules_entry: A ``rules`` entry at ``end_position`` that has still to be applied to the client.
    """

    deliveries: list[Delivery]
    end_position: Position
    gap: Gap | None
    notice: Gap | StreamNotice | None = None
    rules_entry: Entry | None = None


class CatchUpReader:
    """Reads pages of past entries for clients, from memory or from the log, and picks the entries that each receives.

    The clients are streams, long polls and previews of rules. ``failures`` counts the filters that were
    disabled because they raised an exception.
    """

    def __init__(
        self, ring: Ring, log: LogPageSource, restricted_accounts: RestrictedAccounts, saved_rules: SavedRulesCache
    ) -> None:
        self.failures = 0
        self.replay_index = ReplayIndex(ring)
        self._ring = ring
        self._log = log
        self._restricted_accounts = restricted_accounts
        self._saved_rules = saved_rules
        self._scheduler = CatchUpScheduler()

    async def read_page(
        self, client: Client, get_end: Callable[[], Position], *, is_in_turn: bool = False
    ) -> CatchUpPage:
        """Return the client's next page. It ends at or before the position that ``get_end`` returns.

        The reader calls ``get_end`` when the client's turn to read has come, because the head moves while the client
        waits. With ``is_in_turn`` the client does not wait for a page from the ring. Raises `Unavailable` while Redis
        cannot be reached.
        """
        page = self._scheduler.read_now(partial(self._read_memory, client, get_end)) if is_in_turn else None
        if page is None:
            page = await self._read_page(client, get_end)
        if page.rules_entry is None:
            return page
        return page._replace(notice=await self._saved_rules.apply_change(client, page.rules_entry), rules_entry=None)

    def read_page_at_once(self, client: Client, end: Position) -> CatchUpPage | None:
        """Return the client's next page, which ends at or before ``end``. None if the client has to wait for a page.

        A client has to wait if the ring does not reach back to its position, if other clients are to read first, or if
        its filters contain saved rules, which may have changed.
        """
        position = client.position
        if client.uses_saved_rules or not self._scheduler.is_free or not self._ring.covers(position):
            return None
        return self._scheduler.read_now(partial(self._read_ring, client, position, end))

    async def read_back(self, end: Position, *, inclusive: bool) -> list[Entry]:
        """Return a page of entries in log order, of which the last is the one at ``end``. Empty if it is lost.

        Without ``inclusive``, the last is the one before ``end``. ``end`` is the position of an entry. Raises
        `Unavailable` while Redis cannot be reached.
        """
        floor, last_number = self._ring.floor, end.n - (not inclusive)
        if last_number > self._ring.head.n:
            return []
        if last_number > floor.n:
            return list(self._ring.iter_numbers(max(last_number + 1 - MAX_PAGE_ENTRIES, floor.n + 1), last_number))
        if last_number == floor.n:
            return await self._log.read_back(floor, MAX_PAGE_ENTRIES)
        if inclusive:
            return await self._log.read_back(end, MAX_PAGE_ENTRIES)
        return (await self._log.read_back(end, MAX_PAGE_ENTRIES + 1))[:-1]

    async def match(
        self, client: Client, entries: list[Entry], run: Callable[[Callable[[], CatchUpPage]], CatchUpPage]
    ) -> CatchUpPage:  # fmt: skip
        """Return a page with those of ``entries`` that a client receives.

        It ends earlier if the time limit is reached. ``run`` calls what matches, and returns its result.
        """
        before = entries[0].position.previous()
        match = partial(self._match_entries, client, entries, before, None)
        return await self._scheduler.read_in_turn(before.n, partial(run, match))

    async def _read_page(self, client: Client, get_end: Callable[[], Position]) -> CatchUpPage:
        position = client.position
        page = await self._scheduler.read_in_turn(position.n, partial(self._read_memory, client, get_end))
        if page is not None:
            return page
        read = await self._log.read_page(position, MAX_PAGE_ENTRIES)
        # One read wakes all clients that waited for it.
        match = partial(self._match_log_page, client, position, read, get_end)
        return await self._scheduler.read_in_turn(position.n, match)

    def _read_memory(self, client: Client, get_end: Callable[[], Position]) -> CatchUpPage | None:
        """Return a page from the entries in memory (the ring). None if the client needs older entries."""
        position = client.position
        if self._ring.covers(position):
            return self._read_ring(client, position, get_end())
        if position[:2] > self._ring.floor[:2]:  # as recent as the ring, but not in its history: lost
            resume = self._ring.resume_position_for(position)
            client.last_rollback = (resume, position)
            return CatchUpPage([], resume, Gap(position.cursor, resume, ROLLED_BACK, None))
        return None

    def _match_log_page(
        self, client: Client, position: Position, read: LogPage, get_end: Callable[[], Position]
    ) -> CatchUpPage:
        head = get_end()
        entries = [entry for entry in read.entries if entry.position <= head]
        if not entries:
            return self._match_entries(client, [], position, _gap_before(position, head, ROLLED_BACK), head)
        if entries[-1].position.n > self._ring.head.n:
            # Number above the hub's head, but id not: the log lost the head and grew again, with the clock set back. A
            # client that went on would be ahead of its hub, which would take it for lost and set it back, repeatedly.
            raise Unavailable("the log was rolled back and the server is checking it; try again", retry_after=1)
        gap = _gap_before(position, entries[0].position.previous(), read.loss)
        return self._match_entries(client, entries, position, gap)

    def _read_ring(self, client: Client, position: Position, head: Position) -> CatchUpPage:
        """Return a page from the ring. If the client's filters cannot change, the replay index skips most entries."""
        client.use_private_view_if_needed()
        if head == self._ring.head and client.private_view is None and not client.uses_saved_rules:
            deadline = time.thread_time() + MAX_PAGE_SECONDS / 2  # the other half is for matching
            query = ReplayQuery(client.subscription, client.search_keys)
            entries, reached = self.replay_index.find_after(position, query, MAX_PAGE_BYTES, deadline)
            if reached != position:
                return self._match_entries(client, entries, position, None, reached)
        entries = self._ring.read_after(position, max_entries=MAX_PAGE_ENTRIES, max_bytes=MAX_PAGE_BYTES)
        if entries and entries[-1].position > head:
            entries = [entry for entry in entries if entry.position <= head]
        return self._match_entries(client, entries, position, None)

    def _match_entries(
        self, client: Client, entries: list[Entry], position: Position, gap: Gap | None, scanned: Position | None = None
    ) -> CatchUpPage:
        """Return a page with those of ``entries`` that the client receives.

        It ends at the last of ``entries`` or, if given, at ``scanned``: up to there, no other entry of the log can
        match. It ends earlier where the client's filters change, where the client needs a `gap` for a rollback, or
        after the time limit.
        """
        client.use_private_view_if_needed()
        search_keys, parts = client.search_keys, client.subscription.find_parts()
        screen = None if search_keys is None or scanned is not None else make_screen(search_keys)
        deadline = time.thread_time() + (MAX_PAGE_SECONDS if scanned is None else MAX_PAGE_SECONDS / 2)
        deliveries: list[Delivery] = []
        end_position = position if gap is None else gap.end
        for entry in entries:
            try:
                is_candidate = screen is None or may_have_key(entry.body, screen)
                delivery = self._decide_delivery(client, entry, search_keys) if is_candidate else None
            except FilterFailure as failed:
                self.failures += 1
                logger.warning("filter disabled on one stream: %s", failed)
                return CatchUpPage(deliveries, end_position, gap, client.disable_filter(failed, end_position))
            if delivery is not None and (parts is None or not parts.is_handled(entry.event, entry.position)):
                deliveries.append(delivery)
            end_position = entry.position
            if entry.kind == "rollback" and (notice := _rollback_gap_or_none(entry, client)) is not None:
                return CatchUpPage(deliveries, end_position, gap, notice)
            if client.is_changed_by_rules_entry(entry):
                return CatchUpPage(deliveries, end_position, gap, rules_entry=entry)
            if time.thread_time() > deadline:
                return CatchUpPage(deliveries, end_position, gap)
        return CatchUpPage(deliveries, end_position if scanned is None else scanned, gap)

    def _decide_delivery(self, client: Client, entry: Entry, keys: frozenset[Key] | None) -> Delivery | None:
        """Return what the client receives of a past entry, or None. Raises `FilterFailure` if a filter raises."""
        try:
            if (
                keys is not None and keys.isdisjoint(entry.event.index_keys)
                and entry.quoted_author is None and not entry.facts.before
            ):  # fmt: skip
                return None  # like most entries; but keys miss quotes and earlier versions, so these are always matched
            private_view = client.private_view
            view = private_view or client.viewer or self._restricted_accounts
            shown, deleted_ids, deleted = entry.shown_ids, self._ring.deleted_ids, NOTHING_DELETED
            if deleted_ids or entry.is_deleted or entry.original_is_deleted:
                deleted = Deleted(
                    subject=entry.is_deleted or shown.status in deleted_ids or shown.comment in deleted_ids,
                    original=entry.original_is_deleted or shown.original in deleted_ids,
                )
            shown_entry: Entry | None = entry
            if self._ring.edits or entry.later_edits:
                shown_entry = self._find_last_version(entry, client.subscription, view)
            delivery = None if shown_entry is None else decide(shown_entry, client.subscription, view, deleted)
            if private_view is not None and private_view.is_follow_change(entry):
                private_view.apply_follow_change(entry)
        except MalformedEntry:
            return None
        return delivery


    def _find_last_version(self, entry: Entry, subscription: Subscription, view: View) -> Entry | None:
        """Return a past entry with the last versions of the statuses that it shows. A replay never shows others.

        Return None if the filters did not match it as it was written: the indexes do not know later texts. Of such an
        `edit`, return the form that says that its status has left the filters.
        """
        edited = entry.as_edited(self._ring.edits)
        if edited is entry or was_found(entry, subscription, view):
            return edited
        return entry.versions()[-1] if entry.facts.before else None


def _rollback_gap_or_none(rollback_entry: Entry, client: Client) -> Gap | None:
    try:
        return None if client.knows_rollback(*rollback_entry.lost_range()) else rollback_gap(rollback_entry)
    except MalformedEntry:
        return None  # counted when it was published


def _gap_before(position: Position, found_position: Position, loss: str) -> Gap | None:
    """Return the gap to report if a client at ``position`` can read the log only from ``found_position`` on.

    Return None if no entry is missing. A number that never had an entry does not count as a missing entry. ``loss`` is
    as in `LogPage`. The reason of the gap is ``trimmed`` (the log lost its beginning) if ``found_position`` has the
    higher entry number, otherwise ``rolled_back`` (the log lost its end).
    """
    missed = found_position.n - position.n
    if loss == NOTHING_LOST or (loss == TRIMMED and missed == 0):
        return None
    if missed > 0:
        return Gap(position.cursor, found_position, TRIMMED, missed)
    return Gap(position.cursor, found_position, ROLLED_BACK, None)
