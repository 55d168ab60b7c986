"""Reading on from a position through a filter: what was away, too slow, or asks for the past, reads here."""

import time
from typing import NamedTuple, Protocol

from stream_server.events import PUBLIC, TAKES_BACK, Entry, MalformedEntry, Position
from stream_server.hub.control import Gap
from stream_server.hub.member import Member
from stream_server.hub.ring import Ring
from stream_server.hub.standing import Standing

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


class Page(NamedTuple):
    """What a reader found: ``wanted`` of the entries up to ``upto``, and what was missing before them."""

    wanted: list[Entry]
    upto: Position
    gap: Gap | None


class Reader:
    """The one place where a past entry meets a filter; used by streams and long polls alike.

    ``failures`` counts the exceptions of filters, which match nothing then; ``last_failure`` is the last one.
    """

    def __init__(self, ring: Ring, log: LogPages, standing: Standing) -> None:
        self.failures = 0
        self.last_failure: Exception | None = None
        self._ring = ring
        self._log = log
        self._standing = standing

    async def page(self, member: Member, head: Position) -> Page:
        """The member's next page, never beyond ``head``; no await if the ring reaches back to its position."""
        position = member.position
        if self._ring.reaches(position):
            entries = self._ring.after(position, most=PAGE_ENTRIES, most_bytes=PAGE_BYTES)
            return self._match(member, entries, position, None)
        if position[:2] > self._ring.floor[:2]:  # within the ring's time, but nothing that was heard
            resume = self._ring.below(position)
            return Page([], resume, Gap(position.cursor, resume, "rolled_back", None))
        read = await self._log.page(position, PAGE_ENTRIES)
        entries = [entry for entry in read.entries if entry.position <= head]
        if not entries:
            return Page([], head, _gap(position, head, held=False))
        return self._match(member, entries, position, _gap(position, entries[0].position.before(), held=read.held))

    def failed(self, error: Exception) -> None:
        """A filter raised: it is counted, the entry is not for its stream."""
        self.failures += 1
        self.last_failure = error

    def _match(self, member: Member, entries: list[Entry], position: Position, lost: Gap | None) -> Page:
        member.attend()
        ends = time.monotonic() + PAGE_SECONDS
        wanted: list[Entry] = []
        upto = position if lost is None else lost.end
        for entry in entries:
            picked = self._pick(member, entry)
            if picked is not None:
                wanted.append(picked)
            upto = entry.position
            if time.monotonic() > ends:
                break
        return Page(wanted, upto, lost)

    def _pick(self, member: Member, entry: Entry) -> Entry | None:
        """As this member may see it and as it is by now: what it showed may be gone."""
        try:
            gone = self._gone(entry)
            picked = self._picked(member, entry, gone=gone and entry.kind not in TAKES_BACK)
            return picked if picked is not entry else self._left(entry, gone=gone)
        except MalformedEntry:
            return None
        except Exception as error:  # noqa: BLE001 - a third party's filter may raise anything
            self.failed(error)
            return None

    def _picked(self, member: Member, entry: Entry, *, gone: bool) -> Entry | None:
        """The entry as this member may see it today, if it is asked for; the graph changes at its own entries."""
        subscription, viewer, personal = member.ask.subscription, member.ask.viewer, member.personal
        if personal is not None:
            picked = personal.pick(entry, subscription, gone=gone)
            if personal.concerns(entry):
                personal.apply(entry)
            return picked
        if gone or not subscription.matches(entry.event):
            return None
        if viewer is not None:
            return viewer.tells(entry)
        return self._standing.tells(entry) if entry.audience == PUBLIC else None

    def _gone(self, entry: Entry) -> bool:
        """What shows a status or a comment that is gone is left out; what took that back comes in its own place."""
        shown, deleted = entry.shown, self._ring.deleted
        return entry.gone or shown.status in deleted or shown.comment in deleted

    def _left(self, entry: Entry, *, gone: bool) -> Entry:
        """Without the original that is gone; of a status that is gone, what took a comment back says its ids."""
        if gone:
            return entry.without_status()
        return entry.without_original() if entry.original_gone or entry.shown.original in self._ring.deleted else entry


def _gap(position: Position, reached: Position, *, held: bool) -> Gap | None:
    """What lies between a position and what was found after it; numbers that do not go on are another history."""
    missed = reached.n - position.n
    if missed > 0:
        return Gap(position.cursor, reached, "trimmed", missed)
    return None if missed == 0 and held else Gap(position.cursor, reached, "rolled_back", None)
