"""Clients that count instead of reading events. Their windows hold each event of the same stream once."""

from typing import Any

from tests.end_to_end.consumer import number
from tests.end_to_end.random_faults.clients import Listener
from tests.end_to_end.random_faults.oracle import CONTROL, History, Record

NEVER_HIDDEN = "delete,follow,unfollow"
"""Kinds of events that no replay leaves out, whatever is deleted later. So their number is exact."""


class Counting(Listener):
    """A summary of a second, which leaves after some messages and goes on at the cursor of the last one.

    Attributes:
        windows: The messages `count`, of all visits.
    """

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.windows: list[dict[str, Any]] = []

    async def _visit(self) -> None:
        self.most = self.chance.randint(1, 12)
        await super()._visit()

    def _hear(self, message: dict[str, Any]) -> None:
        """Keep the counts. The oracle of events has no use for them."""
        if message["kind"] == "count":
            self.windows.append(message)
        else:
            assert message["kind"] in CONTROL, message
        self.record.start = self.record.start or str(message["cursor"])
        self.cursor = str(message["cursor"])

    def _query(self, **more: str) -> dict[str, str]:
        return super()._query(summary="1", **more)

    def complaints(self, history: History) -> list[str]:
        """Return the windows that overlap, or that have another number than the log, and the events in no window."""
        wrong, reached, params = [], number(self.record.start), self.record.params
        wanted = [entry.n for entry in history.wanted(Record("", params, self.record.uid, (), self.record.start))]
        for window in self.windows:
            begin, end = number(window["from"]), number(window["to"])
            span = sum(begin < n <= end for n in wanted)
            if begin < reached or window["count"] != span or any(reached < n <= begin for n in wanted):
                wrong.append(f"{self.record.name}: {window} has {span} events, and {reached} was reached")
            reached = end
        if any(reached < n <= self.reached for n in wanted):
            wrong.append(f"{self.record.name}: the counts end at {reached}, and the cursor is {self.reached}")
        return wrong
