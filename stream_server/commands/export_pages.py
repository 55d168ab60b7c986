"""Past events, page by page, by long polling; and the summary of those that were written into a file."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from stream_server.client import Backoff, Client, RequestRefused, StreamEnded, Unreachable
from stream_server.client.connection import fits_in_url
from stream_server.events.position import parse_age_ms

PAGE_EVENTS = 1000

PAGE_WAIT_SECONDS = 20

GAP = "gap"
"""The kind of the message that says which part of the log is missing."""


class Page(NamedTuple):
    """Events that came together, the gaps before or between them, and where to go on behind them.

    ``messages`` are the events and the gaps in their order. ``cursor`` is the cursor of the last event. If there is
    none up to the end, it is where the reading began, as a cursor or a time. ``more`` is whether the log has further
    entries already.
    """

    messages: list[dict[str, Any]]
    cursor: str
    more: bool = False

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events without the gaps."""
        return [message for message in self.messages if message["kind"] != GAP]


def parse_until(text: str, now: datetime) -> datetime:
    """Return the time that ``text`` means: ``now``, an age such as ``-15m``, or an ISO 8601 time, by default in UTC.

    Raises ValueError for another text.
    """
    if text == "now":
        return now
    age_ms = parse_age_ms(text)
    if age_ms is not None:
        return datetime.fromtimestamp(now.timestamp() - age_ms / 1000, UTC)
    parsed = datetime.fromisoformat(text)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


async def read_pages(
    client: Client, parameters: Mapping[str, str], since: str, until: datetime
) -> AsyncGenerator[Page, None]:
    """Yield the events after ``since`` up to the time ``until``, page by page.

    If ``until`` is in the future, wait for it. After the first page a lost connection, and a server that is away or
    busy, only delay the next one: nothing is missed or repeated. Raises what a request of the client raises, and
    :class:`StreamEnded` if a goodbye of the server forbids another request.
    """
    cursor, is_first, backoff, failures = since, True, Backoff(), 0
    is_age = parse_age_ms(since) is not None  # which soon is another time
    begin = until.isoformat(timespec="milliseconds") if is_age else since
    while True:
        seconds_left = until.timestamp() - time.time()
        wait = min(PAGE_WAIT_SECONDS, max(0, seconds_left))
        query = {**parameters, "since": cursor, "limit": str(PAGE_EVENTS), "wait": f"{wait:.3f}"}
        try:
            answer = await _ask(client, query, wait + 30)
        except (RequestRefused, Unreachable) as error:
            if is_first or not error.is_temporary:
                raise
            await asyncio.sleep(backoff.delay(failures, error.retry_after))
            failures += 1
            continue
        page = _cut(answer, until, begin if is_first else cursor)
        yield page
        is_first, failures, cursor = False, 0, answer["cursor"]
        if page.cursor != cursor or (seconds_left <= 0 and not answer["more"]):
            return
        for goodbye in (event for event in answer["events"] if event["kind"] == "goodbye"):
            if goodbye.get("retry_after") is None:
                raise StreamEnded(str(goodbye.get("code", "")), str(goodbye.get("reason", "")))
            await asyncio.sleep(goodbye["retry_after"])


async def _ask(client: Client, query: Mapping[str, str], seconds: float) -> dict[str, Any]:
    """Return one page. Long filters go in a body, because servers and proxies limit URLs."""
    if fits_in_url(query):
        answer: dict[str, Any] = await client.request("GET", "/v1/events", query=query, seconds=seconds)
    else:
        answer = await client.request("POST", "/v1/events", body=query, seconds=seconds, is_read=True)
    return answer


def _cut(answer: dict[str, Any], until: datetime, begin: str) -> Page:
    """Return the events of an answer up to the time ``until``, as a page. The answer begins after the cursor ``begin``.

    Later events are left out, so the page's cursor is before them.
    """
    messages = [message for message in answer["events"] if message["kind"] not in {"goodbye", "warning"}]
    in_time = [
        message for message in messages if message["kind"] == GAP or datetime.fromisoformat(message["at"]) <= until
    ]
    if len(in_time) == len(messages):
        return Page(in_time, answer["cursor"], answer["more"])
    return Page(in_time, next((one["cursor"] for one in reversed(in_time) if one["kind"] != GAP), begin))


class Gap(msgspec.Struct):
    """Events that the server could not deliver: why, and how many log entries if that is known."""

    reason: str
    count: int | None


class ExportSummary(msgspec.Struct):
    """The result of an export. ``cursor`` continues the export: give it to ``--since`` of the next one.

    It is where the last event of the file stands, and not where the events stand that came with it and are too late.
    """

    file: str
    events: int = 0
    bytes: int = 0
    first: str | None = None
    last: str | None = None
    cursor: str | None = None
    gaps: list[Gap] = []

    def add(self, messages: Iterable[dict[str, Any]], cursor: str) -> None:
        """Count events and gaps that were read up to ``cursor``."""
        self.cursor = cursor
        for message in messages:
            if message["kind"] == GAP:
                self.gaps.append(Gap(message["reason"], message.get("count")))
            else:
                self.events += 1
                self.first, self.last = self.first or message["at"], message["at"]

    def sentences(self) -> list[str]:
        """Return the summary in words: the number and time of the events, and what is missing."""
        span = f" from {self.first} to {self.last}" if self.events else ""
        gaps = [
            f"not in the file: {'an unknown number of' if gap.count is None else f'{gap.count:,}'} entries of the log"
            f" ({gap.reason})"
            for gap in self.gaps
        ]
        return [f"{self.file}: {self.events:,} events{span}, {self.bytes:,} bytes", *gaps]
