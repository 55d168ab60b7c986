"""Judges a long run piece by piece: the log against the writes, and what each client received since the last look.

It is the oracle of the random faults. A look takes what came meanwhile and then reads the log, so whatever a client
passed or a writer was told must be on it. What all clients have passed is forgotten.
"""

import asyncio
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from redis import Redis, RedisError

from stream_server.store import keys
from tests import reference_rules
from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.clients import Client
from tests.end_to_end.random_faults.ledger import Deed, Ledger, Log, Logged, read_log, version_of
from tests.end_to_end.random_faults.oracle import OWN, Ear, History, Record, Told, keep_text
from tests.reference import Status
from tests.waiting import eventually

SAVED = ("w7 OR w8 -w9", "w10 w11 OR w12", "w13")
"""The saved rules of each user who listens."""

REMEMBERED = 12_000
"""Statuses of which a client may still hear. The authors delete theirs much sooner."""

Filter = tuple[object, ...]
"""What decides about a client's events. Clients with equal filters receive the same."""


class LongEar(Ear):
    """The reference of one filter, with partitions and saved rules. It forgets old statuses."""

    def forget(self) -> None:
        """Forget the oldest statuses."""
        for old in _oldest(self.statuses):
            del self.statuses[old]
            self.reached.discard(old)

    def _base(self, status: Status) -> bool:
        if "partition" in self.params:
            part, parts = map(int, self.params["partition"].split("/"))
            hashed = blake2b(status["uid"].encode(), key=b"stream-server partition").digest()[:8]
            return int.from_bytes(hashed) % parts == part - 1
        if "rules" in self.params:
            return any(reference_rules.matches(rule, status, {}) for rule in SAVED)
        return super()._base(status)


class Judge(History):
    """The verdict so far.

    Attributes:
        checked: Number of events that clients received.
        gaps: Number of gaps that clients were told of.
        outcomes: Number of writes by their outcome.
        kept: Number of statuses that should be there.
        found: Everything that was wrong.
    """

    def __init__(self, redis: "Redis", ledger: Ledger, clients: Sequence[Client]) -> None:
        super().__init__(read_log(redis), Ledger())
        self.checked = self.gaps = self.kept = 0
        self.outcomes: Counter[str] = Counter()
        self.found: list[str] = []
        self._redis, self._ledger, self._clients = redis, ledger, clients
        self._head = max(self.log.cursors, key=number, default="0-0.0")
        self._ears = {_filter(client.record): self.ear(client.record) for client in clients}
        self._due: dict[Filter, list[Logged]] = {key: [] for key in self._ears}
        self._unknown: set[tuple[str, str]] = set()
        self._ahead: dict[str, list[Logged]] = {}
        self._texts: dict[str, str] = {}
        self._held: dict[str, dict[str, str]] = {}

    async def look(self) -> None:
        """Judge what came since the last look. Other tasks go on meanwhile."""
        pieces = [_taken(client.record) for client in self._clients if client.record.told]
        deeds = self._settled_deeds()
        log = await eventually(lambda: asyncio.to_thread(self._read), seconds=300, what="a log that can be read")
        assert log is not None
        self.found += self._writes(deeds, log.entries)
        for entry in log.entries:
            self._enter(entry)
            await asyncio.sleep(0)
        for piece in pieces:
            self.checked += len(piece.events)
            self.gaps += sum(told.kind == "gap" for told in piece.told)
            self.found += self.complaints(piece)
            self._hold(piece)
            await asyncio.sleep(0)
        self._forget()

    @property
    def head(self) -> int:
        """The number of the last entry that was read."""
        return number(self._head)

    def wanted(self, record: Record) -> list[Logged]:
        """Return the entries that a client must receive between the begin and the end of its piece."""
        due, last = self._due[_filter(record)], record.told[-1].n
        piece = due[_place(due, number(record.start)) : _place(due, last)]
        lost = [(number(told.message["from"]), told.n) for told in record.told if self._tells_a_loss(told)]
        return [entry for entry in piece if not any(begin < entry.n <= end for begin, end in lost)]

    def ear(self, record: Record) -> LongEar:
        return LongEar(record.params, viewer=record.uid, following=record.following)

    def _tells_a_loss(self, gap: Told) -> bool:
        """Whether it is a gap, and the log was trimmed up to its end."""
        return gap.kind == "gap" and gap.message.get("reason") == "trimmed" and gap.n < self.log.first

    def _is_as_posted(self, told: Told) -> bool:
        is_known = version_of(told.message["status"]) in self.posted  # if not, its outcome may be unknown
        return not is_known or super()._is_as_posted(told)

    def _out_of_date(self, record: Record) -> Iterable[str]:
        """Leave what a client has to `at_the_end`: a piece does not tell what it had before."""
        return ()

    def _hold(self, piece: Record) -> None:
        """Note the texts that a client has, if it asks for edits. After a gap it would ask for the pages again."""
        if "edit" in piece.params.get("kinds", ""):
            held = self._held.setdefault(piece.name, {})
            for told in piece.told:
                if told.kind == "gap":
                    held.clear()
                elif told.kind in ("post", "edit", "delete"):
                    keep_text(held, told.subject, told.message.get("status", {}))

    def _read(self) -> Log | None:
        try:
            log = read_log(self._redis, self._head)
            first: Any = self._redis.xrange(keys.LOG, count=1)
        except RedisError:
            return None
        if log.cursors:
            if log.first != number(self._head) + 1:
                self.found.append(f"the log goes on with number {log.first} after {self._head}")
            self._head = max(log.cursors, key=number)
        self.log = log._replace(first=int(first[0][1][b"n"]) if first else 0)
        return log

    def _settled_deeds(self) -> list[Deed]:
        """Take the writes whose outcome is known from the ledger."""
        self.deleting |= self._ledger.deleting()
        settled = [deed for deed in self._ledger.deeds if deed.outcome is not None]
        self._ledger.deeds = [deed for deed in self._ledger.deeds if deed.outcome is None]
        self.outcomes.update(deed.outcome for deed in settled if deed.outcome)
        versions = Ledger()
        versions.deeds = settled
        self.posted |= versions.versions()
        self.begun |= versions.editing()
        self._unknown |= {(deed.uid, deed.subject) for deed in settled if deed.outcome == "unknown"}
        return [deed for deed in settled if deed.written]

    def _writes(self, deeds: list[Deed], entries: list[Logged]) -> list[str]:
        """Compare the acknowledged writes of each author with the log. A write of unknown outcome may be on it once."""
        said = []
        for entry in entries:
            self._ahead.setdefault(entry.uid, []).append(entry)
            self.kept += (entry.kind == "post") - (entry.kind == "delete")
        for deed in deeds:
            ahead = self._ahead.setdefault(deed.uid, [])
            while ahead and ahead[0].named != deed.named and self._was_unknown(ahead[0]):
                ahead.pop(0)
            if not ahead or ahead[0].named != deed.named:
                said.append(f"{deed.uid}: {deed.named} was acknowledged, and the log has {ahead[:1]}")
            else:
                ahead.pop(0)
        return said

    def _was_unknown(self, entry: Logged) -> bool:
        """Whether the entry is a post of unknown outcome, which was not on the log before."""
        named = (entry.uid, entry.wire["status"].get("message", "")) if entry.kind == "post" else ("", "")
        known = named in self._unknown
        self._unknown.discard(named)
        self.outcomes["unknown, and written"] += known
        return known

    def at_the_end(self) -> list[str]:
        """Return the entries of the log that nobody wrote, and the texts that clients have although they were replaced.

        No write may be under way, and each client must have reached the end of the log.
        """
        replaced = [
            f"{name}: has {text!r} of {status}, which was replaced"
            for name, held in self._held.items() for status, text in held.items() if self._texts.get(status) != text
        ]  # fmt: skip
        return replaced + [
            f"on the log and never acknowledged: {entry}"
            for ahead in self._ahead.values() for entry in ahead if not self._was_unknown(entry)
        ]  # fmt: skip

    def _enter(self, entry: Logged) -> None:
        self.entries[entry.cursor] = entry
        if entry.kind in ("post", "edit", "delete"):
            keep_text(self._texts, entry.subject, {} if entry.kind == "delete" else entry.wire["status"])
        if entry.kind == "delete":
            self.ends.add(entry.subject)
        if entry.kind == "edit":  # its author may not have the answer yet, and a replay shows it already
            self.posted.setdefault(version_of(entry.wire["status"]), entry.wire["status"])
            self.begun.setdefault(version_of(entry.wire["status"]), 0.0)
        happening = self.happening(entry)
        for key, ear in self._ears.items():
            if ear.hears(happening) is not None:
                self._due[key].append(entry)

    def _forget(self) -> None:
        """Forget what all clients have passed."""
        reached: dict[Filter, int] = {}
        for client in self._clients:
            key = _filter(client.record)
            reached[key] = min(reached.get(key, number(self._head)), number(client.record.start))
        for key, least in reached.items():
            del self._due[key][: _place(self._due[key], least)]
        least = min(reached.values())
        self.entries = {cursor: entry for cursor, entry in self.entries.items() if entry.n > least}
        for ear in self._ears.values():
            ear.forget()
        for versions in (self.posted, self.begun):
            for old in _oldest(versions):
                del versions[old]


def _filter(record: Record) -> Filter:
    own = OWN in record.params or "@me" in record.params.get("follow", "")
    return (*record.params.items(), record.uid if own else "")


def _taken(record: Record) -> Record:
    """Take the messages from the record. The next ones begin after the last of them."""
    piece = replace(record, told=record.told)
    record.told, record.start = [], piece.told[-1].cursor
    return piece


def _oldest(statuses: Mapping[Any, object]) -> list[Any]:
    """Return the names that are to be forgotten, now and then."""
    return list(statuses)[:-REMEMBERED] if len(statuses) > 1.1 * REMEMBERED else []


def _place(due: list[Logged], n: int) -> int:
    return bisect_right(due, n, key=lambda entry: entry.n)
