"""Reads the events of a span of time by long polling, and goes on after lost connections."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stream_server.client import Backoff, Client, RequestRefused, StreamEnded, Unreachable
from stream_server.client.connection import fits_in_url

PAGE_EVENTS = 1000

MAX_WAIT_SECONDS = 20

_AGE = re.compile(r"-(\d{1,9})([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class Page(NamedTuple):
    """Events that came together, the gaps before or between them, and where to go on behind them.

    ``cursor`` is the cursor of the last event. If there is none up to the end, it is where the reading began, as a
    cursor or a time.
    """

    events: list[dict[str, Any]]
    gaps: list[dict[str, Any]]
    cursor: str


def parse_until(text: str, now: datetime) -> datetime:
    """Return the time that ``text`` means: ``now``, an age such as ``-15m``, or an ISO 8601 time, by default in UTC.

    Raises ValueError for another text.
    """
    if text == "now":
        return now
    age = _AGE.fullmatch(text)
    if age:
        return datetime.fromtimestamp(now.timestamp() - int(age[1]) * _UNIT_SECONDS[age[2]], UTC)
    parsed = datetime.fromisoformat(text)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


async def read_pages(
    client: Client, parameters: Mapping[str, str], since: str, until: datetime
) -> AsyncIterator[Page]:
    """Yield the events after ``since`` up to the time ``until``, page by page.

    If ``until`` is in the future, wait for it. After the first page a lost connection, and a server that is away or
    busy, only delay the next one: nothing is missed or repeated. Raises what a request of the client raises, and
    :class:`StreamEnded` if the token ends.
    """
    cursor, is_first, backoff, failures = since, True, Backoff(), 0
    begin = until.isoformat(timespec="milliseconds") if _AGE.fullmatch(since) else since  # an age soon is another time
    while True:
        seconds_left = until.timestamp() - time.time()
        wait = min(MAX_WAIT_SECONDS, max(0, seconds_left))
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
        await _obey_goodbye(answer["events"])


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
    gaps = [event for event in answer["events"] if event["kind"] == "gap"]
    events = [event for event in answer["events"] if event["kind"] not in {"gap", "goodbye", "warning"}]
    in_time = [event for event in events if datetime.fromisoformat(event["at"]) <= until]
    if len(in_time) == len(events):
        return Page(in_time, gaps, answer["cursor"])
    return Page(in_time, gaps, in_time[-1]["cursor"] if in_time else begin)


async def _obey_goodbye(events: list[dict[str, Any]]) -> None:
    """Wait as a goodbye of the server asks. Raises :class:`StreamEnded` if it forbids another request."""
    for event in events:
        if event["kind"] == "goodbye":
            if event.get("retry_after") is None:
                raise StreamEnded(str(event.get("code", "")), str(event.get("reason", "")))
            await asyncio.sleep(event["retry_after"])
