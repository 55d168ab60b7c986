"""The oracle of the random faults: right records pass, and it finds each kind of fault."""

import copy
from collections.abc import Callable

import pytest

from tests.end_to_end.random_faults.ledger import Ledger, Log, Logged, Message
from tests.end_to_end.random_faults.oracle import History, Record, Told

START = "10-0.0"
Told_ = list[Told]


def cursor(n: int) -> str:
    return f"{10 + n}-0.{n}"


def written(ledger: Ledger, n: int, uid: str, kind: str, subject: str, text: str = "") -> Logged:
    """Add an acknowledged write to the ledger. Return its entry of the log."""
    entities: Message = {"mentions": [], "hashtags": [], "cashtags": [], "urls": []}
    status: Message = {
        "id": subject, "uid": uid, "message": text, "entities": entities, "in_reply_to": None, "origin": None,
        "location": None, "place": None, "lang": None,
    }  # fmt: skip
    deed = ledger.begin(uid, kind, subject)
    deed.begun, deed.outcome = float(n), "written"
    if kind in ("post", "edit"):
        if kind == "edit":
            status["edits"] = 1
        deed.status = status
        return Logged(n, cursor(n), uid, kind, subject, {"status": status})
    if kind == "delete":
        return Logged(n, cursor(n), uid, kind, subject, {"status": {"id": subject, "uid": uid}})
    wire = {"source": {"id": uid}, "target" if kind == "follow" else "status": {"id": subject}}
    return Logged(n, cursor(n), uid, kind, subject, wire)


def play() -> tuple[Ledger, Log]:
    ledger = Ledger()
    entries = [
        written(ledger, 1, "a", "post", "11", "red"), written(ledger, 2, "b", "post", "12", "green"),
        written(ledger, 3, "b", "like", "11"), written(ledger, 4, "a", "post", "14", "red too"),
        written(ledger, 5, "a", "follow", "b"), written(ledger, 6, "a", "delete", "11"),
        written(ledger, 7, "b", "post", "17", "red again"), written(ledger, 8, "a", "post", "18", "green again"),
    ]  # fmt: skip
    return ledger, Log(1, 8, entries, frozenset([entry.cursor for entry in entries]))


def told(entry: Logged) -> Told:
    return Told({"kind": entry.kind, "cursor": entry.cursor, **copy.deepcopy(entry.wire)}, entry.n + 0.5)


def heard(log: Log, *numbers: int) -> Record:
    """Return the record of a firehose client that received these entries."""
    params = {"firehose": "true", "kinds": "post,delete,follow,like"}
    return Record("firehose", params, "c", (), START, [told(log.entries[n - 1]) for n in numbers])


def test_correct_records_pass() -> None:
    """A client has all entries in order, or those that its filter wants.

    A late reader lacks entries that were deleted by then.
    """
    ledger, log = play()
    history = History(log, ledger)
    assert ledger.complaints(log.entries) == []
    assert history.complaints(heard(log, *range(1, 9))) == []
    some = [told(log.entries[n - 1]) for n in (1, 4, 6, 7)]
    assert history.complaints(Record("track", {"track": "red"}, "c", (), START, some)) == []
    late = heard(log, 2, 4, 5, 6, 7, 8)
    late.told = [Told(one.message, 100.0) for one in late.told]
    assert history.complaints(late) == []


WRONG: dict[str, tuple[Callable[[Told_], object], str]] = {
    "one is missing": (lambda got: got.pop(3), "never told of ('post', '14')"),
    "the last is missing": (lambda got: got.pop(), "never told of ('post', '18')"),
    "a delete is missing": (lambda got: got.pop(5), "never told of ('delete', '11')"),
    "its post was there when it was passed": (lambda got: got.pop(0), "never told of ('post', '11')"),
    "its like was there when it was passed": (lambda got: got.pop(2), "never told of ('like', '11')"),
    "one came twice": (lambda got: got.insert(4, got[3]), f"told of {cursor(4)} behind number 4"),
    "two changed places": (lambda got: got.insert(1, got.pop(2)), f"told of {cursor(2)} behind number 3"),
    "a replay went back": (lambda got: got.extend(got[6:]), f"told of {cursor(7)} behind number 8"),
    "a gap was told": (lambda got: got.insert(2, Told({"kind": "gap", "cursor": cursor(2)}, 2.7)), "a gap where"),
    "a ghost": (lambda got: got.append(Told({**got[7].message, "cursor": "99-0.9"}, 9.0)), "the log does not have"),
    "another place": (lambda got: got[1].message.update(cursor="12-7.2"), "the log does not have"),
    "another subject": (lambda got: got[2].message["status"].update(id="14"), "the log does not have"),
    "another kind": (lambda got: got[5].message.update(kind="post"), "the log does not have"),
    "other words": (lambda got: got[6].message["status"].update(message="blue"), "another than was acknowledged"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_record_is_detected(wrong: str) -> None:
    """One change makes a faultless record faulty."""
    ledger, log = play()
    record = heard(log, *range(1, 9))
    change, complaint = WRONG[wrong]
    change(record.told)
    assert any(complaint in said for said in History(log, ledger).complaints(record)), wrong


@pytest.mark.parametrize(
    ("start", "end", "wrong"), [("8-9.8", "0-1.9", 0), ("8-9.8", "0-2.9", 1), (cursor(8), cursor(7), 1)]
)
def test_a_gap_from_a_lost_position_ends_at_any_entry_of_the_log(start: str, end: str, wrong: int) -> None:
    """Also at an entry of a server, such as that of the rollback. From a position of the log there is no such gap."""
    ledger, log = play()
    record = heard(log, *range(1, 9))
    gap = {"kind": "gap", "reason": "unknown_position", "cursor": end, "from": start, "to": end}
    record.told.append(Told(gap, 9.0))
    log = log._replace(cursors=log.cursors | {"0-1.9"})
    assert len(History(log, ledger, rolled_back=True).complaints(record)) == wrong


def test_an_event_that_does_not_match_the_filter_is_detected() -> None:
    """The client received an event that its filter does not want."""
    ledger, log = play()
    some = [told(log.entries[n - 1]) for n in (1, 2, 4, 6, 7)]
    (said,) = History(log, ledger).complaints(Record("track", {"track": "red"}, "c", (), START, some))
    assert "did not ask for" in said
    assert "'12'" in said


LIES: dict[str, tuple[Callable[[Ledger, list[Logged]], object], str]] = {
    "acknowledged and lost": (lambda _, log: log.pop(), "acknowledged and not on the log"),
    "written twice": (lambda _, log: log.append(log[-1]), "never acknowledged"),
    "written though it was said not to be": (
        lambda ledger, _: setattr(ledger.deeds[-1], "outcome", "given up"), "never acknowledged"
    ),
    "in another order": (lambda _, log: log.insert(0, log.pop(3)), "the log has"),
    "never settled": (lambda ledger, _: setattr(ledger.deeds[1], "outcome", None), "nobody knows"),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_log_that_differs_from_the_acknowledged_writes_is_detected(lie: str) -> None:
    """One change in the log or in the ledger makes them disagree."""
    ledger, log = play()
    change, complaint = LIES[lie]
    change(ledger, log.entries)
    assert any(complaint in said for said in ledger.complaints(log.entries)), lie
