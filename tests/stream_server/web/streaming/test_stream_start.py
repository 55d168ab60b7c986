"""The start of a stream: each form of `since`, on a log whose beginning was trimmed."""

from collections import UserDict
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from filters.sample import Firehose
from filters.subscription import Subscription
from stream_server.errors import ApiError, Unavailable
from stream_server.events.position import EPOCH_MS, LOG_START, Position, format_iso_time
from stream_server.hub.client import StreamToken, SubscribeRequest
from stream_server.store import keys
from stream_server.store.store import Store
from stream_server.web.dialects import v2
from stream_server.web.http.app_keys import HUB, STORE
from stream_server.web.streaming import stream_plan, stream_start
from stream_server.web.streaming.framing import NDJSON, select_framing
from stream_server.web.streaming.stream_plan import StreamPlan
from stream_server.web.streaming.stream_start import resolve_start
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE

BASE = EPOCH_MS + 1_000_000
NOW = BASE + 100_000


async def now() -> int:
    return NOW


def at(n: int) -> Position:
    """Return the position of the n-th entry. There is one entry a second."""
    return Position(BASE + n * 1000, 0, n)


@pytest.fixture
async def store(redis_server: RedisProcess, redis_url: str) -> AsyncIterator[Store]:
    """A log with the entries 5 to 10, of which 7 is missing. Earlier ones were trimmed."""
    client = redis_server.client()
    for n in range(1, 11):
        fields: dict[Any, Any] = {"n": n, "k": "post", "a": "public", "e": b"{}"}
        if n != 7:
            client.xadd(keys.LOG, fields, id=at(n).entry_id)
    client.xtrim(keys.LOG, minid=at(5).entry_id, approximate=False)
    client.close()
    made = Store(redis_url, timeout_seconds=PATIENCE)
    await made.open()
    yield made
    await made.close()


STARTS = {
    "a cursor": (at(6).cursor, at(6)),
    "a cursor without its number": (at(6).entry_id, at(6)),
    "a cursor just below the log": (at(4).cursor, at(4)),
    "a time, inclusive": (format_iso_time(at(9).ms), at(8)),
    "an age": ("-91s", at(8)),
    "an age behind the last entry": ("-1s", at(10)),
}
"""Values of ``since``, and the position behind which the stream begins."""

GAPS = {
    "a cursor older than the log": (at(2).cursor, ("trimmed", 2)),
    "an old cursor without its number": (at(2).entry_id, ("trimmed", None)),
    "the start of the log": (LOG_START.cursor, ("trimmed", 4)),
    "an age older than the log": ("-15m", ("trimmed", None)),
    "a missing entry": (at(7).cursor, ("unknown_position", None)),
    "a lower number": (f"{at(6).entry_id}.3", ("unknown_position", None)),
    "a higher number": (f"{at(6).entry_id}.11", ("unknown_position", None)),
}
"""Values of ``since``, and the reason and the count of their gap."""

REFUSED = {
    "a time to come": (format_iso_time(NOW + 1), "invalid_parameter"),
    **{f"the time {time!r}": (time, "invalid_cursor") for time in (
        "-m", "-15y", "2026-13-01", "2026-11-20T25:00:00Z", "2026-11", "20261120T000000Z", "nan", "1.5", " 1-0.1"
    )},
    **{f"the cursor {cursor}": (cursor, "invalid_cursor") for cursor in (
        f"{NOW + 1}-0.11", f"{at(10).ms}-1.11", "999999999999999-0", "1-1", f"{EPOCH_MS - 1}-0"
    )},
}  # fmt: skip
"""Values of ``since``, and the code of their refusal. For malformed cursors see ``end_to_end/test_cursors.py``."""


@pytest.mark.parametrize(("since", "start"), STARTS.values(), ids=STARTS)
async def test_a_stream_begins_behind_its_position(store: Store, since: str, start: Position) -> None:
    position, lost = await resolve_start(since, store.log, now_ms=now, param="since")
    assert (position.n, lost) == (start.n, None)


@pytest.mark.parametrize(("since", "told"), GAPS.values(), ids=GAPS)
async def test_what_is_not_on_the_log_is_told_as_a_gap(store: Store, since: str, told: tuple[str, int | None]) -> None:
    position, lost = await resolve_start(since, store.log, now_ms=now, param="since")
    assert lost is not None
    assert (lost.reason, lost.missed_count, lost.end) == (*told, position)
    assert position.n == (4 if lost.reason == "trimmed" else position.n)


@pytest.mark.parametrize(("since", "code"), REFUSED.values(), ids=REFUSED)
async def test_what_is_neither_a_time_nor_a_position_of_the_log_is_refused_by_name(
    store: Store, monkeypatch: pytest.MonkeyPatch, since: str, code: str
) -> None:
    monkeypatch.setattr(stream_start, "OTHER_SERVERS_WAIT_SECONDS", 0.0)
    with pytest.raises(ApiError) as refused:
        await resolve_start(since, store.log, now_ms=now, param="since")
    assert (refused.value.error_code, refused.value.param) == (code, "since")


async def test_a_cursor_with_the_number_of_another_entry_starts_with_a_gap(store: Store) -> None:
    position, lost = await resolve_start(f"{at(8).entry_id}.7", store.log, now_ms=now, param="since")
    assert position == at(6)
    assert lost is not None


async def test_a_future_time_that_the_log_has_is_accepted(store: Store) -> None:
    """The log has such entries if the clock was set back."""

    async def set_back() -> int:
        return at(6).ms

    assert await resolve_start(format_iso_time(at(9).ms), store.log, now_ms=set_back, param="since") == (at(8), None)
    with pytest.raises(ApiError):
        await resolve_start(format_iso_time(at(11).ms), store.log, now_ms=set_back, param="since")


async def test_the_clock_of_the_log_is_the_time_of_redis(store: Store, redis_server: RedisProcess) -> None:
    with redis_server.client() as client:
        before, between, after = client.time(), await store.log.now_ms(), client.time()
    assert before[0] * 1000 + before[1] // 1000 <= between <= after[0] * 1000 + after[1] // 1000


async def test_on_an_empty_log_the_start_and_past_times_are_accepted(redis_url: str) -> None:
    empty = Store(redis_url, timeout_seconds=PATIENCE)
    await empty.open()
    assert await resolve_start(LOG_START.cursor, empty.log, now_ms=now, param="since") == (LOG_START, None)
    assert await resolve_start("-15m", empty.log, now_ms=now, param="since") == (LOG_START, None)
    await empty.close()


async def test_a_replay_waits_until_this_server_has_its_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_plan, "HEAD_WAIT_SECONDS", 0.05)
    hub = SimpleNamespace(head=at(5), now_ms=lambda: NOW)
    request: Any = UserDict()  # without the opening of a stream
    request.app = {HUB: hub, STORE: store}
    ask = SubscribeRequest(
        "c", "1", StreamToken("j"), Subscription([Firehose()]), select_framing(NDJSON, chunked=True), at(4)
    )
    made, given = StreamPlan(ask, ()), {"end_time": format_iso_time(at(9).ms)}
    with pytest.raises(Unavailable):
        await v2._with_end_time(request, made, given)
    hub.head = at(10)
    assert (await v2._with_end_time(request, made, given)).subscribe_request.until == at(8)


async def test_a_cursor_of_a_lost_entry_gives_a_gap_to_the_last_kept_entry(store: Store) -> None:
    lost = Position(at(10).ms + 500, 0, 11)
    await store.rollbacks.record(at(9), lost)
    for cursor in (lost.cursor, lost._replace(n=99).cursor, f"{at(10).ms + 1}-0.11"):
        position, gap = await resolve_start(cursor, store.log, now_ms=now, param="since")
        assert gap is not None
        assert (position, gap.reason, gap.start) == (at(9), "rolled_back", cursor)


async def test_a_cursor_above_the_head_first_checks_the_log_for_a_rollback(store: Store) -> None:
    lost = Position(at(10).ms + 500, 0, 11)

    async def look() -> None:
        await store.rollbacks.record(at(10), lost)

    store.log.verify_feed = look
    position, gap = await resolve_start(lost.cursor, store.log, now_ms=now, param="since")
    assert gap is not None
    assert (position, gap.reason) == (at(10), "rolled_back")
