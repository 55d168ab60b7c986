"""The oracle: what a client must have received, computed from the log, its filter and the reference implementation.

A stream receives each entry that its filter wants, once, in log order. A replay may leave out a post, and its likes, if
the post was deleted before the client read that far. The replay must still include the delete.

If Redis lost acknowledged entries, each client that had received some of them must get a `gap`. The client continues
where the log continues and misses nothing else. A `gap` at the place that the log's own record names is no fault.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests import reference, reference_rules
from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.ledger import Ledger, Log, Logged, Message

CONTROL = frozenset({"hello", "heartbeat", "warning", "gap", "effective", "goodbye"})
OWN = "own"
"""A parameter of these tests only. It selects ``/v1/stream/user``."""


class Told(NamedTuple):
    """A message and the time at which it arrived (monotonic seconds)."""

    message: Message
    at: float

    @property
    def kind(self) -> str:
        return str(self.message["kind"])

    @property
    def cursor(self) -> str:
        return str(self.message["cursor"])

    @property
    def n(self) -> int:
        return number(self.cursor)

    @property
    def control(self) -> bool:
        return self.kind in CONTROL

    @property
    def subject(self) -> str:
        """The id of the status or user that the event is about, as on the log."""
        return str(self.message["target" if "follow" in self.kind else "status"]["id"])


@dataclass
class Record:
    """The filter of one client, and all messages of all its visits. The client's user follows ``following``."""

    name: str
    params: Mapping[str, str]
    uid: str
    following: Collection[str] = ()
    start: str = ""
    told: list[Told] = field(default_factory=list)

    @property
    def events(self) -> list[Told]:
        return [told for told in self.told if not told.control]


class Ear(reference.Stream):
    """The reference implementation, with likes, rules and the user's own stream."""

    def hears(self, happening: reference.Happening) -> tuple[str, str] | None:
        kind = happening["kind"]
        if kind not in ("like", "unlike"):
            return super().hears(happening)
        name = happening["status"]["id"]
        return (kind, name) if kind in self.kinds and self._likes(happening) else None

    def _likes(self, happening: reference.Happening) -> bool:
        if "sample" in self.params:
            return reference.sampled(happening["status"]["id"], self.params["sample"])
        ends = {happening["source"]["id"], self.statuses[happening["status"]["id"]]["uid"]}
        return "firehose" in self.params or bool(ends & self._listed())

    def _listed(self) -> set[str]:
        """Return the users whose events the stream wants. For the user's own stream, this is the user."""
        return {self.viewer} if OWN in self.params else super()._listed()

    def _base(self, status: reference.Status) -> bool:
        if OWN in self.params:
            return status["uid"] == self.viewer or status["uid"] in self.following
        if "rule" in self.params:
            return reference_rules.matches(self.params["rule"], status, {})
        return super()._base(status)


class History:
    """All writes, and the clients that must receive them. ``rolled_back`` means that the log may have lost its end."""

    def __init__(self, log: Log, ledger: Ledger, *, rolled_back: bool = False) -> None:
        self.log = log
        self.rolled_back = rolled_back
        self.posted = ledger.statuses()
        self.deleting = ledger.deleting()
        self.entries = {entry.cursor: entry for entry in log.entries}
        self.ends = {entry.subject for entry in log.entries if entry.kind == "delete"}

    def wanted(self, record: Record) -> list[Logged]:
        """Return the entries that a client must receive from its starting point on, in order."""
        ear = Ear(record.params, viewer=record.uid, following=record.following)
        begin = number(record.start)
        return [e for e in self.log.entries if ear.hears(self.happening(e)) is not None and e.n > begin]

    def happening(self, entry: Logged) -> dict[str, Any]:
        """Return an entry in the form that the reference takes.

        The content of a post is the server's answer to its author.
        """
        told: dict[str, Any] = {name: entry.wire[name] for name in ("source", "target", "status") if name in entry.wire}
        if entry.kind == "post":
            told["status"] = self.posted.get(entry.subject, entry.wire["status"])
        return {"kind": entry.kind, **told}

    def complaints(self, record: Record) -> list[str]:
        """Return the faults in the messages of a client. An empty list means that all is right."""
        said = [*self._strange(record), *_in_disorder(record), *self._missing(record)]
        return [f"{record.name}: {wrong}" for wrong in said]

    def _strange(self, record: Record) -> Iterable[str]:
        """Yield events that are not on the log or that the filter does not want, and gaps without a loss."""
        wanted = {entry.cursor for entry in self.wanted(record)}
        ghosts = self.ghosts(record)
        for told in record.told:
            if told.kind == "gap" and not self._tells_a_loss(told):
                yield f"a gap where the log lost nothing: {told.message}"
            elif not told.control and told not in ghosts:
                yield from self._of_event(told, wanted)

    def _tells_a_loss(self, gap: Told) -> bool:
        """Whether a gap reports a loss: `rolled_back`, or an unknown position if the server did not see the loss."""
        if not self.rolled_back:
            return False
        told = gap.message
        return told["reason"] == "rolled_back" or (
            told["reason"] == "unknown_position"
            and told["from"] not in self.log.cursors
            and told["to"] in self.log.cursors  # also a server's entry of the rollback, if nothing follows it yet
        )

    def ghosts(self, record: Record) -> list[Told]:
        """Return the events that the client received before a gap and that the log does not have any more."""
        found: list[Told] = []
        since: list[Told] = []
        for told in record.told:
            if told.kind == "gap" and self.rolled_back:
                found += [one for one in since if one.n > told.n and one.cursor not in self.entries]
                since = [one for one in since if one.n <= told.n]
            elif not told.control:
                since.append(told)
        return found

    def _of_event(self, told: Told, wanted: Collection[str]) -> Iterable[str]:
        entry = self.entries.get(told.cursor)
        if entry is None or entry.named != (told.kind, told.subject):
            yield f"told of what the log does not have: {told.message}"
        elif told.cursor not in wanted:
            yield f"told of what it did not ask for: {told.message}"
        elif told.kind == "post" and not self._is_as_posted(told):
            yield f"the post is another than was acknowledged: {told.message}"

    def _is_as_posted(self, told: Told) -> bool:
        status, posted = told.message["status"], self.posted.get(told.subject, {})
        return all(status[name] == posted.get(name) for name in ("id", "uid", "message"))

    def _missing(self, record: Record) -> Iterable[str]:
        got = {told.cursor for told in record.events}
        missed = [entry for entry in self.wanted(record) if entry.cursor not in got]
        if not missed:
            return
        passed = _passed(record, [entry.n for entry in missed])
        for entry in missed:
            if entry.kind not in ("post", "like", "unlike") or not self._was_gone(entry, passed[entry.n]):
                yield f"never told of {entry.named} at {entry.cursor}"

    def _was_gone(self, entry: Logged, passed: float) -> bool:
        """Whether the post may have been deleted before the client read past it. Its delete must still arrive."""
        deleted = self.deleting.get(entry.subject)
        return deleted is not None and deleted < passed and entry.subject in self.ends


def _in_disorder(record: Record) -> Iterable[str]:
    """Yield events that arrived twice, or after a later one."""
    last = number(record.start)
    for told in record.told:
        if told.kind == "gap":
            last = told.n  # the client continues there, which may be below its last position after a rollback
        elif not told.control:
            if told.n <= last:
                yield f"told of {told.cursor} behind number {last}"
            last = max(last, told.n)


def _passed(record: Record, numbers: Sequence[int]) -> dict[int, float]:
    """Return when the client last passed each of these numbers, which rise. A gap may set the client back."""
    passed: dict[int, float] = {}
    place = 0
    for told in record.told:
        if told.kind == "gap":
            passed = {n: at for n, at in passed.items() if n <= told.n}
            place = bisect_right(numbers, told.n)
        while place < len(numbers) and numbers[place] < told.n:
            passed[numbers[place]] = told.at
            place += 1
    return dict.fromkeys(numbers, float("inf")) | passed
