"""The oracle: what a client must have received, computed from the log, its filter and the reference implementation.

A stream receives each entry that its filter wants, once, in log order. A replay may leave out a post, and its likes, if
the post was deleted before the client read that far. The replay must still include the delete.

A status may be edited. A client receives each edit whose old or new version its filter wants. What it is shown is a
version of that place or a later one, and its filter wants that, too. So a replay may also leave out a post whose later
version does not match. In the end a client that asks for edits has the last version of each status that it should have.

If Redis lost acknowledged entries, each client that had received some of them must get a `gap`. The client continues
where the log continues and misses nothing else. A `gap` at the place that the log's own record names is no fault.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, takewhile
from typing import Any, NamedTuple

from tests import reference, reference_rules
from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.ledger import Ledger, Log, Logged, Message, version_of, who_and_what

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
        return who_and_what(self.kind, self.message)[2]


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

    def concerns(self, entry: Logged) -> bool:
        """Whether the client may receive this entry, whatever its filter says."""
        return True


class Ear(reference.Stream):
    """The reference implementation, with edits, likes, rules and the user's own stream."""

    def hears(self, happening: reference.Happening) -> tuple[str, str] | None:
        kind = happening["kind"]
        if kind not in ("edit", "like", "unlike"):
            return super().hears(happening)
        name = happening["status"]["id"]
        heard = self._edit(happening["status"]) if kind == "edit" else self._likes(happening)
        return (kind, name) if heard and kind in self.kinds else None

    def wants(self, status: reference.Status) -> bool:
        """Whether the filter matches this version of a status."""
        return self._matches(status)

    def _edit(self, status: reference.Status) -> bool:
        was_wanted = self._matches(self.statuses[status["id"]])
        return self._post(status) or was_wanted

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
        self.posted = ledger.versions()
        self.begun = ledger.editing()
        self.deleting = ledger.deleting()
        self.entries = {entry.cursor: entry for entry in log.entries}
        self.ends = {entry.subject for entry in log.entries if entry.kind == "delete"}

    def wanted(self, record: Record) -> list[Logged]:
        """Return the entries that a client must receive from its starting point on, in order."""
        ear = self.ear(record)
        begin = number(record.start)
        heard = [entry for entry in self.log.entries if ear.hears(self.happening(entry)) is not None]
        return [entry for entry in heard if entry.n > begin and record.concerns(entry)]

    def ear(self, record: Record) -> Ear:
        """Return the reference implementation of the client's filter."""
        return Ear(record.params, viewer=record.uid, following=record.following)

    def happening(self, entry: Logged) -> dict[str, Any]:
        """Return an entry in the form that the reference takes.

        The content of a post or an edit is the server's answer to its author.
        """
        told: dict[str, Any] = {name: entry.wire[name] for name in ("source", "target", "status") if name in entry.wire}
        if entry.kind in ("post", "edit"):
            told["status"] = self.posted.get(version_of(entry.wire["status"]), entry.wire["status"])
        return {"kind": entry.kind, **told}

    def complaints(self, record: Record) -> list[str]:
        """Return the faults in the messages of a client. An empty list means that all is right."""
        said = [*self._strange(record), *_in_disorder(record), *self._missing(record), *self._out_of_date(record)]
        return [f"{record.name}: {wrong}" for wrong in said]

    def _strange(self, record: Record) -> Iterable[str]:
        """Yield events that are not on the log or that the filter does not want, and gaps without a loss."""
        wanted, ear = {entry.cursor for entry in self.wanted(record)}, self.ear(record)
        ghosts = self.ghosts(record)
        for told in record.told:
            if told.kind == "gap" and not self._tells_a_loss(told):
                yield f"a gap where the log lost nothing: {told.message}"
            elif not told.control and told not in ghosts:
                yield from self._of_event(told, wanted, ear)

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

    def _of_event(self, told: Told, wanted: Collection[str], ear: Ear) -> Iterable[str]:
        entry = self.entries.get(told.cursor)
        if entry is None or entry.named != (told.kind, told.subject):
            yield f"told of what the log does not have: {told.message}"
        elif told.cursor not in wanted:
            yield f"told of what it did not ask for: {told.message}"
        elif "message" in told.message.get("status", {}) and not self._is_as_posted(told):
            yield f"the status is another than was acknowledged: {told.message}"
        elif told.kind in ("post", "edit") and not self._is_right_version(told, entry.wire["status"], ear):
            yield f"a wrong version was shown: {told.message}"

    def _is_as_posted(self, told: Told) -> bool:
        status = told.message["status"]
        posted = self.posted.get(version_of(status), {})
        return all(status[name] == posted.get(name) for name in ("id", "uid", "message"))

    def _is_right_version(self, told: Told, first: Message, ear: Ear) -> bool:
        """Whether it shows the version ``first`` or a later one, which the filter wants, or rightly says that it left.

        That is also said of a status that was deleted since.
        """
        if "left" in told.message:
            was_deleted = self.deleting.get(told.subject, told.at) < told.at
            return was_deleted or not all(map(ear.wants, self._versions_from(first)))
        status = told.message["status"]
        return version_of(status) >= version_of(first) and ear.wants(status)

    def _versions_from(self, first: Message) -> list[Message]:
        """Return a version of a status and the later ones."""
        name, number = version_of(first)
        return [first, *takewhile(bool, (self.posted.get((name, later), {}) for later in count(number + 1)))]

    def _missing(self, record: Record) -> Iterable[str]:
        got = {told.cursor for told in record.events}
        missed = [entry for entry in self.wanted(record) if entry.cursor not in got]
        if not missed:
            return
        passed, ear = _passed(record, [entry.n for entry in missed]), self.ear(record)
        for entry in missed:
            at = passed[entry.n]
            if not self._was_gone(entry, at) and not self._was_edited_away(entry, at, ear):
                yield f"never told of {entry.named} at {entry.cursor}"

    def _was_gone(self, entry: Logged, passed: float) -> bool:
        """Whether the post may have been deleted before the client read past it. Its delete must still arrive."""
        deleted = self.deleting.get(entry.subject) if entry.kind in ("post", "edit", "like", "unlike") else None
        return deleted is not None and deleted < passed and entry.subject in self.ends

    def _was_edited_away(self, entry: Logged, passed: float, ear: Ear) -> bool:
        """Whether a later version that the filter does not want may have been there when the client read past it.

        An edit must still arrive if the filter wanted the version before it.
        """
        if entry.kind not in ("post", "edit"):
            return False
        _, *later = self._versions_from(entry.wire["status"])
        name, number = version_of(entry.wire["status"])
        before = self.posted.get((name, number - 1))
        was_wanted = before is not None and ear.wants(before)
        return not was_wanted and any(self.begun[version_of(v)] < passed and not ear.wants(v) for v in later)

    def _out_of_date(self, record: Record) -> Iterable[str]:
        """Yield the statuses of which a client that asks for edits has another version than the last, or wrongly none.

        After a gap a program must ask for the pages again. So what such a client has is not judged.
        """
        if "edit" not in record.params.get("kinds", "") or any(told.kind == "gap" for told in record.told):
            return
        has, present, ear = dict[str, str](), dict[str, str](), self.ear(record)
        for told in record.events:
            if told.kind in ("post", "edit", "delete"):
                keep_text(has, told.subject, told.message.get("status", {}))
        for entry in self.log.entries:
            is_later = entry.n > number(record.start) and record.concerns(entry)
            if entry.kind in ("post", "edit", "delete") and is_later:
                status = entry.wire["status"]
                keep_text(present, entry.subject, status if entry.kind != "delete" and ear.wants(status) else {})
        if has != present:
            yield f"has {dict(has.items() - present.items())}, and not {dict(present.items() - has.items())}"


def keep_text(texts: dict[str, str], name: str, status: Message) -> None:
    """Keep the text of a status, or forget the status if it has none: a delete and `left` have ids only."""
    if "message" in status:
        texts[name] = status["message"]
    else:
        texts.pop(name, None)


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
