"""The messages of a stream as typed objects."""

from datetime import UTC, datetime

import pytest

from filters.narrowing import KINDS, PERSONAL_KINDS
from stream_server.client import Delete, Event, Gap, Malformed, Post
from stream_server.client.connection import parse_event
from stream_server.wire.messages import EVENT_TYPES, Control
from tests.stream_server.client.scripted_server import message, status


def test_every_kind_has_a_class() -> None:
    controls = {kind for kind, each in EVENT_TYPES.items() if issubclass(each, Control)}
    assert controls == {"hello", "heartbeat", "gap", "effective", "warning", "goodbye"}
    assert EVENT_TYPES.keys() - controls == {*KINDS, *PERSONAL_KINDS, "count"}


def test_unknown_members_are_ignored_and_kept() -> None:
    raw = message("post", 1, status={**status(1, "hi"), "mood": "good"}, later=[1])
    event = parse_event(raw)
    assert isinstance(event, Post)
    assert (event.status.message, event.at, event.raw) == ("hi", datetime(2026, 1, 31, 12, tzinfo=UTC), raw)
    assert (event.data["later"], event.data["status"]["mood"]) == ([1], "good")


@pytest.mark.parametrize("members", [{}, {"status": {"id": "1"}}, {"status": [1]}])
def test_an_event_of_another_form_is_still_an_event(members: dict[str, object]) -> None:
    """The stream goes on: from the same cursor it would come again and again."""
    event = parse_event(message("post", 1, **members))
    assert (type(event), event.kind, event.is_control) == (Event, "post", False)
    assert parse_event(message("later_kind", 2)).kind == "later_kind"


def test_deletes_and_gaps() -> None:
    event = parse_event(message("delete", 1, status={"id": "5", "uid": "7", "deleted": True}))
    assert isinstance(event, Delete)
    assert (event.status.id, event.status.uid) == ("5", "7")
    gap = parse_event(message("gap", 1, **{"from": "a", "to": "b", "reason": "trimmed", "count": None}))
    assert isinstance(gap, Gap)
    assert (gap.start, gap.end, gap.reason, gap.count, gap.is_control) == ("a", "b", "trimmed", None, True)


def test_what_matched() -> None:
    matched = [
        {"filter": "track", "term": "tea", "indices": [[6, 9]]},
        {"id": "r1", "tag": "drinks", "filter": "rule", "parts": [{"part": "tea", "indices": [[6, 9], [0, 2]]}]},
        {"id": "r2", "tag": "", "filter": "rule"},
        {"filter": "of a plug-in", "indices": "none", "parts": 5, "other": [[1, "x"]]},
    ]
    event = parse_event(message("post", 1, status=status(1, "a cup of tea"), matched=matched))
    assert (event.spans, event.tags) == (((0, 2), (6, 9)), ("drinks", "r2"))
    assert event.age_seconds(datetime(2026, 1, 31, 12, 0, 5, tzinfo=UTC)) == 5
    assert event.age_seconds(datetime(2026, 1, 31, 11, tzinfo=UTC)) == 0


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"kind":"post"}', b'{"kind":"gap","cursor":"c","at":"x"}', b"\xff"]
)
def test_what_is_no_message_is_malformed(raw: bytes) -> None:
    with pytest.raises(Malformed):
        parse_event(raw)
