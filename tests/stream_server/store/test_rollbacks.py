"""What the log lost is told on it once, and no id comes back below what was lost."""

import asyncio
from collections.abc import Iterator

import pytest

from stream_server.errors import Unavailable
from stream_server.events.entry import parse_published
from stream_server.events.position import LOG_START, Position
from stream_server.store import keys
from stream_server.store.log.rollbacks import RecordedRollback
from stream_server.store.store import Store
from tests.redis_process import RedisProcess
from tests.stream_server.feeding import Pen, now_ms
from tests.stream_server.store.people import People

pytestmark = pytest.mark.every_redis

HOUR_MS = 3_600_000


@pytest.fixture
def pen(redis_server: RedisProcess, store: Store) -> Iterator[Pen]:
    """Writes the log of the store."""
    assert store.log is not None
    made = Pen(redis_server)
    yield made
    made.close()


async def test_what_the_log_lost_is_told_on_it_by_an_entry_for_nobody(store: Store, pen: Pen) -> None:
    """From the newest that is left to the newest that is not; the numbers go on behind what is there."""
    places = [pen.write() for _ in range(5)]
    lost = pen.lose(2)
    listener = pen.client.pubsub()
    listener.subscribe("events:rollback")
    listener.get_message(timeout=5)
    told = await store.rollbacks.record(places[2], lost[-1])
    entry = (await store.log.read(places[2], 10))[0]
    assert told == RecordedRollback(places[2], entry.position)
    assert (entry.kind, entry.audience, entry.position.n) == ("rollback", "-", 4)
    assert entry.position > lost[-1]
    assert pen.told() == [(places[2].cursor, lost[-1].cursor)]
    message = listener.get_message(timeout=5)
    assert parse_published(message["data"]).position == entry.position
    listener.close()


async def test_what_is_there_is_not_told_to_be_lost(store: Store, pen: Pen) -> None:
    """A feed that looked before a failover and tells behind it."""
    places = [pen.write() for _ in range(3)]
    assert await store.rollbacks.record(places[0], places[2]) is None
    assert pen.places() == places


async def test_what_was_told_is_not_told_again(store: Store, pen: Pen) -> None:
    """Not by who had heard less, nor by who had heard a little more; all go on from the same place."""
    pen.ahead_ms = -1000  # what is told now is told later than all of this
    places = [pen.write() for _ in range(6)]
    pen.lose(4)
    assert await store.rollbacks.record(places[1], places[4]) == RecordedRollback(places[1], pen.places()[-1])
    later = [await store.rollbacks.record(places[1], places[n]) for n in (2, 3, 4, 5)]
    assert later == [RecordedRollback(places[1], None)] * 4
    assert len(pen.told()) == 1


async def test_who_had_heard_more_than_who_told_it_tells_the_wider_range(store: Store, pen: Pen) -> None:
    """The clock went back: what the first one knew of does not reach above all that was lost."""
    kept = pen.write()
    pen.ahead_ms = HOUR_MS
    lost = [pen.write() for _ in range(3)]
    pen.lose(3)
    pen.ahead_ms = 0
    far = Position(lost[2].ms + HOUR_MS, 0, lost[2].n)
    assert await store.rollbacks.record(kept, lost[0]) == RecordedRollback(kept, pen.places()[-1])
    assert await store.rollbacks.record(kept, far) == RecordedRollback(kept, pen.places()[-1])
    assert pen.told() == [(kept.cursor, lost[0].cursor), (kept.cursor, far.cursor)]
    for place in (*lost, far):
        assert (await store.log.look_up(place.ms, place.seq)).resume_position == kept


async def test_no_id_is_made_below_a_lost_one(store: Store, pen: Pen, people: People) -> None:
    """Users and statuses made afterwards, too, though the clock is an hour behind what was lost."""
    kept = pen.write()
    lost = Position(now_ms() + HOUR_MS, 7, 2)
    await store.rollbacks.record(kept, lost)
    ann = await people.user("Ann")
    status = await people.status(ann)
    assert lost.status_number < int(ann) < int(status["id"])
    assert store.last_written > lost


async def test_what_claims_to_be_of_another_time_sets_no_clock(store: Store, pen: Pen) -> None:
    """A forged message of the year 2090 was heard: it is told, and ids are of today."""
    kept = pen.write()
    forged = Position(now_ms() + 65 * 365 * 24 * HOUR_MS, 0, 2)
    assert await store.rollbacks.record(kept, forged) == RecordedRollback(kept, pen.places()[-1])
    assert pen.places()[-1].ms < now_ms() + HOUR_MS


async def test_an_empty_redis_begins_its_log_with_what_it_lost(store: Store, pen: Pen) -> None:
    """Nothing is left at all: whoever had anything goes on from the start."""
    lost = Position(now_ms() - 5, 0, 40)
    assert await store.rollbacks.record(LOG_START, lost) == RecordedRollback(LOG_START, pen.places()[-1])
    (first,) = pen.places()
    assert first.n == 1
    located = await store.log.look_up(lost.ms, lost.seq)
    assert (located.resume_position, located.head) == (LOG_START, first)


async def test_numbers_go_on_behind_the_log_whatever_is_kept_beside_it(store: Store, pen: Pen) -> None:
    """The log says how many there are; where it is empty and was trimmed, what is kept beside it does."""
    places = [pen.write() for _ in range(4)]
    pen.client.xdel(keys.LOG, places[3].entry_id)
    await store.rollbacks.record(places[2], places[3])
    assert [place.n for place in pen.places()] == [1, 2, 3, 4]
    pen.client.xtrim(keys.LOG, maxlen=0, approximate=False)
    await store.rollbacks.record(LOG_START, Position(now_ms() + 1, 0, 7))
    assert [place.n for place in pen.places()] == [5]


async def test_ranges_are_bounded_and_go_with_what_is_lost_again(store: Store, pen: Pen) -> None:
    """The oldest are forgotten; a rollback that loses the word of another one loses its range, too."""
    kept = pen.write()
    for _ in range(70):
        kept = pen.places()[-1]
        await store.rollbacks.record(kept, Position(kept.ms, kept.seq + 1, kept.n + 1))
    assert pen.client.zcard(keys.ROLLBACKS) == 64
    pen.lose(1)
    assert pen.client.zcard(keys.ROLLBACKS) == 63


async def test_many_who_find_it_at_once_tell_it_once(store: Store, pen: Pen) -> None:
    """One step each, whatever their order."""
    pen.ahead_ms = -1000
    places = [pen.write() for _ in range(9)]
    pen.lose(5)
    told = await asyncio.gather(*(store.rollbacks.record(places[3], places[n]) for n in (8, 5, 7, 4, 6)))
    assert [one is not None and one.resume_after for one in told] == [places[3]] * 5
    assert [one is not None and one.recorded_at for one in told].count(None) == 4
    assert len(pen.told()) == 1


async def test_a_redis_that_takes_no_writes_is_told_later(store: Store, pen: Pen) -> None:
    """A replica after a failover, by the wrong address: nothing is changed, and the caller knows."""
    places = [pen.write() for _ in range(3)]
    lost = pen.lose(1)
    pen.client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(Unavailable):
            await store.rollbacks.record(places[1], lost[0])
        assert pen.places() == places[:2]
    finally:
        pen.client.config_set("min-replicas-to-write", 0)
    assert await store.rollbacks.record(places[1], lost[0]) == RecordedRollback(places[1], pen.places()[-1])
