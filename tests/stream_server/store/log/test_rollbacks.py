"""Rollbacks: each loss is recorded once on the log, and no new id is below a lost one."""

from collections.abc import Iterator

import pytest

from stream_server.events.entry import parse_published
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.log.event_log import RecordedRollback
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.feed.node import LogWriter, now_ms
from tests.stream_server.store.people import People
from tests.waiting import PATIENCE

pytestmark = pytest.mark.every_redis

HOUR_MS = 3_600_000


@pytest.fixture
def pen(redis_server: RedisProcess, store: Store) -> Iterator[LogWriter]:
    assert store.log is not None
    made = LogWriter(redis_server)
    yield made
    made.close()


async def test_a_loss_is_recorded_and_published_as_an_internal_entry(store: Store, pen: LogWriter) -> None:
    positions = [pen.write() for _ in range(5)]
    lost = pen.lose(2)
    listener = pen.client.pubsub()
    listener.subscribe("events:rollback")
    listener.get_message(timeout=PATIENCE)
    recorded = await store.rollbacks.record(positions[2], lost[-1])
    entry = (await store.log.read(positions[2], 10))[0]
    assert recorded == RecordedRollback(positions[2], entry.position)
    assert (entry.kind, entry.audience, entry.position.n) == ("rollback", "-", 4)
    assert entry.position > lost[-1]
    assert pen.recorded_rollbacks() == [(positions[2].cursor, lost[-1].cursor)]
    message = listener.get_message(timeout=PATIENCE)
    assert parse_published(message["data"]).position == entry.position
    listener.close()


async def test_no_rollback_is_recorded_for_entries_that_exist(store: Store, pen: LogWriter) -> None:
    positions = [pen.write() for _ in range(3)]
    assert await store.rollbacks.record(positions[0], positions[2]) is None
    assert pen.positions() == positions


async def test_a_recorded_loss_is_not_recorded_again(store: Store, pen: LogWriter) -> None:
    pen.ahead_ms = -1000  # the rollback is recorded later than these entries
    positions = [pen.write() for _ in range(6)]
    pen.lose(4)
    assert await store.rollbacks.record(positions[1], positions[4]) == RecordedRollback(
        positions[1], pen.positions()[-1]
    )
    later = [await store.rollbacks.record(positions[1], positions[n]) for n in (2, 3, 4, 5)]
    assert later == [RecordedRollback(positions[1], None)] * 4
    assert len(pen.recorded_rollbacks()) == 1


async def test_a_process_that_saw_more_records_the_wider_range(store: Store, pen: LogWriter) -> None:
    kept = pen.write()
    pen.ahead_ms = HOUR_MS
    lost = [pen.write() for _ in range(3)]
    pen.lose(3)
    pen.ahead_ms = 0
    far = Position(lost[2].ms + HOUR_MS, 0, lost[2].n)
    assert await store.rollbacks.record(kept, lost[0]) == RecordedRollback(kept, pen.positions()[-1])
    assert await store.rollbacks.record(kept, far) == RecordedRollback(kept, pen.positions()[-1])
    assert pen.recorded_rollbacks() == [(kept.cursor, lost[0].cursor), (kept.cursor, far.cursor)]
    for place in (*lost, far):
        assert (await store.log.look_up(place.ms, place.seq)).resume_position == kept


async def test_no_id_is_made_below_a_lost_one(store: Store, pen: LogWriter, people: People) -> None:
    kept = pen.write()
    lost = Position(now_ms() + HOUR_MS, 7, 2)
    await store.rollbacks.record(kept, lost)
    ann = await people.user("Ann")
    status = await people.status(ann)
    assert lost.status_number < int(ann) < int(status["id"])
    assert store.last_written > lost


async def test_a_lost_position_far_in_the_future_does_not_set_the_clock(store: Store, pen: LogWriter) -> None:
    kept = pen.write()
    forged = Position(now_ms() + 65 * 365 * 24 * HOUR_MS, 0, 2)
    assert await store.rollbacks.record(kept, forged) == RecordedRollback(kept, pen.positions()[-1])
    assert pen.positions()[-1].ms < now_ms() + HOUR_MS


async def test_numbers_continue_from_the_log_or_from_the_stored_number(store: Store, pen: LogWriter) -> None:
    positions = [pen.write() for _ in range(4)]
    pen.client.xdel(keys.LOG, positions[3].entry_id)
    await store.rollbacks.record(positions[2], positions[3])
    assert [place.n for place in pen.positions()] == [1, 2, 3, 4]
    pen.client.xtrim(keys.LOG, maxlen=0, approximate=False)
    await store.rollbacks.record(LOG_START, Position(now_ms() + 1, 0, 7))
    assert [place.n for place in pen.positions()] == [5]


async def test_recorded_ranges_are_bounded_and_lost_with_their_entry(store: Store, pen: LogWriter) -> None:
    kept = pen.write()
    for _ in range(70):
        kept = pen.positions()[-1]
        await store.rollbacks.record(kept, Position(kept.ms, kept.seq + 1, kept.n + 1))
    assert pen.client.zcard(keys.key_for("rollbacks")) == 64
    pen.lose(1)
    assert pen.client.zcard(keys.key_for("rollbacks")) == 63
