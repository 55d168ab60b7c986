"""Reading on from a position through a filter: what was away, too slow, or asks for the past, reads here."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from filters.base import Failed
from filters.key import Key
from stream_server.events import PUBLIC, TAKES_BACK, Encode, Entry, MalformedEntry, Position
from stream_server.hub.control import ROLLED_BACK, Gap, Notice
from stream_server.hub.group import matched
from stream_server.hub.losses import told_by
from stream_server.hub.member import Member
from stream_server.hub.ring import Ring
from stream_server.hub.rulebook import Rulebook
from stream_server.hub.sieve import Sieve, Sought
from stream_server.hub.standing import Standing
from stream_server.hub.turns import Turns

logger = logging.getLogger(__name__)

PAGE_ENTRIES = 256
PAGE_BYTES = 131_072
"""One page: as much as one write may hold."""

PAGE_SECONDS = 0.004
"""…and no longer than this of matching, since everybody else waits meanwhile."""


class LogPage(NamedTuple):
    """A piece of the log; ``held`` says that it begins where it was asked to: nothing was trimmed or rolled back."""

    entries: list[Entry]
    held: bool


class LogPages(Protocol):
    """The log behind the ring; reading it is single flight and bounded, whoever asks."""

    async def page(self, after: Position, most: int) -> LogPage:
        """Entries after a position; raises errors.Unavailable while Redis is away."""


class Picked(NamedTuple):
    """An entry for one member, and what of its filters matched, as JSON, where its messages say that."""

    entry: Entry
    matched: bytes | None

    def frame(self, encode: Encode) -> bytes:
        """The message as ``encode`` frames it."""
        return self.entry.frame(encode, self.matched)


class Page(NamedTuple):
    """What a reader found: ``wanted`` of the entries up to ``upto``, and what was missing before them.

    ``notice`` is what changed in the member's filters at ``upto``, where the page ends for that, or what the log says
    there that it lost; ``change`` is the entry that is still to change the filters.
    """

    wanted: list[Picked]
    upto: Position
    gap: Gap | None
    notice: Gap | Notice | None = None
    change: Entry | None = None


class Reader:
    """The one place where a past entry meets a filter; used by streams and long polls alike.

    ``failures`` counts the exceptions of filters: what raises does no more on the stream where it did.
    """

    def __init__(self, ring: Ring, log: LogPages, standing: Standing, rulebook: Rulebook) -> None:
        self.failures = 0
        self.sieve = Sieve(ring)
        self._ring = ring
        self._log = log
        self._standing = standing
        self._rulebook = rulebook
        self._turns = Turns()

    async def page(self, member: Member, end: Callable[[], Position]) -> Page:
        """The member's next page, never beyond where ``end`` says that the head is once it is the member's turn.

        A head that was looked up before that would be old by then, and with many who wait nobody would reach it.
        """
        await self._turns.mine(member.position.n)
        position, head = member.position, end()
        if self._ring.reaches(position):
            return await self._changed(member, self._timed(self._from_ring, member, position, head))
        if position[:2] > self._ring.floor[:2]:  # within the ring's time, but nothing that was heard
            resume = self._ring.below(position)
            member.lost = (resume, position)
            return Page([], resume, Gap(position.cursor, resume, ROLLED_BACK, None))
        read = await self._log.page(position, PAGE_ENTRIES)
        await self._turns.mine(position.n)  # one read wakes all who waited for it
        head = end()
        entries = [entry for entry in read.entries if entry.position <= head]
        if not entries:
            return Page([], head, _gap(position, head, held=False))
        lost = _gap(position, entries[0].position.before(), held=read.held)
        return await self._changed(member, self._timed(self._match, member, entries, position, lost))

    def _timed(self, read: Callable[..., Page], *given: object) -> Page:
        """A page, and to the turns how long it took."""
        began = time.monotonic()
        try:
            return read(*given)
        finally:
            self._turns.took(time.monotonic() - began)

    async def _changed(self, member: Member, page: Page) -> Page:
        """The page, with the change that stands at its end made: who reads its rules is not live, and may wait."""
        if page.change is None:
            return page
        return page._replace(notice=await self._rulebook.amend(member, page.change), change=None)

    def _from_ring(self, member: Member, position: Position, head: Position) -> Page:
        """Where it reads to the head, and nothing that it reads changes its filters, most entries are passed over."""
        member.attend()
        if head == self._ring.head and member.personal is None and not member.ruled:
            ends = time.monotonic() + PAGE_SECONDS / 2  # the other half is for what may match
            ask = Sought(member.subscription, member.sought)
            entries, reached = self.sieve.after(position, ask, PAGE_BYTES, ends)
            if reached != position:
                return self._match(member, entries, position, None, reached)
        entries = self._ring.after(position, most=PAGE_ENTRIES, most_bytes=PAGE_BYTES)
        if entries and entries[-1].position > head:
            entries = [entry for entry in entries if entry.position <= head]
        return self._match(member, entries, position, None)

    def _match(
        self,
        member: Member,
        entries: list[Entry],
        position: Position,
        lost: Gap | None,
        reached: Position | None = None,
    ) -> Page:
        """The page ends where the member's filters change: what comes after that is matched by the new ones.

        Gone through to its end it reaches the last entry, or as far as it is known that nothing else would match.
        """
        member.attend()
        sought = member.sought
        ends = time.monotonic() + (PAGE_SECONDS if reached is None else PAGE_SECONDS / 2)
        wanted: list[Picked] = []
        upto = position if lost is None else lost.end
        for entry in entries:
            try:
                picked = self._pick(member, entry, sought)
            except Failed as failed:
                self.failures += 1
                logger.warning("%s; it is put out on one stream", failed)
                return Page(wanted, upto, lost, member.disable(failed, upto))
            if picked is not None:
                wanted.append(picked)
            upto = entry.position
            if entry.kind == "rollback" and (told := _told_of_loss(entry, member)) is not None:
                return Page(wanted, upto, lost, told)
            if member.ruled_by(entry):
                return Page(wanted, upto, lost, change=entry)
            if time.monotonic() > ends:
                return Page(wanted, upto, lost)
        return Page(wanted, upto if reached is None else reached, lost)

    def _pick(self, member: Member, entry: Entry, sought: frozenset[Key] | None) -> Picked | None:
        """As this member may see it and as it is by now: what it showed may be gone. Raises Failed.

        Nearly all that a returning client passes has none of its keys, as in the index; of a quote that is not known.
        """
        try:
            if sought is not None and entry.quoted is None and sought.isdisjoint(entry.event.keys):
                return None
            gone = self._gone(entry)
            told = self._told(member, entry, gone=gone and entry.kind not in TAKES_BACK)
            if told is None:
                return None
            said = entry if entry.quoted is None else told  # a repost is asked for by its original, gone or not
            return Picked(self._left(entry, gone=gone) if told is entry else told, matched(member.subscription, said))
        except MalformedEntry:
            return None

    def _told(self, member: Member, entry: Entry, *, gone: bool) -> Entry | None:
        """The entry as this member may see it today, if it is asked for as that; the graph changes at its entries."""
        subscription, viewer, personal = member.subscription, member.ask.viewer, member.personal
        if personal is not None:
            picked = personal.pick(entry, subscription, gone=gone, original_gone=self._original_gone(entry))
            if personal.concerns(entry):
                personal.apply(entry)
            return picked
        if gone or (entry.quoted is None and not subscription.matches(entry.event)):
            return None
        if viewer is not None:
            told = viewer.tells(entry)
        else:
            told = self._standing.tells(entry) if entry.audience == PUBLIC else None
        if told is None or entry.quoted is None:
            return told
        if told is entry:
            told = self._left(entry, gone=False)
        return told if subscription.matches(told.event) else None  # a rule looks at what a quote shows

    def _gone(self, entry: Entry) -> bool:
        """What shows a status or a comment that is gone is left out; what took that back comes in its own place."""
        shown, deleted = entry.shown, self._ring.deleted
        return entry.gone or shown.status in deleted or shown.comment in deleted

    def _left(self, entry: Entry, *, gone: bool) -> Entry:
        """Without the original that is gone; of a status that is gone, what took a comment back says its ids."""
        if gone:
            return entry.without_status()
        return entry.without_original() if self._original_gone(entry) else entry

    def _original_gone(self, entry: Entry) -> bool:
        return entry.original_gone or entry.shown.original in self._ring.deleted


def _told_of_loss(word: Entry, member: Member) -> Gap | None:
    try:
        return told_by(word, member)
    except MalformedEntry:
        return None  # counted when it was published


def _gap(position: Position, reached: Position, *, held: bool) -> Gap | None:
    """What lies between a position and what was found after it; numbers that do not go on are another history."""
    missed = reached.n - position.n
    if missed > 0:
        return Gap(position.cursor, reached, "trimmed", missed)
    return None if missed == 0 and held else Gap(position.cursor, reached, ROLLED_BACK, None)
