"""The ledger of all writes and their answers, and the final log, which a plain Redis client reads."""

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import redis

from stream_server.store import keys

KINDS = ("post", "edit", "delete", "follow", "unfollow", "like", "unlike")
"""The kinds of log entries that writers cause."""

Message = dict[str, Any]


@dataclass
class Deed:
    """One write.

    Attributes:
        subject: Id of the write's target. For a post it is the text until the answer, then the id.
        status: The answer to a post or an edit.
        begun: Time of the first attempt, in monotonic seconds.
        outcome: None while the writer does not know whether the write happened.
        answers: Status and error message of each attempt.
    """

    uid: str
    kind: str
    subject: str
    begun: float = field(default_factory=time.monotonic)
    outcome: str | None = None
    status: Message = field(default_factory=dict)
    answers: list[tuple[int, str]] = field(default_factory=list)

    @property
    def written(self) -> bool:
        return self.outcome == "written"

    @property
    def named(self) -> tuple[str, str]:
        return self.kind, self.subject


class Logged(NamedTuple):
    n: int
    cursor: str
    uid: str
    kind: str
    subject: str
    wire: Message

    @property
    def named(self) -> tuple[str, str]:
        return self.kind, self.subject


class Log(NamedTuple):
    """The first and last number of the log, the writers' entries, and the cursors of all entries."""

    first: int
    last: int
    entries: list[Logged]
    cursors: frozenset[str]


def read_log(client: "redis.Redis", after: str = "") -> Log:
    """Read the log, or its entries after a cursor. Fails if its numbers are not contiguous."""
    rows: Any = client.xrange(keys.LOG, min=f"({after.rpartition('.')[0]}" if after else "-")
    numbers = [int(fields[b"n"]) for _, fields in rows]
    if not numbers:
        return Log(0, 0, [], frozenset())
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "the log's numbers are not contiguous"
    cursors = [f"{entry_id.decode()}.{n}" for (entry_id, _), n in zip(rows, numbers, strict=True)]
    found = []
    for (_, fields), n, cursor in zip(rows, numbers, cursors, strict=True):
        kind = fields[b"k"].decode()
        if kind in KINDS:
            wire = json.loads(fields[b"e"])["wire"]
            found.append(Logged(n, cursor, *who_and_what(kind, wire), wire))
    return Log(numbers[0], numbers[-1], found, frozenset(cursors))


def who_and_what(kind: str, wire: Message) -> tuple[str, str, str]:
    """Return the author, the kind and the subject of an entry of the log, or of a message of a stream."""
    if kind in ("post", "edit", "delete"):
        status = wire["left" if "left" in wire else "status"]
        return status["uid"], kind, status["id"]
    return wire["source"]["id"], kind, wire["target" if "follow" in kind else "status"]["id"]


Version = tuple[str, int]
"""The id of a status, and the number of edits that made it as it is."""


def version_of(status: Message) -> Version:
    return status["id"], status.get("edits", 0)


class Ledger:
    """All writes, in the order in which each author began them."""

    def __init__(self) -> None:
        self.deeds: list[Deed] = []

    def begin(self, uid: str, kind: str, subject: str) -> Deed:
        deed = Deed(uid, kind, subject)
        self.deeds.append(deed)
        return deed

    def count(self, outcome: str) -> int:
        return sum(deed.outcome == outcome for deed in self.deeds)

    def versions(self) -> dict[Version, Message]:
        """Return the statuses as they were posted and edited."""
        return {version_of(deed.status): deed.status for deed in self._written_versions()}

    def editing(self) -> dict[Version, float]:
        """Return when each version was first sent."""
        return {version_of(deed.status): deed.begun for deed in self._written_versions()}

    def _written_versions(self) -> list[Deed]:
        return [deed for deed in self.deeds if deed.kind in ("post", "edit") and deed.written]

    def deleting(self) -> dict[str, float]:
        """Return when each delete was first sent, by the id of its post."""
        return {deed.subject: deed.begun for deed in self.deeds if deed.kind == "delete"}

    def complaints(self, entries: Sequence[Logged]) -> list[str]:
        """Return each difference in content or order between the log and an author's acknowledged writes."""
        done: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for deed in self.deeds:
            if deed.written:
                done[deed.uid].append(deed.named)
        said = [f"{deed.uid}: nobody knows what became of {deed.named}" for deed in self.deeds if deed.outcome is None]
        return said + [
            f"{wrong}; given up: {self._given_up(uid)}"
            for uid, deeds in done.items()
            for wrong in _compared(uid, deeds, _by(entries, uid))
        ]

    def _given_up(self, uid: str) -> list[tuple[str, str, list[tuple[int, str]]]]:
        return [(*deed.named, deed.answers) for deed in self.deeds if deed.uid == uid and deed.outcome == "given up"]


def _by(entries: Iterable[Logged], uid: str) -> list[tuple[str, str]]:
    return [entry.named for entry in entries if entry.uid == uid]


def _compared(uid: str, done: list[tuple[str, str]], logged: list[tuple[str, str]]) -> list[str]:
    for at, (deed, entry) in enumerate(zip(done, logged, strict=False)):
        if deed != entry:
            return [f"{uid}: the log has {entry} where {deed} was done, as number {at}"]
    if len(done) > len(logged):
        return [f"{uid}: acknowledged and not on the log: {done[len(logged) :]}"]
    if len(logged) > len(done):
        return [f"{uid}: on the log and never acknowledged: {logged[len(done) :]}"]
    return []
