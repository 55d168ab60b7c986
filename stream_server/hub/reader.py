"""Reading on from a position through a filter: what was away, too slow, or asks for the past, reads here."""

from typing import NamedTuple, Protocol

from stream_server.events import PUBLIC, Entry, MalformedEntry, Position
from stream_server.hub.control import Gap
from stream_server.hub.member import Ask
from stream_server.hub.ring import Ring

PAGE_ENTRIES = 256
PAGE_BYTES = 131_072
"""One page: about 2 ms of matching, and as much as one write may hold."""


class LogPages(Protocol):
    """The log behind the ring; reading it is single flight and bounded, whoever asks."""

    async def page(self, after: Position, upto: Position, most: int) -> list[Entry]:
        """Entries after one position up to another; raises errors.Unavailable while Redis is away."""


class Page(NamedTuple):
    """What a reader found: ``wanted`` of the entries up to ``upto``, and what was missing before them."""

    wanted: list[Entry]
    upto: Position
    gap: Gap | None


class Reader:
    """The one place where a past entry meets a filter; used by streams and long polls alike."""

    def __init__(self, ring: Ring, log: LogPages) -> None:
        self._ring = ring
        self._log = log

    async def page(self, ask: Ask, position: Position, head: Position) -> Page:
        """The next page after ``position``, never beyond ``head``; no await if the ring reaches back to it."""
        if position.n > head.n:
            return Page([], head, Gap(position.cursor, head, "rolled_back", None))
        entries = self._ring.after(position, most=PAGE_ENTRIES, most_bytes=PAGE_BYTES)
        if entries is None:
            entries = await self._log.page(position, head, PAGE_ENTRIES)
        if not entries:
            return Page([], head, _gap(position, head) if head.n > position.n else None)
        lost = _gap(position, entries[0].position.before())
        return Page([e for e in entries if self._wants(ask, e)], entries[-1].position, lost)

    def _wants(self, ask: Ask, entry: Entry) -> bool:
        try:
            return entry.audience == PUBLIC and self._matches(ask, entry)
        except MalformedEntry:
            return False

    def _matches(self, ask: Ask, entry: Entry) -> bool:
        personal = ask.personal
        if personal is None:
            return ask.subscription.matches(entry.event) and not self._gone(entry)
        wanted = personal.wants(entry, ask.subscription)
        if personal.concerns(entry):
            personal.apply(entry)
        return wanted and not self._gone(entry)

    def _gone(self, entry: Entry) -> bool:
        """A post deleted by now is left out of a replay; its delete comes in its own place."""
        return entry.kind == "post" and (entry.gone or entry.event.status_id in self._ring.deleted)


def _gap(position: Position, reached: Position) -> Gap | None:
    count = reached.n - position.n
    return Gap(position.cursor, reached, "trimmed", count) if count > 0 else None
