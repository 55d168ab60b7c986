"""A loss that is hard to find, or to tell: seen before and gone since, told by one that leaves on the way."""

import asyncio

import pytest

from stream_server.errors import Unavailable
from stream_server.events.position import Position
from stream_server.feed.link_health import LinkLost
from stream_server.store import keys
from stream_server.store.log.event_log import LogLookup
from stream_server.store.log.rollbacks import RecordedRollback
from tests.stream_server.feeding import Node, Pen
from tests.waiting import eventually


async def test_what_was_seen_on_the_log_may_be_lost_since(without_canary: Node, pen: Pen) -> None:
    """As in a failover within a beat: others took the numbers unheard, and the next message fits behind the lost."""
    places = [pen.write() for _ in range(5)]
    await without_canary.hears(places)
    await without_canary.feed.detector.recheck()
    pen.lose(2, links=False)
    for _ in range(2):
        pen.write(published=False)
    await without_canary.hears([*places, pen.write()])
    pen.client.client_kill_filter(_type="pubsub")
    await eventually(lambda: without_canary.heard() == pen.places(), seconds=30, what="the log to be heard")
    assert without_canary.jumps == [(places[2], "rolled_back", None)]
    assert pen.told() == [(places[2].cursor, places[4].cursor)]


@pytest.mark.parametrize("emptied", [False, True])
async def test_a_loss_is_told_to_the_end_when_the_reader_that_found_it_leaves(
    without_canary: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch, *, emptied: bool
) -> None:
    """Its client goes while the log is told: the next check goes on, also where all looks well by then, or trimmed."""
    feed, reached = without_canary.feed, asyncio.Event()
    tell = without_canary.store.rollbacks.record
    places = [pen.write() for _ in range(5)]
    await without_canary.hears(places)
    await feed.detector.recheck()
    told: list[RecordedRollback | None] = []

    async def held(survivor: Position, lost: Position) -> RecordedRollback | None:
        told.append(await tell(survivor, lost))
        if len(told) == 1:
            reached.set()
            await asyncio.Event().wait()
        return told[-1]

    monkeypatch.setattr(without_canary.store.rollbacks, "record", held)
    pen.client.xtrim(keys.LOG, 0, approximate=False) if emptied else pen.lose(2, links=False)
    looking = asyncio.create_task(feed.detector.recheck())
    await reached.wait()
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await feed.detector.recheck()
    assert [reason for _, reason, _ in without_canary.jumps] == ["rolled_back"]
    last = pen.write()
    await eventually(lambda: without_canary.hub.head == last, seconds=30, what="what came then")
    assert len(told) >= 2
    assert len(pen.told()) == 1


async def test_who_doubts_is_not_answered_by_a_check_that_failed(
    without_canary: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that began after the doubt did found Redis away: the reader looks for itself."""
    places = [pen.write() for _ in range(5)]
    await without_canary.hears(places)
    inspect, asked, away = without_canary.store.log.look_up_with_run_id, 0, asyncio.Event()

    async def failing(place: Position) -> tuple[str, LogLookup]:
        nonlocal asked
        asked += 1
        if asked <= 2:
            await away.wait()
            raise Unavailable("away", retry_after=1)
        return await inspect(place)

    monkeypatch.setattr(without_canary.store.log, "look_up_with_run_id", failing)
    pen.lose(2, links=False)
    looks = [asyncio.create_task(without_canary.feed.detector.recheck()) for _ in range(3)]
    await eventually(lambda: asked == 1, what="the first to ask, and the others to wait for it")
    away.set()
    found = await asyncio.gather(*looks, return_exceptions=True)
    assert [type(one) for one in found] == [Unavailable, Unavailable, type(None)]
    assert without_canary.jumps == [(places[2], "rolled_back", None)]


async def test_hearing_of_the_loss_does_not_cut_off_who_tells_it(
    node: Node, pen: Pen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The canary's own word comes back to it before it has ended: it ends first, and the link is dialled once."""
    told, heard = 0, asyncio.Event()
    tell, require = node.store.rollbacks.record, node.feed._require_valid_head

    def required() -> None:
        try:
            require()
        except LinkLost:
            heard.set()
            raise

    async def held(survivor: Position, lost: Position) -> RecordedRollback | None:
        nonlocal told
        told += 1
        loss = await tell(survivor, lost)
        await heard.wait()
        return loss

    places = [pen.write() for _ in range(5)]
    await node.hears(places)
    monkeypatch.setattr(node.feed, "_require_valid_head", required)
    monkeypatch.setattr(node.store.rollbacks, "record", held)
    pen.client.xtrim(keys.LOG, 0, approximate=False)
    await eventually(lambda: node.jumps, seconds=30, what="the hub to go back")
    last = pen.write()
    await eventually(lambda: node.hub.head == last, seconds=30, what="what came then")
    assert node.jumps[0][1] == "rolled_back"
    assert told == 1
