"""The start of a preview on a long log, and the counts that it reports."""

from typing import Any

import pytest

from stream_server.events.position import EPOCH_MS, Position
from stream_server.hub.preview import PreviewResult
from stream_server.store import keys
from stream_server.store.store import Store
from stream_server.web.api import rules
from stream_server.web.api.rules import TimeSpan, limit_start, preview_answer
from tests.redis_process import RedisProcess
from tests.waiting import PATIENCE

BASE = EPOCH_MS + 1_000_000


def at(n: int) -> Position:
    """Return the position of the n-th entry: a hundred in the first second, then one a second."""
    return Position(BASE + 10 * n if n <= 100 else BASE + 1000 * n, 0, n)


@pytest.fixture
async def store(redis_server: RedisProcess, redis_url: str) -> Any:
    """A log of 200 entries."""
    client = redis_server.client()
    pipe = client.pipeline()
    for n in range(1, 201):
        fields: dict[Any, Any] = {"n": n, "k": "post", "a": "public", "e": b"{}"}
        pipe.xadd(keys.LOG, fields, id=at(n).entry_id)
    pipe.execute()
    client.close()
    made = Store(redis_url, timeout_seconds=PATIENCE)
    await made.open()
    yield made
    await made.close()


@pytest.mark.parametrize("most", [1, 2, 30, 99, 100, 101, 150, 198])
async def test_a_preview_starts_at_the_latest_entries_within_the_limit(
    store: Store, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(rules, "MAX_SCANNED_ENTRIES", most)
    assert await limit_start(store.log, at(1), at(200)) == at(200 - most)


async def test_a_preview_of_a_short_log_starts_where_requested(store: Store) -> None:
    assert await limit_start(store.log, at(7), at(200)) == at(7)


async def test_a_full_millisecond_starts_where_requested(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "MAX_SCANNED_ENTRIES", 0)
    assert await limit_start(store.log, at(1), at(200)) == at(1)


def test_the_rate_is_per_minute_of_the_scanned_time() -> None:
    counted = PreviewResult(6, at(9), True, [], BASE)
    assert preview_answer(counted, 9, TimeSpan(BASE, BASE + 120_000), complete=True)["per_minute"] == 3.0
    assert preview_answer(counted, 9, TimeSpan(BASE, BASE), complete=True)["per_minute"] == 360_000.0
