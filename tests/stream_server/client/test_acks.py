"""The acks of a stream of the client library: joined, repeated after a failure, and sent at the end."""

import asyncio
from typing import Any

import pytest

from stream_server.client import acks
from stream_server.client.acks import Acks
from stream_server.client.errors import RequestRefused, Unreachable
from tests.waiting import eventually


class Line:
    """The part of a transport that sends acks. It raises ``error`` as long as that is set."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.connections: list[str] = []
        self.error: Exception | None = None

    async def request(self, method: str, path: str, **options: Any) -> None:
        assert (method, options["attempts"]) == ("POST", 1)
        self.sent.append((path, options["body"]["cursor"]))
        self.connections.append(options["body"]["connection"])
        if self.error is not None:
            raise self.error

    @property
    def cursors(self) -> list[str]:
        return [cursor for _, cursor in self.sent]


@pytest.fixture
def line() -> Any:
    return Line()


async def test_the_highest_of_many_cursors_is_sent(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acks, "ACK_SECONDS", 0.05)
    made = Acks(line, "a b")
    made.note(None, "")
    made.note("1", "c")
    await eventually(lambda: line.sent)
    for number in range(2, 90):
        made.note(str(number), "c")
    await eventually(lambda: "89" in line.cursors)
    assert line.sent == [("/v1/subscriptions/a%20b/ack", cursor) for cursor in ("1", "89")]
    made.note("89", "c")
    await made.close()
    assert line.cursors == ["1", "89"]


async def test_a_failed_ack_is_sent_again_and_one_of_nothing_is_not(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acks, "ACK_SECONDS", 0.01)
    made = Acks(line, "work")
    line.error = Unreachable("away")
    made.note("1", "c")
    await eventually(lambda: len(line.sent) > 2)
    line.error = RequestRefused(503, "unavailable", "away")
    await eventually(lambda: len(line.sent) > 5)
    line.error = None
    await eventually(lambda: made._sent.cursor == "1")
    line.error, before = RequestRefused(404, "not_found", "gone"), len(line.sent)
    made.note("2", "c")
    await eventually(lambda: made._sent.cursor == "2")
    assert line.cursors[before:] == ["2"]


async def test_a_close_sends_what_waits(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acks, "ACK_SECONDS", 3600.0)
    made = Acks(line, "work")
    made.note("1", "c")
    await eventually(lambda: line.sent)
    made.note("2", "c")
    await asyncio.wait_for(made.close(), 60)
    assert line.cursors == ["1", "2"]


async def test_an_ack_names_the_connection_by_which_the_event_came(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a shared subscription, a later connection may have other parts. The same cursor of it is another ack."""
    monkeypatch.setattr(acks, "ACK_SECONDS", 0.01)
    made = Acks(line, "work")
    line.error = RequestRefused(409, "not_reading", "gone")
    made.note("1", "old")
    await eventually(lambda: line.sent)
    line.error = None
    made.note("1", "new")
    await eventually(lambda: len(line.sent) == 2)
    assert (line.cursors, line.connections) == (["1", "1"], ["old", "new"])
