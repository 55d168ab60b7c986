"""Limits the bytes that connections keep in the memory of one process, in total and for each address.

Two kinds of bytes have a budget. *Held* bytes are those of requests that are not answered: heads, bodies, and what
waits behind them. *Unsent* bytes are those of answers that the kernel has not taken. Above a limit, the connections
with the most bytes are closed first, those of the address if it is the address that has too many.

A connection that keeps a few KiB does not count. Its place in the table of connections stands for them, and so a usual
request costs no count.
"""

from collections import Counter
from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, TypeVar

from stream_server.monitoring.incidents import LimitHits

SHARE_AFTER_EVICTION = 0.875
"""Share of a limit down to which connections are closed. So a flood does not sort them each time."""


class Holder(Protocol):
    """A connection that keeps bytes.

    Attributes:
        address: IP address of its client, or "" for a unix socket.
    """

    address: str


HolderType = TypeVar("HolderType", bound=Holder)


class ByteLimits(NamedTuple):
    """Most bytes of one kind in a process, and most of one address.

    Attributes:
        free: Most bytes of a connection that does not count.
    """

    total: int
    of_address: int
    free: int = 4096


HELD_LIMITS = ByteLimits(32 * 2**20, 8 * 2**20)
UNSENT_LIMITS = ByteLimits(64 * 2**20, 16 * 2**20)


class _Kept(NamedTuple):
    size: int
    subject: str


class ByteBudget(Generic[HolderType]):
    """Counts the bytes of one kind.

    Attributes:
        limits: The limits in force.
        total: The number of bytes of all connections.
    """

    def __init__(
        self, name: str, limits: ByteLimits, hits: LimitHits, limited_subject: Callable[[str], str],
        measure: Callable[[HolderType], int], evict: Callable[[HolderType], None],
    ) -> None:  # fmt: skip
        """``measure`` returns the bytes that a connection keeps now. ``evict`` closes a connection.

        ``limited_subject`` returns what an address counts as, empty if it has no limit of its own. ``hits`` counts each
        closed connection under ``name``.
        """
        self._name = name
        self._hits = hits
        self._limited_subject = limited_subject
        self._measure = measure
        self._evict = evict
        self._kept: dict[HolderType, _Kept] = {}
        self._by_subject: Counter[str] = Counter()
        self.limits = limits
        self.total = 0

    def note(self, holder: HolderType, size: int) -> None:
        """Note that ``holder`` keeps ``size`` bytes now.

        If a limit is exceeded, this closes connections, which may be ``holder`` itself. So call it last.
        """
        subject = self._set(holder, size)
        if subject and self._by_subject[subject] > self.limits.of_address:
            self._make_room(subject)
        if self.total > self.limits.total:
            self._make_room("")

    def _set(self, holder: HolderType, size: int) -> str:
        """Return the subject of a connection that counts."""
        before = self._kept.pop(holder, None)
        if before is not None:
            self.total -= before.size
            self._by_subject[before.subject] -= before.size
            if not self._by_subject[before.subject]:
                del self._by_subject[before.subject]
        if size <= self.limits.free:
            return ""
        subject = self._limited_subject(holder.address) if before is None else before.subject
        self._kept[holder] = _Kept(size, subject)
        self.total += size
        self._by_subject[subject] += size
        return subject

    def _make_room(self, subject: str) -> None:
        """Close the connections that keep the most bytes: those of ``subject``, or of all subjects if it is empty.

        Of two connections that keep equally many bytes, the later one is closed first, because it has begun less.
        """
        found = [holder for holder, kept in reversed(self._kept.items()) if not subject or kept.subject == subject]
        sizes = {holder: self._measure(holder) for holder in found}  # some may have fallen since they were noted
        for holder in found:
            self._set(holder, sizes[holder])
        limit = self.limits.of_address if subject else self.limits.total
        for holder in sorted(found, key=sizes.__getitem__, reverse=True):
            if (self._by_subject[subject] if subject else self.total) <= limit * SHARE_AFTER_EVICTION:
                return
            self._hits.add(self._name)
            self._evict(holder)
