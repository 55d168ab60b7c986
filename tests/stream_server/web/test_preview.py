"""Where a preview begins on a long log, and how it reports its counts."""

from typing import Any

import pytest

from stream_server.events.position import EPOCH_MS, Position
from stream_server.hub.preview import PreviewResult
from stream_server.store import keys
from stream_server.store.store import Store
from stream_server.web.api import rule_preview
from stream_server.web.api.rule_preview import TimeSpan, limit_start, preview_answer
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
async def test_the_latest_are_looked_at(store: Store, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Exactly as many as the limit, however unevenly they lie in time."""
    monkeypatch.setattr(rule_preview, "MAX_SCANNED_ENTRIES", most)
    assert await limit_start(store.log, at(1), at(200)) == at(200 - most)


async def test_a_short_log_is_looked_at_from_where_it_was_asked(store: Store) -> None:
    """Also if the number equals the limit."""
    assert await limit_start(store.log, at(7), at(200)) == at(7)


async def test_more_in_one_millisecond_than_may_be_are_no_endless_search(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview then starts where requested; its time limit bounds the work."""
    monkeypatch.setattr(rule_preview, "MAX_SCANNED_ENTRIES", 0)
    assert await limit_start(store.log, at(1), at(200)) == at(1)


def test_a_rate_is_of_the_time_that_was_looked_at() -> None:
    """The rate of an empty time is finite."""
    counted = PreviewResult(6, at(9), True, [], BASE)
    assert preview_answer(counted, 9, TimeSpan(BASE, BASE + 120_000), complete=True)["per_minute"] == 3.0
    assert preview_answer(counted, 9, TimeSpan(BASE, BASE), complete=True)["per_minute"] == 360_000.0
